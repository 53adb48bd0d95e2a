#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Under mpirun, planned memory is used memory: what a session has is what was planned in another
# process without it; nothing is written outside of it; slab and scratch are written to the end on
# some rank, scratch where cuts are uneven at least half.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$MTF_BUILD_DIR/tests/prog_exec_memory
"$program" plan >"$work/plan"
for ranks in 2 3 4; do
    code=0
    "$MTF_SOURCE_DIR/scripts/mpirun" openmpi $ranks "$program" run >>"$work/run" || code=$?
    [ $code = 77 ] && { echo "Open MPI is not installed"; exit 77; }
    [ $code = 0 ] || exit 1
done
sort -n "$work/run" -o "$work/run"
cat "$work/run"
cut -d' ' -f1-6 "$work/run" | diff "$work/plan" - || { echo "sessions have another plan" >&2; exit 1; }
awk '
    $10 != 0 { print "case " $1 ": " $10 " bytes were written outside"; bad = 1 }
    $4 != $7 { print "case " $1 ": " $7 " bytes of a slab of " $4 " are used"; bad = 1 }
    $8 > $5 || $9 > $6 { print "case " $1 ": more is used than planned"; bad = 1 }
    $2 == "even" && $8 != $5 { print "case " $1 ": " $8 " bytes of " $5 " of scratch are used"; bad = 1 }
    2 * $8 < $5 || $5 == 0 { print "case " $1 ": a plan of " $5 " bytes of scratch, used are " $8; bad = 1 }
    END { exit bad }' "$work/run"
