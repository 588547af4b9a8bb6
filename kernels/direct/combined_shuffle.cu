// Combined by shuffles: LEFTS x RIGHTS pairs, SHIFTS consecutive dy and LEFT_ROWS left rows per thread; all of the
// document's reuse at once, and nothing but registers and shuffles. combined.cu has shared memory in their place.
// Document: "Problems with local memory", which announces it: there its arrays fell out of the registers. Also with the
// phases of multi_row.cu and "Work distribution".
// 4 x 4 x 4 x 4: FMA : shuffles = 256 : 60, so at most 81 % of the FMA rate on a device whose shuffles run at a quarter of
// it. On an H200, 256^2, full plane, 16 pairs: 0.299; 128^2, rows distributed: 0.267.
#ifndef WARPS
#define WARPS 4
#endif
#ifndef LEFTS
#define LEFTS 4  // more than 1 only where every left is paired with the same rights
#endif
#ifndef RIGHTS
#define RIGHTS 4
#endif
#ifndef SHIFTS
#define SHIFTS 4
#endif
#ifndef LEFT_ROWS
#define LEFT_ROWS 4
#endif
#include "shuffled_tile.cuh"

extern "C" __global__ void __launch_bounds__(WARPS* WARP, 1)
    combined_shuffle(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    shuffled_tile(p, lefts, rights_of_all, planes);
}
