#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs/ops.md is what the rows say, and its examples compile and build graphs without an error.
set -euo pipefail
page=$MTF_SOURCE_DIR/docs/ops.md
tool=$MTF_BUILD_DIR/tools/ops_doc
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The tool ends without freeing what the compiler may still need, which is no leak to report.
export ASAN_OPTIONS=detect_leaks=0
"$tool" "$MTF_SOURCE_DIR" >"$folder/ops.md"
if [ -n "${MTF_UPDATE_GOLDEN:-}" ]; then cp "$folder/ops.md" "$page"; fi
diff -u "$page" "$folder/ops.md" || { echo "docs/ops.md is old: \`make docs\` rewrites it" >&2; exit 1; }
[ "$(grep -c '^## ' "$page")" -ge 80 ] || { echo "docs/ops.md has too few rows" >&2; exit 1; }

"$tool" "$MTF_SOURCE_DIR" examples >"$folder/examples.c"
# What this build was made with.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$MTF_BUILD_DIR/CMakeCache.txt"; }
libraries="-lyaml -ljansson -lpthread -ldl -lm"
case $(cached ONEDNN_LIBRARY) in '' | *NOTFOUND) ;; *) libraries="-ldnnl $libraries" ;; esac
sanitize=()
case $(cached MTF_SANITIZE) in '' | OFF) ;; *) sanitize=("-fsanitize=$(cached MTF_SANITIZE)") ;; esac
# shellcheck disable=SC2086
"$(cached CMAKE_C_COMPILER)" -std=c17 -Wall -Wextra -Werror "${sanitize[@]}" \
    -I"$MTF_SOURCE_DIR/include" "$folder/examples.c" "$MTF_BUILD_DIR/libmtf.a" $libraries \
    -o "$folder/examples"
"$folder/examples"
