#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the commands print and leave: JSON keys, the folder of a run, checkpoints, validation, help.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 1500 text.txt
make_config c.yaml
tokens=$(wc -m <text.txt)

# keys FILE FILTER WANT: the keys of an object, in order.
keys() {
    [ "$(wc -l <"$1")" = 1 ] || fail "$1 has not one line"
    [ "$(jq -c "$2 | keys_unsorted | join(\" \")" "$1")" = "\"$3\"" ] ||
        fail "keys of $2: $(jq -c "$2 | keys_unsorted" "$1")"
}

# ---- train
quiet "$mtf" train c.yaml --json --out run --set train.steps=6 --set train.eval_every=3 \
    --set train.checkpoint_every=2
keys out . "out steps valid_loss"
expect_text "left" err
[ "$(ls run | paste -sd' ')" = "checkpoint-4.safetensors checkpoint-6.safetensors config.yaml log.jsonl" ] ||
    fail "the run holds $(ls run)"
head -n 1 run/log.jsonl >line
keys line . run
keys line .run "version mesh layout parameters seed threads"
sed -n 2p run/log.jsonl >line
keys line . "step loss grad_norm learning_rate tokens tokens_per_second seconds"
grep valid_loss run/log.jsonl | head -n 1 >line
keys line . "step valid_loss valid_tokens valid_perplexity"
[ "$(jq -c 'select(has("valid_loss")) | .step' run/log.jsonl | paste -sd' ')" = "3 6" ] ||
    fail "validation steps"
[ "$(jq -c 'select(has("loss")) | .tokens' run/log.jsonl | sort -u)" = 96 ] || fail "tokens per step"
grep -q "$work" run/config.yaml run/log.jsonl && fail "an absolute path"
"$mtf" train run/config.yaml --quiet --out again >out 2>err || fail "config.yaml does not run again"
same_checkpoint run again 6
quiet "$mtf" train c.yaml --set train.steps=1
[ "$(cat out)" = "$(echo runs/c-*)" ] && [ -d "$(cat out)" ] || fail "the folder of a run without --out"
quiet "$mtf" train c.yaml --quiet --out silent --set train.steps=1
[ ! -s err ] || fail "--quiet speaks"

# ---- validation: every token of the last part once
want=$(awk -v n="$tokens" 'BEGIN { print int(n * 0.1) }')
[ "$(jq -c 'select(has("valid_loss")) | .valid_tokens' run/log.jsonl | sort -u)" = "$want" ] ||
    fail "valid_tokens is not $want"
for fraction in 0.013 0.25; do
    quiet "$mtf" train c.yaml --quiet --out part-$fraction --set train.steps=1 \
        --set data.valid_fraction=$fraction
    want=$(awk -v n="$tokens" -v f=$fraction 'BEGIN { print int(n * f) }')
    [ "$(jq -c 'select(has("valid_loss")) | .valid_tokens' part-$fraction/log.jsonl)" = "$want" ] ||
        fail "valid_tokens of $fraction is not $want"
done
quiet "$mtf" train c.yaml --json --out none --set train.steps=1 --set data.valid_fraction=0
grep -q valid_loss none/log.jsonl && fail "a validation without a text"
keys out . "out steps"

# ---- eval: the last validation of the log, bit for bit
quiet "$mtf" eval run --json
keys out . "tokens loss perplexity words perplexity_per_word"
[ "$(jq -c .loss out)" = "$(jq -c 'select(has("valid_loss")) | .valid_loss' run/log.jsonl | tail -n 1)" ] ||
    fail "eval $(jq -c .loss out) is not the last valid_loss"
jq -e '(.loss | exp) as $p | (.loss * .tokens / .words | exp) as $w |
    (.perplexity / $p - 1 | fabs) < 1e-12 and (.perplexity_per_word / $w - 1 | fabs) < 1e-9' out \
    >/dev/null || fail "perplexities: $(cat out)"
tail -c "$(jq .tokens out)" text.txt >tail.txt
[ "$(jq .words out)" = "$(wc -w <tail.txt)" ] || fail "words"
quiet "$mtf" eval run --json --data tail.txt
[ "$(jq .tokens out)" = $(($(wc -m <tail.txt) - 1)) ] || fail "tokens of --data: $(jq .tokens out)"
quiet "$mtf" eval run --mesh "rows:2;cols:2" --layout "batch:rows;vocab:cols"
expect_text "tokens, loss" out
quiet "$mtf" eval run --json --layout "batch:nowhere"
expect_text "mtf: warning: layout rule 'batch:nowhere'" err

# ---- generate
quiet "$mtf" generate run --json --tokens 12 --prompt "the " --seed 5
keys out . "text seed"
[ "$(jq -c '[(.text | length), .seed]' out)" = "[16,5]" ] || fail "generate: $(cat out)"
cp out first
quiet "$mtf" generate run --json --tokens 12 --prompt "the " --seed 5 --threads 1
cmp out first >&2 || fail "generate differs from itself"
quiet "$mtf" generate run --tokens 200 --seed 5
cp out first
quiet "$mtf" generate run --tokens 200 --seed 6
cmp -s out first && fail "the seed changes nothing"
quiet "$mtf" generate run --tokens 30 --temperature 0
cp out first
quiet "$mtf" generate run --tokens 30 --top-k 1 --seed 9
cmp out first >&2 || fail "the likeliest token is not the likeliest"
quiet "$mtf" generate run --tokens 30 --top-p 0.000001 --seed 9
cmp out first >&2 || fail "top-p of almost nothing is not the likeliest"

# ---- explain and --benchmark write nothing
before=$(ls)
quiet "$mtf" explain c.yaml --json --mesh "rows:2;cols:2" --layout "batch:rows;d_ff:cols"
keys out . "mesh layout processors parameters flops_per_processor peak_bytes state_bytes value_bytes buffer_bytes workspace_bytes instructions"
jq -e '.peak_bytes == .state_bytes + .value_bytes + .buffer_bytes + .workspace_bytes and .state_bytes > 0 and
    .value_bytes > 0 and .buffer_bytes > 0' out >/dev/null || fail "the peak is not the sum of its parts"
keys out .instructions[0] "op name axes elements bytes flops"
[ "$(jq -c '.instructions[] | del(.received, .bound) | keys_unsorted | join(" ")' out | sort -u | wc -l)" = 1 ] ||
    fail "instructions have different keys"
[ "$(jq -r '.instructions[] | select(has("received") and has("bound")).op' out | sort -u)" = all_reduce ] ||
    fail "not the collectives have what they receive"
jq -e '[.instructions[] | select(has("bound"))] | ([.[].received] | add) == ([.[].bound] | add)' out \
    >/dev/null || fail "single sums receive more than they must"
quiet "$mtf" explain c.yaml --mesh "rows:2;cols:2" --layout "batch:rows;d_ff:cols"
expect_text "resharding: the busiest processor receives " out
expect_text " values in one call: all_reduce over rows " out
quiet "$mtf" explain c.yaml --json --mesh "rows:2;cols:2" --layout "batch:rows;d_ff:cols"
jq -e '.mesh == "rows:2;cols:2" and .layout == "batch:rows;d_ff:cols" and .processors == 4 and
    ([.instructions[].flops] | add) == .flops_per_processor and
    ([.instructions[] | select(.op == "all_reduce") | .axes[]] | unique) == ["cols", "rows"]' out \
    >/dev/null || fail "explain"
quiet "$mtf" train c.yaml --benchmark 3 --json
keys out . "steps threads step_seconds tokens_per_second gflops peak_gflops share_of_peak executed_gflops"
jq -e '.steps == 3 and .share_of_peak > 0 and .share_of_peak < 1' out >/dev/null || fail "benchmark"
quiet "$mtf" train c.yaml --benchmark 1 --set data.train= --set model.vocab=100 --mesh "rows:2" \
    --layout "rows:rows"
expect_text "mtf: warning: layout rule for 'rows'" err
quiet "$mtf" verify c.yaml --json --mesh "rows:2" --layout "batch:rows"
keys out . "ok tolerance worst"
keys out .worst "name relative"
[ "$before" = "$(ls)" ] || fail "something was written: $(ls)"

# ---- a checkpoint: a plain file of whole tensors
file=run/checkpoint-6.safetensors
header $file >header
[ "$(jq -c '.__metadata__ | keys' header)" = \
    '["config","format","position","step","version","vocabulary","vocabulary_hash"]' ] ||
    fail "metadata: $(jq -c '.__metadata__ | keys' header)"
[ "$(jq -c '.__metadata__ | [.format, .step, .position]' header)" = '["mtf","6","36"]' ] ||
    fail "metadata: $(jq -c .__metadata__ header)"
jq -j .__metadata__.config header | cmp - run/config.yaml >&2 || fail "the configuration inside"
parameters=$(jq -c '.run.parameters // empty' run/log.jsonl)
elements='[.[] | .shape | reduce .[] as $n (1; . * $n)] | add'
slots=$(jq "del(.__metadata__) | with_entries(select(.key | test(\"/[mv]$\"))) | $elements" header)
plain=$(jq "del(.__metadata__) | with_entries(select(.key | test(\"/[mv]$\") | not)) | $elements" header)
[ "$plain" = "$parameters" ] && [ "$slots" = $((2 * parameters)) ] ||
    fail "$plain elements and $slots in slots for $parameters parameters"
end=$(jq 'del(.__metadata__) | [.[].data_offsets[1]] | max' header)
[ $((8 + $(wc -c <header) + end)) = "$(wc -c <$file)" ] || fail "the size of $file"

# ---- a full disk
for limit in 64 200; do # KiB; the checkpoint has 230
    (
        ulimit -f $limit
        "$mtf" train c.yaml --quiet --out run --resume --set train.steps=8 --set train.checkpoint_every=0
    ) >out 2>err
    [ $? = 1 ] || fail "a full disk gives no 1"
    [ "$(grep -c '^mtf: ' err)" = 1 ] && [ "$(wc -l <err)" = 1 ] || fail "messages of a full disk"
    expect_text "mtf: step 8: writing 'run/checkpoint-8.safetensors.tmp'" err
    [ "$(ls run | paste -sd' ')" = \
        "checkpoint-4.safetensors checkpoint-6.safetensors config.yaml log.jsonl" ] ||
        fail "a full disk leaves $(ls run)"
done
quiet "$mtf" train c.yaml --quiet --out run --resume --set train.steps=8
quiet "$mtf" train c.yaml --quiet --out whole --set train.steps=8
same_losses run whole
same_checkpoint run whole 8

# ---- a loss that is not finite
expect 1 "$mtf" train c.yaml --quiet --out wild --set train.optimizer=sgd --set train.clip_norm=0 \
    --set train.warmup_steps=0 --set train.learning_rate=1e30 --set train.checkpoint_every=1
expect_text "is not finite; the last checkpoint is kept" err
grep -qi nan wild/log.jsonl && fail "NaN in the log"
[ -e wild/checkpoint-1.safetensors ] || fail "the last checkpoint is gone"

# A loss that is finite where its perplexity is not: the largest number stands for it.
quiet "$mtf" train c.yaml --quiet --out far --set train.optimizer=sgd --set train.clip_norm=0 \
    --set train.warmup_steps=0 --set train.learning_rate=1e5 --set train.steps=1
jq -e 'select(has("valid_loss")) | .valid_loss > 1000 and .valid_perplexity > 1e308' far/log.jsonl \
    >/dev/null || fail "the log of a loss without a perplexity: $(cat far/log.jsonl)"
quiet "$mtf" eval far --json
jq -e '.loss > 1000 and .perplexity > 1e308 and .perplexity_per_word > 1e308' out >/dev/null ||
    fail "eval of a loss without a perplexity: $(cat out)"

# An update that ends in infinity after a loss that was finite takes no checkpoint's place.
expect 1 "$mtf" train c.yaml --quiet --out endless --set train.optimizer=sgd --set train.clip_norm=0 \
    --set train.warmup_steps=0 --set train.learning_rate=1e300 --set train.checkpoint_every=1
expect_text "mtf: step 1: '" err
expect_text "has become infinite or NaN, so it is not saved" err
[ "$(ls endless | paste -sd' ')" = "config.yaml log.jsonl" ] || fail "saved: $(ls endless)"

# ---- standard streams that are closed: no file takes their place
"$mtf" train c.yaml --out deaf --set train.steps=2 2>&- >out || fail "without stderr"
jq -e . deaf/log.jsonl >/dev/null 2>err || fail "messages in the log: $(cat deaf/log.jsonl)"
"$mtf" train c.yaml --quiet --out mute --set train.steps=2 >&- 2>err
[ $? = 1 ] || fail "without stdout"
expect_text "mtf: writing to stdout: Bad file descriptor" err
same_checkpoint deaf mute 2
for option in --help --version; do
    "$mtf" $option >/dev/full 2>err
    [ $? = 1 ] || fail "$option on a full device"
    expect_text "mtf: writing to stdout: No space left" err
done

# ---- help
for command in train eval generate explain verify; do
    quiet "$mtf" $command --help
    expect_text "usage: mtf $command" out
    expect_text "--json" out
    [ ! -s err ] || fail "$command --help speaks on stderr"
done
quiet "$mtf" train --help
for text in "train.learning_rate" "1.0e-3" "model.layers" "--threads"; do expect_text "$text" out; done
quiet "$mtf" --help
for command in train eval generate explain verify; do expect_text "  $command" out; done
quiet "$mtf" --version
for text in "mtf 0" commit compiler "instruction set" oneDNN MPI; do expect_text "$text" out; done
exit 0
