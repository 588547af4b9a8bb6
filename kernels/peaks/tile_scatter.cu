// How much the slope of the correlation scatters among the tiles of a frame, from what frame and reference do not share:
// xcorr_app/registration/uncertainty.py defines it. A block takes one frame, moved by its whole shift; a warp every
// WARPS-th tile that lies in the overlap, a lane every 32nd of its pixels. Five sums a tile stay in shared memory: of the
// frame f, of f^2, and of the products of f with the smoothed reference and with its slopes along both axes. From them
// and twelve sums of the reference alone (`of_tiles`, one array of doubles a kind) and its variance of `noise`, one warp makes the 2 x 2
// covariance. The order is fixed: the same bits every run. Floor: one read of the tiles' pixels of each frame;
// those of the reference come from the cache.
// Document: none; Huber 1967 and White 1980 (doi 10.2307/1912934) for the estimator.
#include "problem.cuh"
#include "warp.cuh"

#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif
#define WARPS 4
#define LEAST_CLEAN 0.1  // share of the product of a smoothed image and itself that is taken for the scene at least
#define FROM_FRAME 5
#define FROM_REFERENCE 12
enum { G, GG, S, SG, WY, WX, WYG, WXG, WY_GY, WY_GX, WX_GY, WX_GX };  // sums of the reference

struct Geometry {  // of the tiles
    int rows, columns, height, width, first_row, row_pitch, left;
    __device__ __forceinline__ int top(int tile) const { return first_row + tile / columns * row_pitch; }
    __device__ __forceinline__ int first(int tile) const { return left + tile % columns * width; }
};

__device__ __forceinline__ double sum_of_lanes(double value) {
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL_LANES, value, distance);
    return value;
}

extern "C" __global__ void __launch_bounds__(WARPS * WARP, 4)
    tile_scatter(const Right* frames, const float* factors, const double* of_tiles, const double* noise, const int* peaks,
                 const double* offsets, double* scatters, int height, int width, int references, int rows, int columns,
                 int tile_height, int tile_width, int first_row, int row_pitch, int left) {
    const Geometry tiles = {rows, columns, tile_height, tile_width, first_row, row_pitch, left};
    const int count = rows * columns, frame = (int)blockIdx.x, warp = (int)threadIdx.x / WARP;
    const int lane = (int)threadIdx.x % WARP, dy = peaks[2 * frame], dx = peaks[2 * frame + 1];
    SHARED_FLOATS(shared);
    double* sums = reinterpret_cast<double*>(shared);  // [count][FROM_FRAME]; the first is NaN beyond the overlap

    const long long strip = (long long)rows * tile_height * columns * tile_width;  // pixels of all tiles
    const int reference = references > 1 ? frame : 0;
    const float* smoothed = factors + (long long)reference * strip;
    const float* slope_y = smoothed + (long long)references * strip;
    const float* slope_x = slope_y + (long long)references * strip;
    const Right* pixels = frames + (long long)frame * height * width;
    for (int tile = warp; tile < count; tile += WARPS) {
        const int top = tiles.top(tile), first = tiles.first(tile);
        const bool whole = top >= most(0, dy) && top + tile_height <= least(height, height + dy) &&
                            first >= most(0, dx) && first + tile_width <= least(width, width + dx);
        double sum[FROM_FRAME] = {0.0, 0.0, 0.0, 0.0, 0.0};
        const long long corner = ((long long)(tile / columns) * tile_height * columns + tile % columns) * tile_width;
        for (int k = lane; whole && k < tile_height * tile_width; k += WARP) {
            const int y = k / tile_width, x = k - y * tile_width;
            const double f = (double)pixels[(long long)(top + y - dy) * width + first + x - dx];
            const long long at = corner + (long long)y * columns * tile_width + x;
            sum[0] += f;
            sum[1] += f * f;
            sum[2] += f * (double)smoothed[at];
            sum[3] += f * (double)slope_y[at];
            sum[4] += f * (double)slope_x[at];
        }
#pragma unroll
        for (int kind = 0; kind < FROM_FRAME; ++kind) {
            const double total = sum_of_lanes(sum[kind]);
            if (lane == 0) sums[tile * FROM_FRAME + kind] = kind == 0 && !whole ? (double)__int_as_float(0x7fffffff) : total;
        }
    }
    __syncthreads();
    if (warp > 0) return;

    int number = 0;
    double all[FROM_FRAME] = {0.0, 0.0, 0.0, 0.0, 0.0}, r[FROM_REFERENCE];
    for (int kind = 0; kind < FROM_REFERENCE; ++kind) r[kind] = 0.0;
    for (int tile = lane; tile < count; tile += WARP) {
        const double* own = sums + tile * FROM_FRAME;
        if (own[0] != own[0]) continue;
        ++number;
        for (int kind = 0; kind < FROM_FRAME; ++kind) all[kind] += own[kind];
        for (int kind = 0; kind < FROM_REFERENCE; ++kind)
            r[kind] += of_tiles[((long long)kind * references + reference) * count + tile];
    }
    const double inside = sum_of_lanes((double)number);
    for (int kind = 0; kind < FROM_FRAME; ++kind) all[kind] = sum_of_lanes(all[kind]);
    for (int kind = 0; kind < FROM_REFERENCE; ++kind) r[kind] = sum_of_lanes(r[kind]);
    const double n = fmax(inside * tile_height * tile_width, 1.0);
    const double mean = all[0] / n, level = r[G] / n, total = r[S] / n;
    const double overlap = (double)most(height - (dy < 0 ? -dy : dy), 0) * most(width - (dx < 0 ? -dx : dx), 0);
    const double norm = (all[1] - n * mean * mean) * (r[GG] - n * level * level) * overlap / n;
    const double own = r[SG] - n * level * total, clean = fmax(own - n * noise[reference], LEAST_CLEAN * own);
    const double gain = clean > 0 ? (all[2] - n * mean * total) / clean : 0.0;
    const double oy = offsets[2 * frame], ox = offsets[2 * frame + 1];
    // Twice over the tiles: for the sum of what is left, and for its scatter about the further offset that takes it away.
    double further_y = 0.0, further_x = 0.0, sum_y = 0.0, sum_x = 0.0, yy = 0.0, yx = 0.0, xx = 0.0;
    for (int round = 0; round < 2; ++round) {
        for (int tile = lane; tile < count; tile += WARP) {
            const double* own = sums + tile * FROM_FRAME;
            if (own[0] != own[0]) continue;
            double t[FROM_REFERENCE];
            for (int kind = WY; kind < FROM_REFERENCE; ++kind)
                t[kind] = of_tiles[((long long)kind * references + reference) * count + tile];
            const double y = own[3] - mean * t[WY] - gain * (t[WYG] - level * t[WY] + oy * t[WY_GY] + ox * t[WY_GX]) -
                             further_y * t[WY_GY] - further_x * t[WY_GX];
            const double x = own[4] - mean * t[WX] - gain * (t[WXG] - level * t[WX] + oy * t[WX_GY] + ox * t[WX_GX]) -
                             further_y * t[WX_GY] - further_x * t[WX_GX];
            sum_y += y;
            sum_x += x;
            yy += y * y;
            yx += y * x;
            xx += x * x;
        }
        if (round == 1) break;
        sum_y = sum_of_lanes(sum_y);
        sum_x = sum_of_lanes(sum_x);
        const double a = r[WY_GY], b = r[WY_GX], c = r[WX_GY], d = r[WX_GX], determinant = a * d - b * c;
        if (determinant > 0) {
            further_y = (sum_y * d - sum_x * b) / determinant;
            further_x = (sum_x * a - sum_y * c) / determinant;
        }
        yy = yx = xx = 0.0;
    }
    yy = sum_of_lanes(yy);
    yx = sum_of_lanes(yx);
    xx = sum_of_lanes(xx);
    if (lane != 0) return;
    const bool usable = norm > 0;
    const double scale = usable ? inside / fmax(inside - 3.0, 1.0) / norm : 1.0;
    const double infinite = (double)__int_as_float(0x7f800000);
    double* scatter = scatters + 4 * (long long)frame;
    scatter[0] = usable ? yy * scale : infinite;
    scatter[1] = scatter[2] = usable ? yx * scale : infinite;
    scatter[3] = usable ? xx * scale : infinite;
}
