#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first 20 losses of a Transformer of four layers do not depend on the layout, on microbatches
# or on threads. relu in f32 is chaotic, so f32 runs with gelu.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 2000 text.txt
make_config c.yaml
base=(--set model.layers=4 --set train.optimizer=sgd --set train.learning_rate=0.1
    --set train.batch=7 --set model.dropout=0.1 --set train.warmup_steps=0)
paper="batch:rows;vocab:cols;d_ff:cols;heads:cols"
run() { # NAME OPTION...
    local name=$1
    shift
    quiet "$mtf" train c.yaml --quiet --out "$name" "${base[@]}" "$@"
}
f64=(--set train.dtype=f64 --set model.activation=relu)

run one
run again
same_losses one again
same_checkpoint one again 20
[ "$(losses one | sort -u | wc -l)" = 20 ] || fail "the losses do not move"

run micro --set train.microbatches=3
run micro-square --set train.microbatches=3 --mesh "rows:2;cols:2" --layout "$paper"
run batch --mesh "all:2" --layout "batch:all"
run four --mesh "all:4" --layout "d_ff:all;heads:all;vocab:all"
run square --mesh "rows:2;cols:2" --layout "$paper"
run six --mesh "rows:3;cols:2" --layout "$paper"
for name in micro micro-square batch four square six; do close_losses one $name 1e-5; done

run f64-one "${f64[@]}"
run f64-micro "${f64[@]}" --set train.microbatches=3
run f64-square "${f64[@]}" --mesh "rows:2;cols:2" --layout "$paper"
run f64-six "${f64[@]}" --mesh "rows:3;cols:2" --layout "$paper"
run f64-stream "${f64[@]}" --mesh "rows:2;cols:3" --layout "batch:rows;d_model:cols"
for name in micro square six stream; do close_losses f64-one f64-$name 1e-9; done

# Bits: 1 and 2 threads, and more workers than processors as well as fewer.
threads() { # NAME OPTION...
    local name=$1
    shift
    run "$name-t1" --threads 1 "$@"
    run "$name-t2" --threads 2 "$@"
    same_losses "$name-t1" "$name-t2"
    same_checkpoint "$name-t1" "$name-t2" 20
}
threads one --set model.d_ff=256
threads square --mesh "rows:2;cols:2" --layout "$paper"
threads f64 "${f64[@]}" --set train.microbatches=3
run three --threads 3 --mesh "rows:2;cols:2" --layout "$paper"
same_losses three square
same_checkpoint three square 20

# The environment's locale changes no number.
if locale -a 2>/dev/null | grep -qi 'de_DE.utf-\?8'; then
    LC_ALL=de_DE.UTF-8 run german
    same_losses one german
fi

# verify says the same, tensor by tensor.
quiet "$mtf" verify c.yaml --mesh "rows:3;cols:2" --layout "$paper" --json
[ "$(jq -c '[.ok, .tolerance, (.worst.relative < 1e-9)]' out)" = "[true,1e-9,true]" ] ||
    [ "$(jq -c '[.ok, (.worst.relative < 1e-9)]' out)" = "[true,true]" ] || fail "verify"
expect 1 "$mtf" verify c.yaml --mesh "rows:2" --layout "d_ff:rows" --tolerance 1e-30
expect_text "mtf: the layout differs from one processor" err
exit 0
