#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every move leaves the right block on every rank under mpirun, where blocks travel as messages.
set -euo pipefail
program=$MTF_BUILD_DIR/tests/prog_spmd_moves
for mesh in a:2 a:3 "a:2;b:2"; do
    case $mesh in a:2) ranks=2 ;; a:3) ranks=3 ;; *) ranks=4 ;; esac
    code=0
    "$MTF_SOURCE_DIR/scripts/mpirun" openmpi $ranks "$program" "$mesh" 5 || code=$?
    [ $code = 77 ] && { echo "Open MPI is not installed"; exit 77; }
    [ $code = 0 ] || exit 1
done
