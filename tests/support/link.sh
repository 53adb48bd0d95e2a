# SPDX-License-Identifier: Apache-2.0
# Compiling a program as a user would, against the headers and the static library of this build, with
# the libraries and sanitizers that the build was made with. Source it.

# compile_program LIBRARIES SOURCE PROGRAM
compile_program() {
    local libraries=$1 sanitize=()
    cached() { sed -n "s/^$1:[A-Z]*=//p" "$MTF_BUILD_DIR/CMakeCache.txt"; }
    case $(cached ONEDNN_LIBRARY) in '' | *NOTFOUND) libraries=${libraries//-ldnnl/} ;; esac
    case $(cached MTF_SANITIZE) in '' | OFF) ;; *) sanitize=("-fsanitize=$(cached MTF_SANITIZE)") ;; esac
    # shellcheck disable=SC2086
    cc -std=c17 -Wall -Wextra -Werror "${sanitize[@]}" -I"$MTF_SOURCE_DIR/include" "$2" \
        "$MTF_BUILD_DIR/libmtf.a" $libraries -o "$3"
}
