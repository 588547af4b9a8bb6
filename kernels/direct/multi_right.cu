// Multi-right: the warp-shuffle kernel with RIGHTS rights per thread; the left row is loaded and moved through the
// lanes once for all of them.
// Document: "Improving ratio of arithmetic instructions" (one-to-many), also with its "Work distribution". Forms
// one-to-many, n-to-mn and n-to-m.
// FMA : shuffles = r : r + 2, so at most 17 % of the FMA rate for r = 4. On an H200, 256^2, full plane, 16 pairs: 0.131.
#ifndef WARPS
#define WARPS 4
#endif
#ifndef RIGHTS
#define RIGHTS 4
#endif
#define LEFTS 1
#define SHIFTS 1
#define LEFT_ROWS 1
#include "shuffled_tile.cuh"

// The blocks an SM state how many registers there are; left alone, the compiler aims at 64 and spills.
extern "C" __global__ void __launch_bounds__(WARPS* WARP, 16 / WARPS)
    multi_right(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    shuffled_tile(p, lefts, rights_of_all, planes);
}
