#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random layouts on random meshes: each is refused with its reason, or trains and validates to the
# numbers of one processor. MTF_SEED=N MTF_CASES=N tries others.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 600 text.txt
make_config c.yaml
RANDOM=${MTF_SEED:-1}
cases=${MTF_CASES:-60}
dims=(batch length memory_length stream_length d_model d_ff heads d_kv vocab max_length)
meshes=("a:2;b:2" "a:3;b:2" "a:2;b:1;c:3" "a:5" "a:7;b:2")
options=(--quiet --set train.steps=3 --set train.batch=5 --set model.tied=true)
legal=0

# random_layout MESH: sets layout; every fourth dim is split, now and then over two axes.
random_layout() {
    local axes d
    mapfile -t axes < <(tr ';' '\n' <<<"$1" | cut -d: -f1)
    layout=
    for d in "${dims[@]}"; do
        case $((RANDOM % 16)) in
        0 | 1 | 2 | 3) layout="$layout;$d:${axes[RANDOM % ${#axes[@]}]}" ;;
        4) [ ${#axes[@]} -gt 1 ] && layout="$layout;$d:${axes[1]}+${axes[0]}" ;;
        esac
    done
    layout=${layout#;}
}

quiet "$mtf" train c.yaml --out base "${options[@]}"
for _ in $(seq "$cases"); do
    mesh=${meshes[RANDOM % ${#meshes[@]}]}
    random_layout "$mesh"
    "$mtf" train c.yaml --out run "${options[@]}" --mesh "$mesh" --layout "$layout" >out 2>err
    code=$?
    if [ $code = 2 ] && grep -q "are both split over mesh axis" err; then continue; fi
    [ $code = 0 ] || fail "mesh '$mesh', layout '$layout': exit $code"
    close_losses base run 1e-5 >/dev/null
    legal=$((legal + 1))
    rm -rf run
done
[ $legal -ge $((cases / 4)) ] || fail "only $legal of $cases layouts were legal"
echo "$legal of $cases layouts were legal, and all equal one processor"
exit 0
