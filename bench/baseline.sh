#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The speed baseline: training steps of configurations S and L on one thread and on two, in tokens per
# second and as a share of the multiply-add peak that is measured in the same run.
# bench/baseline.sh [STEPS]; run it on an idle machine.
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${1:-10}
printf '%-6s %7s %10s %12s %10s %10s %8s\n' config threads "s/step" "tokens/s" GFLOP/s peak share
for config in s l; do
    for threads in 1 2; do
        build/mtf train bench/$config.yaml --benchmark "$steps" --threads $threads --json |
            jq -r --arg c $config '[$c, .threads, .step_seconds, .tokens_per_second, .gflops,
                                    .peak_gflops, .share_of_peak] | @tsv' |
            awk '{ printf "%-6s %7d %10.3f %12.0f %10.1f %10.1f %7.1f%%\n", $1, $2, $3, $4, $5, $6, 100 * $7 }'
    done
done
