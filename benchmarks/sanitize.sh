#!/usr/bin/env bash
# The GPU test suite of the kernels under compute-sanitizer; one line a tool, the same lines in results/.
#
#   benchmarks/sanitize.sh [-a] [-t SECONDS] [-k EXPRESSION] [-s I/N] [TOOL ...]
#
# TOOL is memcheck, racecheck, initcheck or synccheck (default: all four), SECONDS the limit of each (default 600),
# EXPRESSION picks tests, as pytest's -k does, and I/N the I-th of N shares of them. Left out always: tests that start
# processes of their own, make memory run out on purpose, fill gigabytes, or time calls. Needs compute-sanitizer and a
# Python with CuPy ($PYTHON, default python3). Memory comes from CuPy's pool, as it does for users, and is overwritten
# when it is freed; with -a every array has an allocation of its own, so that a checker sees where each one ends.
set -uo pipefail
cd "$(dirname "$0")/.."

limit=600
memory=tests.poisoned_memory
wanted="not (test_kernel_cache or test_memory or beyond_two_to_the_31 or neither_waits)"
while getopts at:k:s: option; do
    case $option in
        a) memory=benchmarks.no_memory_pool ;;
        t) limit=$OPTARG ;;
        k) wanted="$wanted and ($OPTARG)" ;;
        s) export XCORR_SHARE=$OPTARG ;;
        *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ]; then set -- memcheck racecheck initcheck synccheck; fi
for tool; do
    case $tool in
        memcheck | racecheck | initcheck | synccheck) ;;
        *) echo "unknown tool $tool" >&2; exit 2 ;;
    esac
done

python=${PYTHON:-python3}
summary=benchmarks/results/sanitizer.txt
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
{
    "$python" -c 'import cupy; print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "CuPy", cupy.__version__)'
    compute-sanitizer --version | tail -n 1
    echo "pytest -m gpu -k '$wanted' -p $memory tests/gpu"
} | tee "$summary"
for tool; do
    log=$logs/$tool
    start=$SECONDS
    chosen=$wanted
    # It follows every access to shared memory: the largest problems would take hours and race no differently.
    if [ "$tool" = racecheck ]; then chosen="$wanted and not (257 or 100 or more_pairs or same_bits)"; fi
    # Only errors of kernels count: libraries probe the driver with calls that may fail.
    timeout -k 10 "$limit" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 99 \
        "$python" -m pytest -m gpu -q -p no:cacheprovider -p $memory -p benchmarks.share_of_tests \
        -k "$chosen" tests/gpu >"$log" 2>&1
    status=$?
    errors=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -n 1 | sed 's/^=* *//')
    tests=$(grep -E '^[0-9]+ (passed|failed)|(passed|failed|error).* in [0-9.]+s' "$log" | tail -n 1)
    if [ $status -eq 124 ] || [ $status -eq 137 ]; then tests="stopped after $limit s"; fi
    what="$tool${chosen#"$wanted"}${XCORR_SHARE:+, share $XCORR_SHARE}"
    line="$what: ${errors:-no summary}; ${tests:-no tests ran}; exit $status, $((SECONDS - start)) s"
    echo "$line" | tee -a "$summary"
    if [ $status -ne 0 ]; then
        failed=1
        grep -A 12 -m 3 -E '^=========.*(Invalid|Error|hazard|Uninitialized|Barrier)|^(FAILED|ERROR)' "$log" | head -n 60
        tail -n 15 "$log"
    fi
done
exit $failed
