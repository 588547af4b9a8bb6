// Multi-row: SHIFTS consecutive dy per thread and LEFT_ROWS left rows per step, so that SHIFTS * LEFT_ROWS products
// share 2 * LEFT_ROWS + SHIFTS + LEFT_ROWS - 1 shuffles. The best of the document's forms for a single pair.
// Document: "Improving ratio of arithmetic instructions", multiple rows from the same right matrix, with its init, body and
// drain phases (PHASES) or without, and "Work distribution".
// 8 x 4: FMA : shuffles = 32 : 19, so at most 43 % of the FMA rate. On an H200, 256^2, 16 pairs: 0.256,
// with rows distributed 0.308.
#ifndef WARPS
#define WARPS 4
#endif
#ifndef SHIFTS
#define SHIFTS 8
#endif
#ifndef LEFT_ROWS
#define LEFT_ROWS 4
#endif
#define LEFTS 1
#define RIGHTS 1
#include "shuffled_tile.cuh"

extern "C" __global__ void __launch_bounds__(WARPS* WARP, 1)
    multi_row(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    shuffled_tile(p, lefts, rights_of_all, planes);
}
