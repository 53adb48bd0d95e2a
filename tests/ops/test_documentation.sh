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
. "$MTF_SOURCE_DIR/tests/support/link.sh"
compile_program "-ldnnl -lyaml -ljansson -lpthread -ldl -lm" "$folder/examples.c" "$folder/examples"
"$folder/examples"
