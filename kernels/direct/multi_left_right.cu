// Multi-left-and-right: LEFTS x RIGHTS pairs per thread; each left row slides once, each right element is broadcast
// once.
// Document: announced in "Problems with local memory"; compile-time indices keep every array in registers. Also with its
// "Work distribution". Form n-to-m only (every left is paired with the same rights). FMA : shuffles = l * r : 2 l + r,
// so at most 34 % of the FMA rate for 4 x 4. On an H200, 256^2, full plane, 16 pairs: 0.203.
// A launch processes whole lefts: the number of pairs is a multiple of rights_per_left.
#ifndef WARPS
#define WARPS 4
#endif
#ifndef LEFTS
#define LEFTS 4
#endif
#ifndef RIGHTS
#define RIGHTS 4
#endif
#define SHIFTS 1
#define LEFT_ROWS 1
#include "shuffled_tile.cuh"

// As in multi_right.cu: without the number of blocks some counts of lefts and rights spill.
extern "C" __global__ void __launch_bounds__(WARPS* WARP, 16 / WARPS)
    multi_left_right(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    shuffled_tile(p, lefts, rights_of_all, planes);
}
