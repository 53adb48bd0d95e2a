#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input: command, exit code and messages of every case against tests/golden/cli_errors.txt
# (MTF_UPDATE_GOLDEN=1 writes it anew). No refused run leaves a folder behind.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
golden=$MTF_SOURCE_DIR/tests/golden/cli_errors.txt
got=$work/got.txt
: >"$got"
make_text 600 text.txt
make_config c.yaml

# case CODE COMMAND...: one block of the golden file. Its messages are one line "mtf: ..." besides
# warnings, and nothing is made.
case_() {
    local want=$1 code before
    shift
    before=$(ls -R . | grep -v '^\./out\|^out$\|^err$')
    timeout 20 "$mtf" "$@" >out 2>err
    code=$?
    {
        printf '$ mtf'
        [ $# = 0 ] || LC_ALL=C printf ' %s' "$@"
        printf '\nexit %s\n' "$code"
        sed -e "s#$work/##g" -e '/the plan needs/s/[0-9.]* GB/N GB/g' err
        echo
    } >>"$got"
    [ $code = "$want" ] || fail "mtf $* ended with $code, not $want"
    if [ "$want" != 0 ]; then
        [ "$(grep -c '^mtf: ' err)" -ge 1 ] || fail "mtf $*: no message"
        [ "$(grep -v '^mtf: warning: ' err | wc -l)" = 1 ] || fail "mtf $*: not one line"
        [ ! -s out ] || fail "mtf $*: something on stdout"
    fi
    [ "$before" = "$(ls -R . | grep -v '^\./out\|^out$\|^err$')" ] || fail "mtf $* left something"
}
say() { printf '# %s\n' "$*" >>"$got"; }
train() { local want=$1; shift; case_ "$want" train c.yaml --quiet --out run "$@"; }

say "command line"
case_ 2
case_ 2 trian c.yaml
case_ 2 train
case_ 2 train c.yaml d.yaml
case_ 2 train c.yaml --ouf run
case_ 2 train c.yaml --out
case_ 2 train c.yaml --threads many
case_ 2 train c.yaml --threads -1
case_ 2 train c.yaml --benchmark 0.5
case_ 2 train c.yaml --strict=maybe
case_ 2 train c.yaml --resume
case_ 2 train missing.yaml
case_ 2 train .
case_ 2 verify c.yaml
case_ 2 verify c.yaml --mesh "rows:2" --tolerance 0
case_ 2 generate . --tokens 0
case_ 2 generate . --top-p 0
case_ 2 eval .
case_ 2 generate nowhere
case_ 2 explain

say "mesh and layout"
train 2 --mesh "rows=2"
train 2 --mesh "rows"
train 2 --mesh "rows:2;rows:3"
train 2 --mesh "rows:0"
train 2 --mesh "rows:-2"
train 2 --mesh "rows:2x"
train 2 --mesh "rows:99999999999999999999"
train 2 --mesh "rows:2" --layout "batch"
train 2 --mesh "rows:2" --layout "batch:rows:rows"
train 2 --mesh "rows:2" --layout "batch:rows+"
train 2 --mesh "rows:2" --layout "batch:rows+rows"
train 2 --mesh "rows:2" --layout "batch:rows;batch:rows"
train 2 --mesh "rows:2" --layout "batch:rows;d_ff:rows"
train 2 --mesh "rows:2" --layout "d_model:rows;d_ff:rows"
train 2 --mesh "rows:2" --layout "batch:cols" --strict
train 2 --mesh "rows:2" --layout "bacth:rows" --strict
case_ 0 explain c.yaml --json --mesh "rows:2" --layout "batch:cols"
case_ 0 explain c.yaml --json --mesh "rows:2" --layout "bacth:rows"

say "configuration"
train 2 --set model.layrs=2
train 2 --set layers=2
train 2 --set model.layers
train 2 --set model.layers=two
train 2 --set model.layers=0
train 2 --set model.layers=2.5
train 2 --set model.dropout=1
train 2 --set model.dropout=-0.1
train 2 --set train.learning_rate=nan
train 2 --set train.learning_rate=fast
train 2 --set train.optimizer=adan
train 2 --set model.tied=perhaps
train 2 --set train.microbatches=7
train 2 --set train.min_learning_rate=1
train 2 --set train.dtype=f16
train 2 --set train.stored_dtype=f64
train 2 --set train.dtype=bf16 --set train.master_dtype=bf16
train 2 --set train.stored_dtype=bf16 --set train.ema_decay=0.9
train 2 --set train.exclude_from_weight_decay="("
train 2 --set model.vocab=3
train 2 --set data.train=
train 2 --set train.schedule=cosin
train 2 --set "train.schedule=linear_warmup(10) * rsqt(10)"
train 2 --set "train.schedule=linear_warmup(10"
train 2 --set train.schedule_offset=20
train 2 --set "train.schedule_rules=norm"
train 2 --set "train.schedule_rules=norm -> fast"
train 2 --set "train.schedule_rules=nrom -> 0.1; wi -> 0.2"
train 2 --set "train.schedule_rules=norm( -> 0.1"
train 2 --set train.optimizer=adamw --set train.exclude_from_weight_decay=bais
train 2 --set train.optimizer=adafactor --set adafactor.stacked_dims=layers
train 2 --set train.optimizer=adafactor --set adafactor.exclude_from_parameter_scale=xyz
train 2 --set train.ema_decay=1
printf 'model:\n  layers: 2\n  d_model: [1\n' >broken.yaml
printf 'model:\n  layers: 2\n  d_mdoel: 8\n' >key.yaml
printf 'model:\n  layers: 2\ntrain:\n  steps: many\n' >kind.yaml
printf 'model:\n  layers: {a: 2}\n' >shape.yaml
printf 'model:\n  layers: 2\n  layers: 3\n' >twice.yaml
printf 'model:\n\tlayers: 2\n' >tab.yaml
printf 'model: {layers: 2}\n\377\n' >bytes.yaml
printf -- '- a\n' >list.yaml
for f in broken key kind shape twice tab bytes list; do case_ 2 train $f.yaml --out run; done

say "text"
: >empty.txt
printf a >one.txt
printf 'short' >short.txt
printf 'fine\nnot \377 fine\n' >bytes.txt
mkdir folder
for f in missing.txt empty.txt one.txt short.txt bytes.txt folder; do
    train 2 --set data.train=$f
done
train 2 --set data.valid=missing.txt
printf 'Q' >valid.txt
train 2 --set data.valid=valid.txt

say "output folder"
printf x >file
case_ 2 train c.yaml --out file
case_ 2 train c.yaml --out file/below/run
mkdir used && printf x >used/thing
case_ 2 train c.yaml --out used
case_ 2 train c.yaml --out used --resume

say "sizes"
train 2 --set model.d_model=100000000 --set model.d_ff=1000000
train 2 --set model.d_model=1000000000 --set model.d_ff=1000000000
train 2 --set model.length=1000000000
train 2 --set train.batch=1000000000

say "a run that is there"
quiet "$mtf" train c.yaml --quiet --out run --set train.steps=4 --set train.checkpoint_every=2
resume() { local want=$1; shift; case_ "$want" train c.yaml --quiet --out run --resume --set train.steps=4 "$@"; }
train 2
resume 2 --set model.d_ff=128
case_ 2 generate run --prompt "42"
case_ 2 eval run --data missing.txt
case_ 2 eval run --data bytes.txt
case_ 2 eval run --data one.txt
case_ 2 eval run --mesh "rows:2" --layout "batch:rows;d_ff:rows"

say "safetensors"
rm run/checkpoint-2.safetensors
cp run/checkpoint-4.safetensors good
bad=run/checkpoint-4.safetensors
number() { # eight bytes, little endian
    local i n=$1
    for i in 1 2 3 4 5 6 7 8; do printf "\\x$(printf %02x $((n & 255)))"; n=$((n >> 8)); done
}
with_header() { # TEXT: a file of this header and the data of the good one
    { number ${#1}; printf '%s' "$1"; tail -c +$((9 + $(od -An -tu8 -N8 good))) good; } >$bad
}
both() { say "$1"; case_ 2 eval run; resume 2; }
truncate -s -5 $bad && both "truncated"
cp good $bad && printf 'more' >>$bad && both "oversized"
printf 'abc' >$bad && both "shorter than a header"
{ number 999999999999; printf '{}'; } >$bad && both "a header beyond the file"
with_header '{"a": not json' && both "not JSON"
with_header "$(header good | jq -c '.["layer_0/feed_forward/wi"].data_offsets as [$a, $b] |
    .["layer_0/feed_forward/wi"].data_offsets = [$a - 64, $b - 64]' | sed 's/ *$//')"
both "overlapping"
with_header "$(header good | jq -c '.["layer_0/feed_forward/wi"].shape = [64, 32]')"
both "another shape"
with_header "$(header good | jq -c '.["layer_0/feed_forward/wi"].dtype = "I32"')"
both "another type"
with_header "$(header good | jq -c '.["layer_0/feed_forward/wx"] = .["layer_0/feed_forward/wi"] |
    del(.["layer_0/feed_forward/wi"])')"
both "missing"
with_header "$(header good | jq -c '.["layer_0/feed_forward/wi"].dtype = "Q7"')"
both "an unknown type"
with_header "$(header good | jq -c 'del(.__metadata__.vocabulary)')"
say "no vocabulary"
case_ 2 eval run
rm $bad
say "no checkpoint"
case_ 2 eval run
cp good $bad
sed -i 2s/^/x/ run/log.jsonl
say "a broken log"
resume 2

if [ -n "${MTF_UPDATE_GOLDEN:-}" ]; then
    cp "$got" "$golden"
fi
diff -u "$golden" "$got" >&2 || fail "the messages differ from $golden; MTF_UPDATE_GOLDEN=1 writes it anew"
exit 0
