#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The two-layer example: losses fall at every size, bad input gives one line and exit code 2.
set -uo pipefail
program=$MTF_BUILD_DIR/examples/two_layer
failed() { echo "$1" >&2; exit 1; }

# The default rate suits every size: no loss rises, and with enough hidden units the last is small.
for batch in 1 7 96 300; do
    for io in 1 5 33 200; do
        for hidden in 1 3 64 400; do
            "$program" --batch $batch --io $io --hidden $hidden --steps 25 --threads 1 |
                awk -v hidden=$hidden -v io=$io '
                    $1 != "step" || $2 != NR || $3 != "loss" { exit bad = 1 }
                    NR == 1 { first = $4 }
                    NR > 1 && $4 > before * 1.00001 { exit bad = 1 }
                    { before = $4 }
                    END { exit bad || NR != 25 || (hidden >= 2 * io && before > first / 2) }' ||
                failed "batch $batch io $io hidden $hidden does not converge"
        done
    done
done

# Without a mesh, on virtual processors, and with f64 the first losses are the same.
"$program" --help | grep -q -- '--input-gradient' || failed "--help does not list the options"
[ "$("$program" --steps 3 --json)" = "$("$program" --steps=3 --json --threads=2)" ] ||
    failed "threads change the losses"

expect() { # message, arguments...
    local want=$1 got code
    shift
    got=$("$program" "$@" 2>&1 >/dev/null)
    code=$?
    [ $code = 2 ] || failed "two_layer $*: exit $code instead of 2"
    [ "$got" = "two_layer: $want" ] || failed "two_layer $*: '$got' instead of '$want'"
}
expect "unknown option '--mehs'; did you mean '--mesh'?" --mehs rows:2
expect "unknown option '--imput-gradient'; did you mean '--input-gradient'?" --imput-gradient
expect "unexpected argument 'rows:2'; see two_layer --help" rows:2
expect "--steps is '0': expected a whole number from 1 to 1000000000" --steps 0
expect "--batch is '-3': expected a whole number from 1 to 16777216" --batch=-3
expect "--io is '4x': expected a whole number from 1 to 16777216" --io 4x
expect "--hidden is '': expected a whole number from 1 to 16777216" --hidden=
expect "--dtype is 'f16': expected f32 or f64" --dtype f16
expect "--json takes no value, but was given 'yes'" --json=yes
expect "--mesh needs a value: axes of processors, for example \"rows:2;cols:2\"" --mesh
expect "mesh 'rows2': 'rows2' is no name:size, for example rows:2;cols:4" --mesh rows2
expect "layout rule 'batch:cols': the mesh 'rows:2' has no axis called 'cols'" \
    --mesh rows:2 --layout batch:cols --strict
expect "layout rule for 'bacth': no tensor has a dim of this name" \
    --mesh rows:2 --layout bacth:rows --strict
expect "placeholder 'x': dims batch=64 and io=32 are both split over mesh axis 'rows'; map one of them elsewhere in the layout" \
    --mesh rows:2 --layout 'batch:rows;io:rows'

warning=$("$program" --steps 1 --mesh rows:2 --layout 'batch:cols' 2>&1 >/dev/null) ||
    failed "an axis that the mesh lacks is no error without --strict"
[[ $warning == "two_layer: warning: layout rule 'batch:cols'"* ]] || failed "no warning: $warning"
if [ -e /dev/full ]; then
    "$program" --steps 1 >/dev/full 2>/dev/null
    [ $? = 1 ] || failed "a full disk is exit code 1"
fi
exit 0
