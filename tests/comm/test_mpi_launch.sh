#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How a job begins and how it ends: launchers that do not fit, modules that are missing, a rank that
# aborts, fails a check or is killed. Nothing may hang.
set -uo pipefail
program=$MTF_BUILD_DIR/tests/prog_comm_launch
mpirun=$MTF_SOURCE_DIR/scripts/mpirun
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ran=0

fail() { echo "failed: $*" >&2; cat "$work"/out >&2; exit 1; }

# expect CODE TEXT COMMAND...: the exit code (any: not 0), and the text in the output.
expect() {
    local want=$1 text=$2 code
    shift 2
    timeout 20 "$@" >"$work/out" 2>&1
    code=$?
    [ $code != 124 ] || fail "$* hangs"
    if [ "$want" = any ]; then [ $code != 0 ]; else [ $code = "$want" ]; fi ||
        fail "$* ended with $code, not $want"
    [ -z "$text" ] || grep -q "$text" "$work/out" || fail "no '$text' in the output of $*"
}

# Kills one of four ranks; all must be gone within 10 seconds.
kill_one() {
    local family=$1 job pids
    "$mpirun" "$family" 4 "$program" turn >"$work/out" 2>&1 &
    job=$!
    for _ in $(seq 100); do
        [ "$(grep -c '^pid ' "$work/out")" = 4 ] && break
        sleep 0.1
    done
    pids=$(sed -n 's/^pid //p' "$work/out")
    [ "$(wc -w <<<"$pids")" = 4 ] || fail "$family did not start four ranks"
    kill -9 "${pids##*$'\n'}"
    for _ in $(seq 100); do
        sleep 0.1
        # shellcheck disable=SC2086
        kill -0 $job $pids 2>/dev/null || { wait $job; [ $? != 0 ] && return 0; }
    done
    # shellcheck disable=SC2086
    kill -9 $job $pids 2>/dev/null
    fail "$family: a killed rank leaves its peers running"
}

unset "${!OMPI_@}" "${!PMI@}" "${!SLURM_@}"
expect 0 "ranks 1, mpi no" "$program" start
expect 0 "ranks 1, mpi no" env OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 "$program" start
expect 0 "ranks 1, mpi no" env SLURM_NTASKS=4 SLURM_PROCID=0 "$program" start
expect 3 "" "$program" abort
expect any "planted by the test" "$program" check
mkdir -p "$work/elsewhere/bin" && cp "$program" "$work/elsewhere/bin/"
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:PATH=//p' "$MTF_BUILD_DIR/CMakeCache.txt")
if ! compgen -G "$prefix/lib*/mtf" >/dev/null && ! compgen -G "$prefix/lib/*/mtf" >/dev/null; then
    expect 0 "library none" "$work/elsewhere/bin/prog_comm_launch" start
    expect 2 "libmtf_openmpi.so is not installed" env OMPI_COMM_WORLD_SIZE=3 \
        OMPI_COMM_WORLD_RANK=0 "$work/elsewhere/bin/prog_comm_launch" start
fi
mkdir -p "$work/elsewhere/lib/mtf" && echo broken >"$work/elsewhere/lib/mtf/libmtf_openmpi.so"
expect 2 "cannot load its MPI module" env OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 \
    "$work/elsewhere/bin/prog_comm_launch" start

for family in openmpi mpich; do
    [ -e "$MTF_BUILD_DIR/libmtf_$family.so" ] || continue
    "$mpirun" $family 1 true >/dev/null 2>&1
    [ $? = 77 ] && continue
    ran=$((ran + 1))
    if [ $family = openmpi ]; then
        expect 2 "Open MPI's mpirun started 3 .* Open MPI [0-9.]*, sees 1" env \
            OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=0 "$program" start
    else
        expect 2 "MPICH's mpirun started 3 .* MPICH [0-9.]*, sees 1" env \
            PMI_SIZE=3 PMI_RANK=0 "$program" start
        expect 2 "Slurm's srun started 3 .* MPICH [0-9.]*, sees 1" env SLURM_STEP_ID=0 \
            SLURM_STEP_NUM_TASKS=3 SLURM_PROCID=0 "$program" start
    fi
    expect 0 "ranks 2, mpi yes, library .* [0-9]" "$mpirun" $family 2 "$program" start
    expect 0 "ranks 1, mpi no" "$mpirun" $family 1 "$program" start
    expect 3 "" "$mpirun" $family 3 "$program" abort
    expect any "mtf: bug at .*planted by the test" "$mpirun" $family 3 "$program" check
    kill_one $family
done
[ $ran -gt 0 ] || exit 77
