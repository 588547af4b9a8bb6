// Row per warp: a block sums 32 dx of one dy, its warps share the rows of the overlap, each lane has one dx.
//
// For a single tiny pair: the time is set not by arithmetic but by the number of dependent waits. Here they are one
// load, one pass over a row in shared memory (the products depend on each other only through their sum), and one sum
// over warps.
// A warp stages 64 columns of a left row and 32 of a right row and forms 32 products per lane: FMA : loads = 4 : 5 (the
// right row is read four elements at a time). The sums of the warps are added in a fixed order: the same bits every
// run.
// Document: "Occupancy improvement", between its thread per shift and its warp per shift. Floor: the latency of one
// load.
// On an H200, one pair of 16^2: 1.79 us, where an empty kernel takes 0.57.
#include "problem.cuh"
#include "shared_tile.cuh"

#ifndef WARPS
#define WARPS 16
#endif

#define STAGED 96  // floats a warp

extern "C" __global__ void __launch_bounds__(WARPS * 32, 1)
    row_per_warp(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(staging);  // [WARPS][STAGED], then the sums of every warp
    Sum* partial = reinterpret_cast<Sum*>(staging + WARPS * STAGED);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int chunks = ceil_div(p.shifts_x, 32);
    // A division takes as long as a row's products: none for a pair alone.
    int chunk = 0, iy = (int)blockIdx.x, pair = 0;
    if (chunks > 1) {
        chunk = iy % chunks;
        iy /= chunks;
    }
    if (p.pairs > 1) {
        pair = iy / p.shifts_y;
        iy %= p.shifts_y;
    }
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + 32 * chunk;
    const Left* left = pair == 0 ? lefts : left_of(p, lefts, pair);
    const Right* right = pair == 0 ? rights_of_all : right_of(p, rights_of_all, pair);
    const Span ys = overlap(p.left_height, p.right_height, dy);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx, 32);
    float *left_staged = staging + warp * STAGED, *right_staged = left_staged + 64;
    Sum sum = 0;
    for (int y = ys.first + warp; y < ys.last; y += WARPS) {
        const Row<Left> left_row = row_of(left, p.left_height, p.left_width, y + dy);
        const Row<Right> right_row = row_of(right, p.right_height, p.right_width, y);
        for (int x = xs.first; x < xs.last; x += 32) {
            const Sum here = left_row.at(x + dx + lane), next = left_row.at(x + dx + 32 + lane);
            const Sum broadcast = right_row.at(x + lane);
            __syncwarp();
            left_staged[lane] = (float)here;
            left_staged[32 + lane] = (float)next;
            right_staged[lane] = (float)broadcast;
            __syncwarp();
            const int steps = min(32, xs.last - x);
#pragma unroll 4
            for (int k = 0; k < steps; k += 4) {
                const Four four = load_four(right_staged + k);  // zero beyond the matrix
#pragma unroll
                for (int i = 0; i < 4; ++i) sum = multiply_add(left_staged[lane + k + i], four.at[i], sum);
            }
        }
    }
    partial[warp * 32 + lane] = sum;
    __syncthreads();
    if (warp > 0 || 32 * chunk + lane >= p.shifts_x) return;
    Sum total = 0;
#pragma unroll
    for (int w = 0; w < WARPS; ++w) total += partial[w * 32 + lane];
    planes[((long long)pair * p.shifts_y + iy) * p.shifts_x + 32 * chunk + lane] = total;
}
