#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# examples/layouts: every layout gives the losses of one processor.
set -euo pipefail
"$MTF_BUILD_DIR/examples/layouts" 5 | awk '
    NR == 1 { next }
    # The two losses are the first fields that look like numbers with a point.
    { n = 0; for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+\.[0-9]+$/ && n < 2) loss[n++] = $i }
    NR == 2 { first = loss[0]; last = loss[1] }
    { d = loss[0] - first; e = loss[1] - last }
    d > 2e-5 || d < -2e-5 || e > 2e-5 || e < -2e-5 { print "differs: " $0; bad = 1 }
    END { exit bad || NR != 7 || last >= first }'
if "$MTF_BUILD_DIR/examples/layouts" 0 2>/dev/null; then echo "0 steps were accepted" >&2; exit 1; fi
