// Sums for checking a measured shift, directly from the definition: at each of the 5 x 5 shifts around it the sums of
// f, f^2, g, g^2 and f g over the overlap, where f = left[y + dy][x + dx] and g = right[y][x], in double precision.
//
// A block takes one shift of one pair, a warp every WARPS-th row of the overlap, a lane every 32nd column. It shares no
// code with the kernels whose results it checks, and no sums between shifts.
//
// Document: none; Lewis 1995, "Fast normalized cross-correlation", for the purpose of the sums. Floor: 25 reads of both
// images from the cache.
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

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    around_peak(const double* lefts, const double* rights, const int* peaks, double* sums, int left_count, int height,
                int width) {
    SHARED_FLOATS(shared);
    double(*const of_warps)[KINDS] = reinterpret_cast<double(*)[KINDS]>(shared);
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int pair = (int)blockIdx.x / (SIDE * SIDE), shift = (int)blockIdx.x % (SIDE * SIDE);
    const int dy = peaks[2 * pair] + shift / SIDE - SIDE / 2, dx = peaks[2 * pair + 1] + shift % SIDE - SIDE / 2;
    const int first_row = most(0, -dy), last_row = least(height, height - dy);
    const int first_column = most(0, -dx), last_column = least(width, width - dx);
    const long long pixels = (long long)height * width;
    const double* left = lefts + (left_count > 1 ? pair * pixels : 0);
    const double* right = rights + pair * pixels;

    double sum[KINDS] = {0.0, 0.0, 0.0, 0.0, 0.0};
    for (int y = first_row + warp; y < last_row; y += WARPS) {
        const double* f_row = left + (long long)(y + dy) * width + dx;
        const double* g_row = right + (long long)y * width;
#pragma unroll 4
        for (int x = first_column + lane; x < last_column; x += WARP) {
            const double f = f_row[x], g = g_row[x];
            sum[0] += f;
            sum[1] += f * f;
            sum[2] += g;
            sum[3] += g * g;
            sum[4] += f * g;
        }
    }
#pragma unroll
    for (int kind = 0; kind < KINDS; ++kind) {
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum[kind] += __shfl_xor_sync(ALL_LANES, sum[kind], distance);
        if (lane == 0) of_warps[warp][kind] = sum[kind];
    }
    __syncthreads();
    if (threadIdx.x >= KINDS) return;
    double total = 0.0;
    for (int i = 0; i < WARPS; ++i) total += of_warps[i][threadIdx.x];
    sums[(long long)blockIdx.x * KINDS + threadIdx.x] = total;
}
