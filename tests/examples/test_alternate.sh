#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/alternate: every layout gives the losses of one processor; where the layout alternates
# every second layer ends in a sum, so with twice the layers there are about twice the sums.
set -euo pipefail
program=$MTF_BUILD_DIR/examples/alternate
"$program" 10 6 | awk '
    NR == 1 { next }
    { n = 0; for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+$/ && n < 2) loss[n++] = $i }
    NR == 2 { first = loss[0]; last = loss[1] }
    { d = loss[0] - first; e = loss[1] - last }
    d > 2e-3 || d < -2e-3 || e > 2e-3 || e < -2e-3 { print "differs: " $0; bad = 1 }
    END { exit bad || NR != 8 || last >= first }'
calls() { "$program" 2 "$1" | awk '$2 == "odd:all" { print $5 }'; }
[ "$(calls 2)" -le 2 ] || { echo "two layers need $(calls 2) calls" >&2; exit 1; }
[ "$(calls 8)" -le 8 ] || { echo "eight layers need $(calls 8) calls" >&2; exit 1; }
for wrong in 1 "10 3" "10 0" "10 66" x; do
    # shellcheck disable=SC2086
    if "$program" $wrong 2>/dev/null; then echo "'$wrong' was accepted" >&2; exit 1; fi
done
