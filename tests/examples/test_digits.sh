#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/digits: it learns to read, and its losses are the same on every layout.
set -euo pipefail
program=$MTF_BUILD_DIR/examples/digits
share=$("$program" 600 | sed -n 's/^of 1000 new pictures \([0-9.]*\) % are read right$/\1/p')
awk -v share="$share" 'BEGIN { exit !(share > 90) }' || { echo "reads only $share %" >&2; exit 1; }
one=$("$program" 50)
for layout in "all:4 batch:all" "all:3 y:all" "all:7 hidden_2:all" \
    "rows:2;cols:2 batch:rows;hidden_1:cols;digit:cols" "rows:2;cols:3 y:rows;x:cols;digit:rows"; do
    read -r mesh rules <<<"$layout"
    "$program" 50 "$mesh" "$rules" | paste -d ' ' <(echo "$one") - | awk -v layout="$layout" '
        $1 == "step" { d = $4 - $10; if (d > 1e-5 || d < -1e-5) bad = 1; n++ }
        END { if (bad || n != 2) { print layout " differs"; exit 1 } }'
done
if "$program" 10 "all:2" "hidden_1:all;hidden_2:all" 2>/dev/null; then
    echo "two dims of one tensor over one axis were accepted" >&2
    exit 1
fi
if "$program" 10 "all:2" "hiden_1:all" 2>/dev/null; then
    echo "a dim that no tensor has was accepted" >&2
    exit 1
fi
if "$program" 0 2>/dev/null; then echo "0 steps were accepted" >&2; exit 1; fi
