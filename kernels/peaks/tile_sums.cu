// What tells whether a tile of a frame f agrees with the reference g (xcorr_app/registration/parts/tiles.py): sums over each
// tile of f, g, r, f^2, g^2, r^2, gy^2, gy gx, gx^2, gy r, gx r, gy and gx, with gy and gx the central differences of g
// per pixel (bins are two pixels; zero on the rim of all tiles) and r = f - g - oy gy - ox gx, o being the part of the
// frame's shift that is less than a pixel. Frames and references are bins of 2 x 2 pixels, of which tiles take
// `size` x `size`. A warp takes a tile of a frame, a lane every 32nd bin of it; sums are in double precision and their
// order is fixed. Floor: one read of the bins.
// Document: none; Lucas and Kanade 1981 for the displacement that follows from these sums.
#include "problem.cuh"
#include "warp.cuh"

#define WARPS 4
#define KINDS 13

extern "C" __global__ void __launch_bounds__(WARPS * WARP)
    tile_sums(const float* frames, const float* references, const double* offsets, double* sums, int count, int shared,
              int height, int width, int size, int rows, int columns) {
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int tiles = rows * columns, number = (int)blockIdx.x * WARPS + warp;
    if (number >= count * tiles) return;
    const int frame = number / tiles, tile = number - frame * tiles;
    const int top = tile / columns * size, first = tile % columns * size;
    const float* f_of = frames + (long long)frame * height * width;
    const float* g_of = references + (shared ? 0 : (long long)frame * height * width);
    const double oy = offsets[2 * frame], ox = offsets[2 * frame + 1];
    double sum[KINDS];
#pragma unroll
    for (int kind = 0; kind < KINDS; ++kind) sum[kind] = 0.0;
    for (int k = lane; k < size * size; k += WARP) {
        const int y = top + k / size, x = first + k % size;
        const long long at = (long long)y * width + x;
        const double f = (double)f_of[at], g = (double)g_of[at];
        double gy = 0.0, gx = 0.0;
        if (y > 0 && y < rows * size - 1) gy = ((double)g_of[at + width] - (double)g_of[at - width]) / 4;
        if (x > 0 && x < columns * size - 1) gx = ((double)g_of[at + 1] - (double)g_of[at - 1]) / 4;
        const double rest = f - g - oy * gy - ox * gx;
        sum[0] += f;
        sum[1] += g;
        sum[2] += rest;
        sum[3] += f * f;
        sum[4] += g * g;
        sum[5] += rest * rest;
        sum[6] += gy * gy;
        sum[7] += gy * gx;
        sum[8] += gx * gx;
        sum[9] += gy * rest;
        sum[10] += gx * rest;
        sum[11] += gy;
        sum[12] += gx;
    }
#pragma unroll
    for (int kind = 0; kind < KINDS; ++kind) {
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum[kind] += __shfl_xor_sync(ALL_LANES, sum[kind], distance);
        if (lane == 0) sums[((long long)kind * count + frame) * tiles + tile] = sum[kind];
    }
}
