// Warp shuffle with work distribution: the rows of one dy are split among workers (warps), at most MAX_ROWS rows each.
// Document: "Work distribution" (none, rectangle, triangle; see distribution.cuh). Each worker adds its sums into the plane
// with atomicAdd: zero the plane first; the last bits depend on the order of the workers unless DISTRIBUTION is none.
// FMA : shuffles = 1 : 3. For small inputs and single pairs, where one worker per shift leaves the device mostly idle.
// Floor: 8.5 % of the FMA rate, as for warp_shuffle.cu. On an H200, one pair of 64^2: 18.6 us, without distribution
// 84.8 us.
#include "problem.cuh"
#include "warp.cuh"
#include "distribution.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef DISTRIBUTION
#define DISTRIBUTION TRIANGLE
#endif
#ifndef MAX_ROWS
#define MAX_ROWS 8
#endif

extern "C" __global__ void __launch_bounds__(WARPS* WARP)
    warp_shuffle_distributed(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const int tiles_x = ceil_div(p.shifts_x, WARP);
    const int workers = workers_of(p, DISTRIBUTION, MAX_ROWS);
    const int index = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    if (index >= p.pairs * workers * tiles_x) return;
    const int pair = index / (workers * tiles_x);
    const int in_pair = index % (workers * tiles_x);
    const int ix = in_pair % tiles_x * WARP;
    const Task task = task_of_worker(p, DISTRIBUTION, MAX_ROWS, in_pair / tiles_x);
    if (task.iy < 0) return;  // the whole warp is surplus
    const int dy = p.shift_y0 + task.iy, dx = p.shift_x0 + ix;
    const Left* left = left_of(p, lefts, pair);
    const Right* right = right_of(p, rights_of_all, pair);
    const int first_row = overlap(p.left_height, p.right_height, dy).first;
    const Sum sum = slid_rows(p, left, right, dy, dx, first_row + task.first, first_row + task.last, lane);
    if (ix + lane < p.shifts_x)
        atomicAdd(plane_of(p, planes, pair) + (long long)task.iy * p.shifts_x + ix + lane, sum);
}
