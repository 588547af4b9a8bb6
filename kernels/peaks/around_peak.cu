// Sums for checking a measured shift, directly from the definition: at each of the 5 x 5 shifts around it the sums of
// f, f^2, g, g^2 and f g over the overlap, where f = left[y + dy][x + dx] and g = right[y][x], in double precision.
//
// A block takes the five shifts of one pair that are alike along y, a warp every WARPS-th row of their overlaps, a lane
// every 32nd column; each lane multiplies its g by five f, which come from the same few lines of the cache. It shares no
// code with the kernels whose results it checks, and no sums between shifts.
//
// Document: none; Lewis 1995, "Fast normalized cross-correlation", for the purpose of the sums. Floor: five reads of both
// images from the second-level cache, thirty loads a pixel from the first.
#include "problem.cuh"
#include "warp.cuh"

#ifndef WARPS
#define WARPS 8
#endif
#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif
#define SIDE 5
#define KINDS 5
#define SUMS (SIDE * KINDS)

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    around_peak(const double* lefts, const double* rights, const int* peaks, double* sums, int left_count, int height,
                int width) {
    SHARED_FLOATS(shared);
    double(*const of_warps)[SUMS] = reinterpret_cast<double(*)[SUMS]>(shared);
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int pair = (int)blockIdx.x / SIDE, line = (int)blockIdx.x % SIDE;
    const int dy = peaks[2 * pair] + line - SIDE / 2, dx = peaks[2 * pair + 1] - SIDE / 2;  // dx of the first
    const int first_row = most(0, -dy), last_row = least(height, height - dy);
    // Columns that any of the five overlaps has.
    const int first_column = most(0, 1 - SIDE - dx), last_column = least(width, width - dx);
    const long long pixels = (long long)height * width;
    const double* left = lefts + (left_count > 1 ? pair * pixels : 0);
    const double* right = rights + pair * pixels;

    double sum[SUMS];
#pragma unroll
    for (int k = 0; k < SUMS; ++k) sum[k] = 0.0;
    for (int y = first_row + warp; y < last_row; y += WARPS) {
        const double* f_row = left + (long long)(y + dy) * width;
        const double* g_row = right + (long long)y * width;
        for (int x = first_column + lane; x < last_column; x += WARP) {
            const double g = g_row[x];
#pragma unroll
            for (int j = 0; j < SIDE; ++j) {
                const int at = x + dx + j;
                if ((unsigned)at >= (unsigned)width) continue;  // beyond this shift's overlap
                const double f = f_row[at];
                sum[KINDS * j] += f;
                sum[KINDS * j + 1] += f * f;
                sum[KINDS * j + 2] += g;
                sum[KINDS * j + 3] += g * g;
                sum[KINDS * j + 4] += f * g;
            }
        }
    }
#pragma unroll
    for (int k = 0; k < SUMS; ++k) {
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum[k] += __shfl_xor_sync(ALL_LANES, sum[k], distance);
        if (lane == 0) of_warps[warp][k] = sum[k];
    }
    __syncthreads();
    if (threadIdx.x >= SUMS) return;
    double total = 0.0;
    for (int i = 0; i < WARPS; ++i) total += of_warps[i][threadIdx.x];
    sums[(long long)blockIdx.x * SUMS + threadIdx.x] = total;
}
