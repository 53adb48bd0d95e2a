#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A run that is killed and continued gives the numbers of one that was not. 2000 words are about 700
# windows, so that a batch of 30 begins a new epoch between step 20 and 25 as well.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 2000 text.txt
make_config c.yaml
paper="batch:rows;vocab:cols;d_ff:cols;heads:cols"

# killed RUN STEP OPTION...: trains in RUN, kill -9 once the checkpoint of STEP is there and before
# the end. A machine that is too fast or too slow for that gets more tries.
killed() {
    local run=$1 step=$2 job
    shift 2
    for _ in 1 2 3 4 5; do
        rm -rf "$run"
        "$mtf" train c.yaml --quiet --out "$run" "$@" >out 2>err &
        job=$!
        until [ "$(wc -l 2>/dev/null <"$run/log.jsonl")0" -gt $((10 * step + 30)) ] ||
            ! kill -0 $job 2>/dev/null; do
            sleep 0.002
        done
        kill -9 $job 2>/dev/null
        wait $job 2>/dev/null
        [ -e "$run/checkpoint-20.safetensors" ] && continue
        [ -e "$run/checkpoint-$step.safetensors" ] || continue
        [ "$(losses "$run" 2>/dev/null | wc -l)" -gt "$step" ] && return 0
    done
    fail "$run was never killed between step $step and the end"
}

check_killed() { # NAME OPTION...
    local name=$1
    shift
    quiet "$mtf" train c.yaml --quiet --out "$name-whole" "$@" --set train.checkpoint_every=0
    killed "$name" 10 "$@" --set train.checkpoint_every=10
    quiet "$mtf" train c.yaml --out "$name" --resume "$@" --set train.checkpoint_every=0
    expect_text "continuing after step 10" err
    [ "$(losses "$name" | wc -l)" = 20 ] || fail "$name has not 20 training lines"
    [ "$(jq -c 'select(has("run"))' "$name/log.jsonl" | wc -l)" = 1 ] || fail "run lines of $name"
    [ "$(head -n 1 "$name/log.jsonl" | jq 'has("run")')" = true ] || fail "first line of $name"
    [ "$(jq -c 'select(has("loss")) | .step' "$name/log.jsonl")" = "$(seq 20)" ] ||
        fail "steps of $name"
    same_losses "$name" "$name-whole"
    same_checkpoint "$name" "$name-whole" 20
}

# Larger than need be, so that ten steps take a while. Dropout goes on where it left off.
slow=(--set train.batch=30 --set model.d_ff=512 --set model.dropout=0.1 --threads 2)
check_killed plain "${slow[@]}"
check_killed micro "${slow[@]}" --set train.microbatches=4
check_killed split "${slow[@]}" --mesh "rows:2;cols:2" --layout "$paper"

# ---- other meshes. A run of ten steps is continued to 20; it is what a longer run does in them.
half=(--set train.steps=10 --set train.batch=6)
full=(--set train.steps=20 --set train.batch=6 --resume)
quiet "$mtf" train c.yaml --quiet --out one "${half[@]}" --set model.dropout=0.1
quiet "$mtf" train c.yaml --quiet --out four "${half[@]}" --set model.dropout=0.1 \
    --mesh "rows:2;cols:2" --layout "$paper"
other() { # NAME FROM OPTION...
    local name=$1 from=$2
    shift 2
    cp -r "$from" "$name"
    quiet "$mtf" train c.yaml --quiet --out "$name" "${full[@]}" --set model.dropout=0.1 "$@"
}
other one-one one
other one-square one --mesh "rows:2;cols:2" --layout "$paper"
other four-one four --mesh "" --layout ""
other four-four four --mesh "all:4" --layout "batch:all"
other four-three four --mesh "all:3" --layout "batch:all" --threads 1
other one-again one --set model.recompute=1
same_losses one-one one-again
for run in one-square four-one four-four four-three; do close_losses one-one $run 2e-5; done

# ---- the log: lines after the checkpoint go, a torn line too
cp -r four cut
for s in 11 12; do
    echo "{\"step\": $s, \"loss\": 9.5}" >>cut/log.jsonl
done
printf '{"step": 13, "lo' >>cut/log.jsonl
quiet "$mtf" train c.yaml --quiet --out cut "${full[@]}" --set model.dropout=0.1 --mesh "" --layout ""
same_losses cut four-one
grep -q '9\.5}' cut/log.jsonl && fail "lines after the checkpoint are still there"

# ---- a broken newest checkpoint: the one before is taken
quiet "$mtf" train c.yaml --quiet --out broken --set train.checkpoint_every=5
[ "$(ls broken)" = "$(printf '%s\n' checkpoint-15.safetensors checkpoint-20.safetensors \
    config.yaml log.jsonl)" ] || fail "the newest two checkpoints: $(ls broken)"
cp -r broken whole
truncate -s -100 broken/checkpoint-20.safetensors
quiet "$mtf" train c.yaml --out broken --resume
expect_text "mtf: warning: 'broken/checkpoint-20.safetensors'" err
expect_text "going back to the checkpoint before" err
expect_text "continuing after step 15" err
same_losses broken whole
same_checkpoint broken whole 20

# ---- nothing to continue from, and nothing left to do
quiet "$mtf" train c.yaml --out fresh --resume
expect_text "no checkpoint: starting at step 0" err
same_checkpoint fresh whole 20
quiet "$mtf" train c.yaml --out fresh --resume
expect_text "has all of its 20 steps already" err
[ "$(losses fresh | wc -l)" = 20 ] || fail "lines of a finished run"
[ "$(jq -c 'select(has("valid_loss"))' fresh/log.jsonl | wc -l)" = 1 ] ||
    fail "a finished run was validated twice"

# A signal leaves out the validation that is due after its step; the run that goes on makes it.
quiet "$mtf" train c.yaml --quiet --out due --set train.steps=5 --set train.eval_every=5
sed -i '/valid_loss/d' due/log.jsonl
quiet "$mtf" train c.yaml --quiet --out due --resume --set train.steps=10 --set train.eval_every=5
[ "$(jq -c 'select(has("valid_loss")) | .step' due/log.jsonl | paste -sd' ')" = "5 10" ] ||
    fail "validation after a signal"

# ---- what may differ, and what may not
cp -r whole free
quiet "$mtf" train c.yaml --quiet --out free --resume --mesh "rows:2" --layout "batch:rows" \
    --threads 2 --set train.steps=22 --set train.eval_every=7 --set train.checkpoint_every=3
grep -q 'steps: 22' free/config.yaml || fail "config.yaml does not hold the steps"
refused() { # KEY=VALUE MESSAGE
    expect 2 "$mtf" train c.yaml --out whole --resume --set "$1"
    expect_text "$2" err
}
refused train.seed=2 "train.seed is '1' in the run and '2' now"
refused model.d_ff=65 "model.d_ff is '64' in the run and '65' now"
refused train.optimizer=sgd "train.optimizer is 'adam' in the run and 'sgd' now"
refused train.dtype=f64 "train.dtype is 'f32' in the run and 'f64' now"
refused train.microbatches=2 "train.microbatches is '1' in the run and '2' now"
cp text.txt other.txt && echo 'Ω' >>other.txt
refused data.train=other.txt "data.train is 'text.txt' in the run and 'other.txt' now"
cp text.txt kept.txt && echo 'Ω' >>text.txt
expect 2 "$mtf" train c.yaml --out whole --resume
expect_text "another vocabulary" err
exit 0
