#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every optimiser, clipping, rules of learning rates and averages of weights from the configuration:
# they learn, layouts do not change the numbers, and a run that is continued is one that was not.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 600 text.txt
make_config c.yaml
paper="batch:rows;vocab:cols;d_ff:cols;heads:cols"
steps=8

# check NAME SETTING...: all that holds for every optimiser. In f64, since the update of Adam may
# turn rounding into a whole step where a gradient is next to zero.
check() {
    local name=$1 set=(--set train.steps=$steps --set train.dtype=f64) s
    shift
    for s in "$@"; do set+=(--set "$s"); done
    quiet "$mtf" train c.yaml --quiet --out "$name" "${set[@]}"
    [ "$(losses "$name" | sort -u | wc -l)" = $steps ] || fail "$name: the losses do not move"
    losses "$name" | sed -n '1p;$p' | paste -sd' ' | awk '{ exit !($2 < $1) }' ||
        fail "$name does not learn: $(losses "$name" | paste -sd' ')"
    quiet "$mtf" train c.yaml --quiet --out "$name-square" "${set[@]}" \
        --mesh "rows:2;cols:2" --layout "$paper"
    quiet "$mtf" train c.yaml --quiet --out "$name-five" "${set[@]}" \
        --mesh "a:5" --layout "d_model:a" --set train.microbatches=2
    close_losses "$name" "$name-square" 1e-9
    close_losses "$name" "$name-five" 1e-9
    quiet "$mtf" train c.yaml --quiet --out "$name-halves" "${set[@]}" \
        --set train.checkpoint_every=5
    # Back to step 5, as if the run had been killed behind it.
    rm "$name-halves/checkpoint-$steps.safetensors"
    quiet "$mtf" train c.yaml --out "$name-halves" --resume "${set[@]}"
    expect_text "continuing after step 5" err
    same_losses "$name" "$name-halves"
    same_checkpoint "$name" "$name-halves" $steps
}

check sgd train.optimizer=sgd train.learning_rate=0.5
check momentum train.optimizer=momentum train.learning_rate=0.1
check nesterov train.optimizer=nesterov train.learning_rate=0.1
check adam train.optimizer=adam train.bias_correction=false train.learning_rate=0.001
check adamw train.optimizer=adamw "train.exclude_from_weight_decay=norm|embedding" \
    train.weight_decay=0.5
check adafactor train.optimizer=adafactor adafactor.min_dim_size_to_factor=8 \
    train.learning_rate=1 "train.schedule=relative()"
check adafactor-all train.optimizer=adafactor adafactor.min_dim_size_to_factor=8 \
    adafactor.multiply_by_parameter_scale=true "adafactor.exclude_from_parameter_scale=norm|positions" \
    adafactor.decay=adam adafactor.beta2=0.99 adafactor.decay_offset=1 adafactor.beta1=0.9 \
    adafactor.clipping_threshold=0.8 adafactor.epsilon1=1e-20 adafactor.epsilon2=0.01 \
    adafactor.stacked_dims=heads train.learning_rate=0.05 train.ema_decay=0.9
check unfactored train.optimizer=adafactor adafactor.factored=false adafactor.exponent=0.7 \
    adafactor.multiply_by_parameter_scale=false
check rules train.optimizer=sgd train.learning_rate=0.5 "train.schedule_rules=norm -> 0.1 * \
linear_decay(0.5); embedding -> constant; softmax -> 0" train.schedule_offset=1
check clipped train.optimizer=sgd train.learning_rate=2 train.clip_value=0.01 \
    train.clip_variable_norm=0.05 train.clip_norm=0.1

# ---- what a checkpoint holds
slots() { # RUN: the kinds of slots, each once
    header "$1/checkpoint-$steps.safetensors" | jq -r 'del(.__metadata__) | keys[]' |
        grep -oE '/(m|v|vr|vc|average)$' | sort -u | paste -sd' '
}
[ "$(slots sgd)" = "" ] || fail "slots of sgd: $(slots sgd)"
[ "$(slots nesterov)" = "/m" ] || fail "slots of nesterov: $(slots nesterov)"
[ "$(slots adamw)" = "/m /v" ] || fail "slots of adamw: $(slots adamw)"
[ "$(slots adafactor)" = "/v /vc /vr" ] || fail "slots of adafactor: $(slots adafactor)"
[ "$(slots adafactor-all)" = "/average /m /v /vc /vr" ] || fail "slots: $(slots adafactor-all)"

# ---- rules: the log has the rate of train.schedule; a rate of 0 leaves a variable as it began
tensor() { # RUN STEP NAME: its bytes
    local f=$1/checkpoint-$2.safetensors n
    n=$((8 + $(od -An -tu8 -N8 "$f")))
    header "$f" | jq -r --arg t "$3" '.[$t].data_offsets | "\(.[0]) \(.[1])"' | {
        read -r from to
        tail -c +$((n + from + 1)) "$f" | head -c $((to - from)) | md5sum
    }
}
quiet "$mtf" train c.yaml --quiet --out before --set train.steps=1 --set train.dtype=f64 \
    --set train.optimizer=sgd --set train.learning_rate=0
for t in softmax embedding; do
    same=no
    [ "$(tensor before 1 $t)" = "$(tensor rules $steps $t)" ] && same=yes
    [ $t-$same = softmax-yes ] || [ $t-$same = embedding-no ] || fail "rule of $t: $same"
done

# ---- averages: validation, eval and generate take them, and the weights stay what they are
ema=(--set train.steps=$steps --set train.eval_every=3)
quiet "$mtf" train c.yaml --quiet --out plain "${ema[@]}"
quiet "$mtf" train c.yaml --out ema "${ema[@]}" --set train.ema_decay=0.7
expect_text "take the moving average of the weights (train.ema_decay 0.7)" err
same_losses plain ema
[ "$(tensor plain $steps softmax)" = "$(tensor ema $steps softmax)" ] || fail "weights with averages"
quiet "$mtf" eval ema --json
[ "$(jq -c .loss out)" = "$(jq -c 'select(has("valid_loss")) | .valid_loss' ema/log.jsonl | tail -n 1)" ] ||
    fail "eval is not the last validation"
averaged=$(jq -c .loss out)
quiet "$mtf" eval plain --json
[ "$averaged" != "$(jq -c .loss out)" ] || fail "eval takes the weights"
# The same by hand: the averages under the names of the weights.
quiet "$mtf" train c.yaml --quiet --out slow "${ema[@]}" --set train.ema_decay=0.999999999 \
    --set train.dtype=f64
quiet "$mtf" train c.yaml --quiet --out start --set train.steps=1 --set train.learning_rate=0 \
    --set train.dtype=f64
quiet "$mtf" eval slow --json
slow=$(jq -c .loss out)
quiet "$mtf" eval start --json
awk -v a="$slow" -v b="$(jq -c .loss out)" 'BEGIN { d = a / b - 1; exit !(d < 1e-8 && d > -1e-8) }' ||
    fail "an average that hardly moves has the loss $slow, the model at its start $(jq -c .loss out)"
quiet "$mtf" eval ema
expect_text "the moving average of the weights (train.ema_decay 0.7):" out
quiet "$mtf" generate ema --tokens 5 --seed 1

# ---- the loss of training alone is smoothed: validation is of the plain one
for loss in label_smoothing=0.2 z_loss=0.01; do
    check ${loss%=*} train.optimizer=sgd train.learning_rate=0.5 train.$loss train.eval_every=1
    [ "$(losses ${loss%=*} | head -n 1)" != "$(losses sgd | head -n 1)" ] || fail "$loss does nothing"
done
quiet "$mtf" train c.yaml --quiet --out smooth --set train.steps=1 --set train.learning_rate=0 \
    --set train.label_smoothing=0.9 --set train.z_loss=1
quiet "$mtf" train c.yaml --quiet --out clear --set train.steps=1 --set train.learning_rate=0
valid() { jq -c 'select(has("valid_loss")) | .valid_loss' "$1/log.jsonl"; }
[ "$(valid smooth)" = "$(valid clear)" ] || fail "validation with a smoothed loss"
exit 0
