#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random programs give the same bits under mpirun on 2, 3 and 4 ranks as in one process.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
program=$MTF_BUILD_DIR/tests/prog_spmd_random_programs
for mesh in x:2 x:3 "x:2;y:2"; do
    case $mesh in x:2) ranks=2 ;; x:3) ranks=3 ;; *) ranks=4 ;; esac
    "$program" 1 60 "$mesh" >"$work/one"
    code=0
    "$MTF_SOURCE_DIR/scripts/mpirun" openmpi $ranks "$program" 1 60 "$mesh" >"$work/many" || code=$?
    [ $code = 77 ] && { echo "Open MPI is not installed"; exit 77; }
    [ $code = 0 ] || exit 1
    diff "$work/one" "$work/many" || { echo "mesh $mesh: bits differ" >&2; exit 1; }
    [ "$(grep -vc ' 0000000000000000$' "$work/one")" -gt 10 ] || { echo "too few legal layouts" >&2; exit 1; }
done
