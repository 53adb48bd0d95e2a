#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first program of README.md: it is short, it compiles against the public headers and the static
# library alone, and its loss falls. The layouts of its table are those that the example takes.
set -uo pipefail
cd "$MTF_SOURCE_DIR" || exit 1
failed() { echo "README.md: $1" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$folder/first.c"
lines=$(wc -l <"$folder/first.c")
[ "$lines" -gt 20 ] || failed "holds no first program"
[ "$lines" -lt 40 ] || failed "the first program has $lines lines; it must be under 40"

command=$(sed -n 's/^    \(cc .*\)$/\1/p' README.md)
[ -n "$command" ] || failed "does not say how to compile the first program"
libraries=$(grep -o -- '-l[a-z]*' <<<"$command" | tr '\n' ' ')
. tests/support/link.sh
compile_program "$libraries" "$folder/first.c" "$folder/first" || failed "the first program does not compile"
# It frees nothing at its end, and that is no leak to report.
ASAN_OPTIONS=detect_leaks=0 "$folder/first" >"$folder/out" || failed "the first program fails"
awk '$1 != "step" || $2 != NR || $3 != "loss" { exit bad = 1 }
     NR == 1 { first = $4 }
     { last = $4 }
     END { exit bad || NR != 100 || last > first / 4 }' "$folder/out" ||
    failed "the first program's loss does not fall: $(tail -1 "$folder/out")"

# The layouts of the table, on axes of two processors each.
layouts=$(sed -n 's/^| `\([a-z:;]*\)` |.*$/\1/p' README.md)
[ "$(wc -l <<<"$layouts")" = 4 ] || failed "the table of layouts has changed"
for layout in $layouts; do
    mesh=$(sed 's/[a-z]*:\([a-z]*\)/\1:2/g' <<<"$layout")
    "$MTF_BUILD_DIR/examples/two_layer" --strict --steps 1 --mesh "$mesh" --layout "$layout" \
        >/dev/null || failed "layout $layout does not run"
done
