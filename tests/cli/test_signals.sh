#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGTERM and SIGINT in mid-run save and end; a second one ends at once; pipes close quietly.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 2000 text.txt
make_config c.yaml
long=(--set train.steps=1000000 --set model.dropout=0.1)

# started RUN: waits until it has made ten steps.
started() {
    for _ in $(seq 600); do
        [ "$(wc -l 2>/dev/null <"$1/log.jsonl" || echo 0)" -gt 10 ] && return
        sleep 0.05
    done
    fail "$1 does not start"
}

# ended JOB CODE: within ten seconds.
ended() {
    local code
    for _ in $(seq 100); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -0 "$1" 2>/dev/null && { kill -9 "$1"; fail "job $1 does not end"; }
    wait "$1"
    code=$?
    [ $code = "$2" ] || fail "ended with $code, not $2"
}

for signal in TERM INT; do
    code=143
    [ $signal = INT ] && code=130
    # A shell's background job ignores SIGINT; setsid gives it back.
    env --default-signal=INT "$mtf" train c.yaml --quiet --out $signal "${long[@]}" >out 2>err &
    started $signal
    kill -$signal $!
    ended $! $code
    [ -s err ] && fail "a message after SIG$signal"
    [ "$(cat out)" = $signal ] || fail "the folder was not printed"
    step=$(losses $signal | wc -l)
    [ "$(ls $signal)" = "$(printf '%s\n' "checkpoint-$step.safetensors" config.yaml log.jsonl)" ] ||
        fail "checkpoint of step $step: $(ls $signal)"
    # What was saved goes on as if nothing had happened.
    steps=$((step + 5))
    quiet "$mtf" train c.yaml --quiet --out $signal "${long[@]}" --resume --set train.steps=$steps
    quiet "$mtf" train c.yaml --quiet --out $signal-whole "${long[@]}" --set train.steps=$steps
    same_losses $signal $signal-whole
    same_checkpoint $signal $signal-whole $steps
done

# A step of seconds: the second signal does not wait for it.
"$mtf" train c.yaml --quiet --out twice --threads 1 --set train.batch=500 --set model.layers=8 \
    --set model.d_model=256 --set model.d_ff=1024 >out 2>err &
job=$!
until [ -e twice/log.jsonl ]; do sleep 0.05; done
sleep 0.3
kill -TERM $job
sleep 0.3
kill -0 $job 2>/dev/null || fail "the first signal did not let the step end"
kill -TERM $job
ended $job 143
[ "$(ls twice)" = "$(printf 'config.yaml\nlog.jsonl')" ] || fail "something was saved: $(ls twice)"

# A reader that goes away.
"$mtf" explain c.yaml --program 2>err | head -n 1 >out
[ "$(wc -l <out)" = 1 ] && [ ! -s err ] || fail "explain | head"
"$mtf" train --help 2>err | true
[ ! -s err ] || fail "--help into a closed pipe"
"$mtf" explain c.yaml >/dev/full 2>err
[ $? = 1 ] && grep -q '^mtf: writing to stdout: No space left' err || fail "stdout on a full device"
exit 0
