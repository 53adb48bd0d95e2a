# SPDX-License-Identifier: Apache-2.0
# What the scripts that run the command line share: a folder of their own, a text, a configuration,
# comparisons. Source it first.
set -uo pipefail
mtf=$MTF_BUILD_DIR/mtf
mpirun=$MTF_SOURCE_DIR/scripts/mpirun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}"
cd "$work" || exit 1
command -v jq >/dev/null || { echo "jq is not installed" >&2; exit 77; }

fail() {
    echo "failed: $*" >&2
    [ -f "$work/out" ] && { echo "-- stdout"; tail -n 20 "$work/out"; } >&2
    [ -f "$work/err" ] && { echo "-- stderr"; tail -n 20 "$work/err"; } >&2
    exit 1
}

# make_text WORDS FILE: the same English-like text every time, about 5.5 bytes per word.
make_text() {
    awk -v n="$1" 'BEGIN {
        k = split("the of and a in that king she wood was light under every stone winter " \
                  "quickly answered before their heart voice jumps over lazy river", word, " ")
        x = 1; line = ""
        for (i = 0; i < n; i++) {
            x = (x * 16807) % 2147483647
            w = word[x % k + 1]
            line = line (line == "" ? "" : " ") w
            if (length(line) > 60) { print line (x % 3 ? "," : "."); line = "" }
        }
        print line "."
    }' >"$2"
}


# quiet COMMAND...: its output goes to out and err; a failure ends the test.
quiet() {
    timeout 120 "$@" >"$work/out" 2>"$work/err" || fail "$* ended with $?"
}

# expect CODE COMMAND...
expect() {
    local want=$1 code
    shift
    timeout 60 "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code != 124 ] || fail "$* hangs"
    [ $code = "$want" ] || fail "$* ended with $code, not $want"
}

# expect_text TEXT FILE: a fixed string in out or err.
expect_text() {
    grep -qF -- "$1" "$work/$2" || fail "no '$1' in std$2"
}

# losses RUN: one per line, as they are written.
losses() {
    jq -c 'select(has("loss")) | .loss' "$1/log.jsonl"
}

# worst A B: the largest relative difference of two lists of numbers.
worst() {
    paste "$1" "$2" | awk 'NF != 2 { print 1e9; exit }
        { d = $1 - $2; if (d < 0) d = -d; if (d / $1 > m) m = d / $1 } END { print m + 0 }'
}

# close_losses RUN RUN TOLERANCE [FROM]: the losses of steps from FROM on.
close_losses() {
    local d
    losses "$1" | tail -n +"${4:-1}" >"$work/a.losses"
    losses "$2" | tail -n +"${4:-1}" >"$work/b.losses"
    [ -s "$work/a.losses" ] || fail "no losses in $1"
    d=$(worst "$work/a.losses" "$work/b.losses")
    awk -v d="$d" -v t="$3" 'BEGIN { exit !(d <= t) }' ||
        fail "losses of $1 and $2 differ by $d, more than $3"
    echo "losses of $1 and $2 differ by $d"
    # The validation after the last step as well.
    jq -c 'select(has("valid_loss")) | .valid_loss' "$1/log.jsonl" | tail -n 1 >"$work/a.losses"
    jq -c 'select(has("valid_loss")) | .valid_loss' "$2/log.jsonl" | tail -n 1 >"$work/b.losses"
    d=$(worst "$work/a.losses" "$work/b.losses")
    awk -v d="$d" -v t="$3" 'BEGIN { exit !(d <= t) }' ||
        fail "validation losses of $1 and $2 differ by $d, more than $3"
}

# same_losses RUN RUN, same_checkpoint RUN RUN STEP: bit for bit.
same_losses() {
    [ "$(losses "$1")" = "$(losses "$2")" ] || fail "the losses of $1 and $2 are not equal"
}

# The header of a safetensors file, without padding.
header() {
    head -c $((8 + $(od -An -tu8 -N8 "$1"))) "$1" | tail -c +9
}

# The data behind the header; tensors and metadata other than the configuration.
same_checkpoint() {
    local a=$1/checkpoint-$3.safetensors b=$2/checkpoint-$3.safetensors f n
    for f in "$a" "$b"; do
        n=$((8 + $(od -An -tu8 -N8 "$f")))
        { header "$f" | jq -cS 'del(.__metadata__.config)'; tail -c +$((n + 1)) "$f"; } >"$f.plain"
    done
    cmp "$a.plain" "$b.plain" >&2 || fail "$a and $b are not equal"
    rm -f "$a.plain" "$b.plain"
}

# have FAMILY: is that MPI there, built in and installed?
have() {
    [ -e "$MTF_BUILD_DIR/libmtf_$1.so" ] || return 1
    "$mpirun" "$1" 1 true >/dev/null 2>&1
}

# make_config FILE: a small model on text.txt.
make_config() {
    cat >"$1" <<'YAML'
model: {layers: 2, d_model: 32, heads: 4, d_kv: 8, d_ff: 64, length: 16, activation: gelu}
data: {train: text.txt, valid_fraction: 0.1, tokenizer: characters}
train: {steps: 20, batch: 6, optimizer: adam, learning_rate: 3.0e-3, warmup_steps: 5,
        schedule: constant, eval_every: 0, checkpoint_every: 0}
YAML
}
