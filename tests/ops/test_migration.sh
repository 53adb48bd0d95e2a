#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/from-mesh-tensorflow.md names things that exist: tests that ctest knows, functions that a
# public header declares; and every name of the original once.
set -euo pipefail
page=$MTF_SOURCE_DIR/docs/from-mesh-tensorflow.md
LEAST_ROWS=350

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ctest --test-dir "$MTF_BUILD_DIR" -N | sed -n 's/^ *Test *#[0-9]*: //p' >"$folder/tests"
# What the headers say outside of their comments, as words.
sed -E -e 's#/\*.*\*/##' -e '/\/\*/,/\*\//d' "$MTF_SOURCE_DIR"/include/mtf/*.h |
    grep -oE '\b(mtf|MTF)_[A-Za-z0-9_]+' | sort -u >"$folder/declared"
[ "$(wc -l <"$folder/tests")" -ge 80 ] || { echo "ctest -N lists too few tests" >&2; exit 1; }

awk -F'|' -v least="$LEAST_ROWS" -v folder="$folder" '
function wrong(what) { printf "line %d: %s: %s\n", NR, what, $0; failed = 1 }
function trim(text) { gsub(/^ +| +$/, "", text); return text }
BEGIN {
    while ((getline line <(folder "/tests")) > 0) known[line] = 1
    while ((getline line <(folder "/declared")) > 0) declared[line] = 1
}
!/^\|/ { in_table = 0; next }
!in_table { in_table = 1; tables++; if (trim($2) != "original") wrong("another table") }
NF != 5 { wrong("not three cells"); next }
trim($2) == "original" || /^\|---/ { next }
{
    rows++
    original = trim($2); ours = trim($3); test = trim($4)
    if (original == "" || ours == "") wrong("an empty cell")
    if (seen[original]++) wrong("a name for the second time")
    later = ours ~ /(^|[^a-z])later([^a-z]|$)/
    if (later && test != "") wrong("later, and yet a test")
    if (!later && test == "") wrong("no test")
    if (test != "" && !(test in known)) wrong("ctest -N knows no such test")
    while (match(ours, /(mtf|MTF)_[A-Za-z0-9_]+/)) {
        name = substr(ours, RSTART, RLENGTH)
        if (!(name in declared)) wrong(name " is in no public header")
        ours = substr(ours, RSTART + RLENGTH)
    }
}
END {
    if (tables != 1) { printf "%d tables\n", tables; failed = 1 }
    if (rows < least) { printf "%d rows are less than %d\n", rows, least; failed = 1 }
    exit failed
}' "$page" >&2
