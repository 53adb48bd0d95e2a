#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/matmul: products are exact, and on 64 processors nobody sends more than the lower bound.
set -euo pipefail
program=$MTF_BUILD_DIR/examples/matmul
"$program" | awk '
    NR == 1 { next }
    $NF != 0 { print "wrong: " $0; bad = 1 }
    $(NF - 1) != "1.000" || $(NF - 2) <= 0 || $(NF - 3) != $(NF - 2) { print "more: " $0; bad = 1 }
    END { exit bad || NR != 4 }'
# Where no mesh has the ideal shape it may be more, never less.
"$program" 2 | awk '
    NR > 1 && ($NF != 0 || $(NF - 1) < 1 || $(NF - 1) > 1.2) { print; bad = 1 }
    END { exit bad || NR != 4 }'
for wrong in 1 9 x "2 2"; do
    # shellcheck disable=SC2086
    if "$program" $wrong 2>/dev/null; then echo "'$wrong' was accepted" >&2; exit 1; fi
done
