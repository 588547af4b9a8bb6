#!/usr/bin/env bash
# Nsight Compute's figures of what an ablation runs: what limits each kernel, one row a launch.
#
#     benchmarks/ncu.sh DOCUMENT [TEXT] > profile.csv        (such as: reuse "64 images 1024^2: 3")
#
# What runs is named first, a line each, in the order of the rows; some ways start several kernels. The records of one
# H200 are benchmarks/results/ncu_DOCUMENT.csv.
# Times under the profiler are of single cold launches: take them from `python -m benchmarks ablation`.
set -euo pipefail
cd "$(dirname "$0")/.."
METRICS=(
    gpu__time_duration.sum                                             # ns
    sm__throughput.avg.pct_of_peak_sustained_elapsed                   # of the busiest unit of a multiprocessor
    gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed   # of the busiest level of memory
    dram__bytes.sum                                                    # read and written
    l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum                    # loads, and the sectors that they touch
    l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum
    smsp__inst_executed.sum
    smsp__sass_thread_inst_executed_op_inter_thread_communication_pred_on.sum   # shuffles, of all lanes
    smsp__sass_thread_inst_executed_op_ffma_pred_on.sum                # multiply-adds
    smsp__issue_active.avg.pct_of_peak_sustained_active                # of the issue slots
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
    l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum                      # arrays that did not stay in registers
    sm__warps_active.avg.pct_of_peak_sustained_active                  # occupancy
    launch__registers_per_thread
)
ASKED="$(IFS=,; echo "${METRICS[*]}")"
# Of its columns, those that were asked for.
COLUMNS='
import csv, sys
keep, write = {"ID", "Kernel Name", "Block Size", "Grid Size", *sys.argv[1].split(",")}, csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n")
for line in sys.stdin:
    if not line.startswith(chr(34)):
        print(line, end="", file=sys.stderr if line.startswith("==") else sys.stdout)
        continue
    row = next(csv.reader([line]))
    if row[0] == "ID":
        places = [i for i, name in enumerate(row) if name in keep]
    write.writerow([row[i] for i in places])
'
ncu --csv --page raw --profile-from-start off --clock-control none --metrics "$ASKED" \
    "${PYTHON:-python3}" -m benchmarks.ablation.once "$@" | "${PYTHON:-python3}" -c "$COLUMNS" "$ASKED"
