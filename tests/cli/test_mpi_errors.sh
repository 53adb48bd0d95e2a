#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Bad input under mpirun: one message, a quick end on all ranks, also where only one rank fails.
source "$MTF_SOURCE_DIR/tests/support/cli.sh" || exit 1
make_text 600 text.txt
make_config c.yaml
# Open MPI waits before it kills what is left of a job that failed; here nothing is left.
export OMPI_MCA_odls_base_sigkill_timeout=0
ran=0

# Every rank runs this; the last one sees other things where the case asks for it.
cat >rank.sh <<'E2'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}
[ "$rank" = 1 ] && [ -n "$ONLY_LAST" ] && eval "$ONLY_LAST"
exec "$@"
E2
chmod +x rank.sh

refused() { # CODE MESSAGE OPTION...
    local want=$1 text=$2 code
    shift 2
    timeout 20 "$mpirun" "$family" 2 ./rank.sh "$mtf" "$@" </dev/null >out 2>err
    code=$?
    [ $code != 124 ] || fail "$family: mtf $* hangs"
    [ $code = "$want" ] || fail "$family: mtf $* ended with $code, not $want"
    [ "$(grep -v '^mtf: warning: ' err | grep -c '^mtf: ')" = 1 ] || fail "$family: mtf $*: not one message"
    expect_text "$text" err
    [ ! -e run ] || fail "$family: mtf $* left a folder"
    ran=$((ran + 1))
}

for family in openmpi mpich; do
    have $family || continue
    unset ONLY_LAST
    train=(train c.yaml --quiet --out run)
    refused 2 "a mesh of 1 processors does not fit 2 MPI ranks" "${train[@]}"
    train+=(--mesh "all:2" --layout "batch:all")
    refused 2 "unknown key 'model.layrs'" "${train[@]}" --set model.layrs=2
    # The families differ in how they start and end a job, not in what is refused.
    if [ $family = openmpi ]; then
        refused 2 "a mesh of 4 processors does not fit 2 MPI ranks" train c.yaml --quiet --out run \
            --mesh "rows:2;cols:2"
        refused 2 "unknown command 'trian'; did you mean 'train'?" trian
        refused 2 "unknown option '--ouf'" "${train[@]}" --ouf x
        refused 2 "cannot open 'missing.yaml'" train missing.yaml
        refused 2 "cannot open corpus 'missing.txt'" "${train[@]}" --set data.train=missing.txt
        refused 2 "are both split over mesh axis 'all'" "${train[@]}" --layout "batch:all;d_ff:all"
        refused 2 "of memory (2 processors" "${train[@]}" --set train.batch=100000000
        refused 2 "is no folder of a run" eval .
        refused 2 "run it without mpirun" verify c.yaml --mesh "all:2"
    fi

    # The last rank alone has no text, or other arguments.
    export ONLY_LAST='mkdir -p other; cp c.yaml other/; cd other'
    refused 2 "cannot open corpus 'text.txt'" "${train[@]}"
    export ONLY_LAST='set -- "$@" --set model.d_ff=65 '
    refused 1 "is not the same on all ranks" "${train[@]}"
    export ONLY_LAST='set -- "$@" --set model.d_ff=0 '
    refused 2 "model.d_ff is '0'" "${train[@]}"
    unset ONLY_LAST

    # --help and --version are printed once.
    for options in --version "train --help"; do
        # shellcheck disable=SC2086
        quiet "$mpirun" "$family" 2 "$mtf" $options
        [ "$(sort out | uniq -d | grep -c .)" = 0 ] || fail "$family: $options printed twice"
    done

    # The configuration may be a pipe, which only rank 0 has.
    quiet sh -c "\"$mpirun\" $family 2 \"$mtf\" train /dev/stdin --quiet --out piped-$family \
        --mesh all:2 --layout batch:all --set train.steps=2 <c.yaml"
    [ "$(losses piped-$family | wc -l)" = 2 ] || fail "$family: a configuration from a pipe"
done
[ $ran -gt 0 ] || exit 77
exit 0
