#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training with activations in bf16: near f32 and near itself on other layouts, bit for bit on any
# number of threads and after a resume; what checkpoints hold; every subcommand.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 2000 text.txt
make_config c.yaml
base=(--set train.steps=60 --set train.batch=7 --set model.dropout=0.1)
bf16=(--set train.dtype=bf16)
paper="batch:rows;vocab:cols;d_ff:cols;heads:cols"
run() { # NAME OPTION...
    local name=$1
    shift
    quiet "$mtf" train c.yaml --quiet --out "$name" "${base[@]}" "$@"
}

# A rounding to bf16 is off by 2^-8 of a number; a loss is a mean of many, so it moves less.
run f32
run b "${bf16[@]}"
run square "${bf16[@]}" --mesh "rows:2;cols:2" --layout "$paper"
run six "${bf16[@]}" --mesh "rows:3;cols:2" --layout "batch:rows;d_model:cols"
run micro "${bf16[@]}" --set train.microbatches=3
run again "${bf16[@]}" --set model.recompute=1
run narrow "${bf16[@]}" --set train.stored_dtype=bf16
for name in b square six micro; do close_losses f32 $name 0.0078; done
close_losses f32 narrow 0.05 # weights that are stored as bf16 lose small updates
[ "$(losses f32)" != "$(losses b)" ] || fail "bf16 changes nothing"
same_losses b again
run threads "${bf16[@]}" --mesh "rows:2;cols:2" --layout "$paper" --threads 1
same_losses square threads
same_checkpoint square threads 60

# ---- what checkpoints hold: the master type, and f32 for the optimizer
types() { # RUN: the types of weights, then of slots
    header "$1/checkpoint-60.safetensors" | jq -c '[
        (to_entries | map(select(.key | test("/[mv]$") | not) | .value.dtype // empty) | unique),
        (to_entries | map(select(.key | test("/[mv]$")) | .value.dtype) | unique)]'
}
[ "$(types b)" = '[["F32"],["F32"]]' ] || fail "types of b: $(types b)"
[ "$(types narrow)" = '[["F32"],["F32"]]' ] || fail "types of narrow: $(types narrow)"
run half "${bf16[@]}" --set train.stored_dtype=bf16 --set train.master_dtype=bf16
[ "$(types half)" = '[["BF16"],["F32"]]' ] || fail "types of half: $(types half)"
same_losses narrow half

# ---- a run that is continued is the run
for kept in f32 bf16; do
    types=("${bf16[@]}" --set train.stored_dtype=$kept --set train.master_dtype=$kept)
    run whole-$kept "${types[@]}"
    run part-$kept "${types[@]}" --set train.steps=30
    quiet "$mtf" train c.yaml --quiet --out part-$kept "${base[@]}" "${types[@]}" --resume
    same_losses part-$kept whole-$kept
    same_checkpoint part-$kept whole-$kept 60
done
expect 2 "$mtf" train c.yaml --quiet --out b "${base[@]}" --resume
expect_text "train.dtype is 'bf16' in the run and 'f32' now" err
expect 2 "$mtf" train c.yaml --quiet --out half "${base[@]}" "${bf16[@]}" --resume
expect_text "train.stored_dtype is 'bf16' in the run and 'f32' now" err
# a type that goes without saying may be said
quiet "$mtf" train c.yaml --quiet --out b "${base[@]}" "${bf16[@]}" --set train.stored_dtype=f32 \
    --set train.master_dtype=f32 --set train.steps=62 --resume

# ---- a checkpoint of another type, as another program may have written it
cp -r half other
sed -i 's/_dtype: bf16/_dtype: f32/' other/config.yaml
expect 2 "$mtf" eval other
expect_text "of the checkpoint is bf16[" err
expect_text "] (train.master_dtype)" err
sed -i 's/ master_dtype: f32/ master_dtype: bf16/; s/stored_dtype: f32/stored_dtype: bf16/' other/config.yaml
quiet "$mtf" eval other

# ---- the other subcommands
for name in b half; do
    quiet "$mtf" eval $name --json
    jq -e '.loss > 1 and .loss < 3' out >/dev/null || fail "eval of $name: $(cat out)"
    quiet "$mtf" generate $name --prompt "the " --tokens 12 --json
    jq -e '.text | length > 8' out >/dev/null || fail "generate of $name: $(cat out)"
done
quiet "$mtf" verify c.yaml "${bf16[@]}" --mesh "rows:2;cols:2" --layout "$paper" --json
jq -e '.ok' out >/dev/null || fail "verify: $(cat out)"
quiet "$mtf" train c.yaml "${bf16[@]}" --benchmark 2 --json
jq -e '.gflops > 0' out >/dev/null || fail "benchmark: $(cat out)"

# explain: state is that of f32, and the weights' gradients travel in f32.
quiet "$mtf" explain c.yaml "${bf16[@]}" --mesh "rows:2;cols:2" --layout "$paper" --json
mv out b.json
quiet "$mtf" explain c.yaml --mesh "rows:2;cols:2" --layout "$paper" --json
mv out f32.json
[ "$(jq .state_bytes b.json)" = "$(jq .state_bytes f32.json)" ] || fail "state bytes"
jq -e --slurpfile f f32.json '.instructions | map(select(.op == "all_reduce") | .bytes) | add
    <= ($f[0].instructions | map(select(.op == "all_reduce") | .bytes) | add)' b.json >/dev/null ||
    fail "bf16 sends more than f32"
exit 0
