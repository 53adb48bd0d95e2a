#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The collectives under both MPI families: bits equal those of one process.
set -uo pipefail
program=$MTF_BUILD_DIR/tests/prog_comm_collectives
ran=0
for family in openmpi mpich; do
    [ -e "$MTF_BUILD_DIR/libmtf_$family.so" ] || continue
    counts="2 3 4"
    [ $family = mpich ] && counts="2 3"
    for n in $counts; do
        out=$("$MTF_SOURCE_DIR/scripts/mpirun" $family "$n" "$program" 2>&1)
        code=$?
        [ $code = 77 ] && continue
        echo "$out"
        if [ $code != 0 ] || ! grep -q " $n ranks, .* equal" <<<"$out"; then
            echo "failed ($code): scripts/mpirun $family $n $program" >&2
            exit 1
        fi
        ran=$((ran + 1))
    done
done
[ $ran -gt 0 ] || exit 77
