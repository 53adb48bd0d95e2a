#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An example builds and runs from the installed files alone, with the shared and the static library;
# the installed program finds its MPI module.
set -euo pipefail
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$MTF_BUILD_DIR" --prefix "$prefix" >/dev/null

cp "$MTF_SOURCE_DIR/examples/two_layer.c" "$prefix/example.c"
cd "$prefix"
lib=$(dirname "$(find "$prefix" -name libmtf.a)")
export PKG_CONFIG_PATH=$lib/pkgconfig
sanitize=()
nm "$lib/libmtf.a" 2>/dev/null | grep -q __asan_ && sanitize=(-fsanitize=address,undefined)

read -ra shared < <(pkg-config --cflags --libs mtf)
cc -std=c17 -Wall -Werror "${sanitize[@]}" example.c "${shared[@]}" -lm -o with-shared
read -ra private < <(pkg-config --static --libs mtf | sed 's/-lmtf//')
cc -std=c17 -Wall -Werror "${sanitize[@]}" -I"$prefix/include" example.c "$lib/libmtf.a" \
    "${private[@]}" -o with-static

run=(--mesh "rows:2;cols:2" --layout "batch:rows;hidden:cols" --steps 3 --json)
LD_LIBRARY_PATH=$lib ./with-shared "${run[@]}" >shared.json
./with-static "${run[@]}" >static.json
cmp shared.json static.json
grep -q '"losses":\[' shared.json

"$prefix/bin/mtf" --version | grep -q '^mtf '
if command -v mpirun.openmpi >/dev/null && ls "$lib"/mtf/libmtf_openmpi.so >/dev/null 2>&1; then
    LD_LIBRARY_PATH=$lib "$MTF_SOURCE_DIR/scripts/mpirun" openmpi 2 ./with-shared --mesh "rows:2" --layout batch:rows \
        --steps 3 --json >mpi.json
    grep -q '"losses":\[' mpi.json
fi
