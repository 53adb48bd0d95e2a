#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Training under mpirun gives the bits of one process on the same mesh; it saves on a signal and
# ends when a rank is killed.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 2000 text.txt
make_config c.yaml
base=(--quiet --set model.layers=4 --set train.optimizer=sgd --set train.learning_rate=0.1
    --set train.batch=7 --set model.dropout=0.1 --set train.warmup_steps=0)
paper="batch:rows;vocab:cols;d_ff:cols;heads:cols"
ran=0

compare() { # FAMILY RANKS MESH LAYOUT OPTION...
    local family=$1 ranks=$2 mesh=$3 layout=$4
    shift 4
    rm -rf local mpi
    quiet "$mtf" train c.yaml --out local "${base[@]}" --mesh "$mesh" --layout "$layout" "$@"
    quiet "$mpirun" "$family" "$ranks" "$mtf" train c.yaml --out mpi "${base[@]}" --mesh "$mesh" \
        --layout "$layout" "$@"
    [ "$(cat out)" = mpi ] || fail "only rank 0 prints: $(cat out)"
    same_losses local mpi
    same_checkpoint local mpi 20
    [ "$(jq -c 'select(has("valid_loss"))' local/log.jsonl)" = \
        "$(jq -c 'select(has("valid_loss"))' mpi/log.jsonl)" ] || fail "validation of $family"
    ran=$((ran + 1))
}

# ranks_of JOB: the processes of the program below a launcher.
ranks_of() {
    local child
    for child in $(pgrep -P "$1"); do
        case $(cat "/proc/$child/comm" 2>/dev/null) in
        mtf) echo "$child" ;;
        *) ranks_of "$child" ;;
        esac
    done
}

start() { # FAMILY RANKS RUN OPTION...: until ten steps are made; sets job and pids.
    local family=$1 ranks=$2 run=$3
    shift 3
    "$mpirun" "$family" "$ranks" "$mtf" train c.yaml --out "$run" "${base[@]}" \
        --set train.steps=1000000 "$@" >out 2>err &
    job=$!
    for _ in $(seq 600); do
        [ "$(wc -l 2>/dev/null <"$run/log.jsonl" || echo 0)" -gt 10 ] && break
        sleep 0.05
    done
    pids=$(ranks_of $job)
    [ "$(wc -w <<<"$pids")" = "$ranks" ] || fail "$family: not $ranks ranks but: $pids"
}

gone() { # CODE: the job and its ranks have ended within ten seconds, with that code (any: not 0).
    local code pid left
    for _ in $(seq 100); do
        left=
        for pid in $job $pids; do kill -0 "$pid" 2>/dev/null && left=$pid; done
        [ -z "$left" ] && break
        sleep 0.1
    done
    # shellcheck disable=SC2086
    [ -z "$left" ] || { kill -9 $job $pids; fail "process $left does not end"; }
    wait $job
    code=$?
    if [ "$1" = any ]; then [ $code != 0 ]; else [ $code = "$1" ]; fi || fail "ended with $code"
    echo "$family: ended with $code"
}

for family in openmpi mpich; do
    have $family || continue
    compare $family 2 "all:2" "batch:all"
    compare $family 2 "all:2" "d_model:all" --set train.dtype=bf16
    [ $family = openmpi ] && compare openmpi 4 "rows:2;cols:2" "$paper" --set train.optimizer=adam \
        --set train.microbatches=2

    # A signal to one rank, and not the first.
    rm -rf signal
    start $family 2 signal --mesh "all:2" --layout "batch:all"
    kill -TERM "${pids##*$'\n'}"
    gone 143
    step=$(losses signal | wc -l)
    [ -e "signal/checkpoint-$step.safetensors" ] || fail "$family: nothing saved: $(ls signal)"
    [ "$(wc -l <out)" = 1 ] || fail "$family: more than the folder on stdout"
    steps=$((step + 3))
    rm -rf whole
    quiet "$mpirun" $family 2 "$mtf" train c.yaml --out signal "${base[@]}" --resume \
        --mesh "all:2" --layout "batch:all" --set train.steps=$steps
    quiet "$mtf" train c.yaml --out whole "${base[@]}" --mesh "all:2" --layout "batch:all" \
        --set train.steps=$steps
    same_losses signal whole
    same_checkpoint signal whole $steps

    # One of four is killed.
    rm -rf killed
    start $family 4 killed --mesh "rows:2;cols:2" --layout "$paper"
    kill -9 "$(sed -n 3p <<<"$pids")"
    gone any
done
[ $ran -gt 0 ] || exit 77
have openmpi || exit 0

# Checkpoints move between meshes and processes.
gelu=(--set train.optimizer=adam --set train.learning_rate=0.003)
half=("${gelu[@]}" --set train.steps=10)
full=("${gelu[@]}" --resume)
quiet "$mtf" train c.yaml --out one "${base[@]}" "${half[@]}"
quiet "$mpirun" openmpi 4 "$mtf" train c.yaml --out four "${base[@]}" "${half[@]}" \
    --mesh "rows:2;cols:2" --layout "$paper"
cp -r one one-three
cp -r four four-three
cp -r four four-one
quiet "$mtf" train c.yaml --out one "${base[@]}" "${full[@]}"
quiet "$mtf" train c.yaml --out four-one "${base[@]}" "${full[@]}" --mesh "" --layout ""
for run in one-three four-three; do
    quiet "$mpirun" openmpi 3 "$mtf" train c.yaml --out $run "${base[@]}" "${full[@]}" \
        --mesh "all:3" --layout "heads:all;d_ff:all;vocab:all"
done
for run in one-three four-three four-one; do close_losses one $run 2e-5; done

# eval and generate give one answer, from any number of ranks.
quiet "$mtf" eval one --json
cp out eval.one
quiet "$mpirun" openmpi 2 "$mtf" eval one --json --mesh "all:2" --layout "d_ff:all"
[ "$(wc -l <out)" = 1 ] || fail "eval printed $(wc -l <out) lines"
paste <(jq .loss eval.one) <(jq .loss out) | awk '{ exit !(($1 - $2) ^ 2 < 1e-10) }' || fail "eval"
quiet "$mtf" generate one --tokens 20 --prompt "the "
cp out text.one
quiet "$mpirun" openmpi 2 "$mtf" generate one --tokens 20 --prompt "the " --mesh "all:2" \
    --layout "vocab:all"
cmp out text.one >&2 || fail "generate under mpirun"
exit 0
