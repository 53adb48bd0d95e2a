#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The two-layer example under mpirun: the bits of one process, printed once.
set -uo pipefail
program=$MTF_BUILD_DIR/examples/two_layer
ran=0
for family in openmpi mpich; do
    [ -e "$MTF_BUILD_DIR/libmtf_$family.so" ] || continue
    for arguments in "2 rows:2 batch:rows" "2 rows:2 hidden:rows" \
        "4 rows:2;cols:2 batch:rows;hidden:cols"; do
        read -r ranks mesh layout <<<"$arguments"
        [ $family = mpich ] && [ "$ranks" = 4 ] && continue
        options=(--mesh "$mesh" --layout "$layout" --steps 5 --json)
        got=$("$MTF_SOURCE_DIR/scripts/mpirun" $family "$ranks" "$program" "${options[@]}")
        code=$?
        [ $code = 77 ] && continue
        want=$("$program" "${options[@]}")
        if [ $code != 0 ] || [ "$got" != "$want" ]; then
            echo "$family, $arguments: exit $code, '$got' instead of '$want'" >&2
            exit 1
        fi
        ran=$((ran + 1))
    done
done
[ $ran -gt 0 ] || exit 77
