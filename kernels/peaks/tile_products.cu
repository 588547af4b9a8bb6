// What the scatter of a shift among tiles needs of a frame (xcorr_app/registration/standard_error/uncertainty.py): over each tile of the
// frame moved by its whole shift, five sums: of the frame f, of f^2, and of the products of f with the smoothed reference
// and with its slopes along both axes. The first is NaN of a tile that does not lie in the overlap. A warp takes a tile, a
// lane every 32nd of its pixels, in double precision and in a fixed order: the same bits every run. Floor: one read of the
// tiles' pixels of each frame; those of the reference come from the cache.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#define WARPS 4
#define FROM_FRAME 5

extern "C" __global__ void __launch_bounds__(WARPS * WARP)
    tile_products(const Right* frames, const float* factors, const int* peaks, double* products, int count, int height,
                  int width, int references, int rows, int columns, int tile_height, int tile_width, int first_row,
                  int row_pitch, int left) {
    const int lane = (int)threadIdx.x % WARP, tiles = rows * columns;
    const int number = (int)blockIdx.x * WARPS + (int)threadIdx.x / WARP, frame = number / tiles;
    if (frame >= count) return;
    const int tile = number - frame * tiles, dy = peaks[2 * frame], dx = peaks[2 * frame + 1];
    const int top = first_row + tile / columns * row_pitch, first = left + tile % columns * tile_width;
    const bool whole = top >= max(0, dy) && top + tile_height <= min(height, height + dy) && first >= max(0, dx) &&
                       first + tile_width <= min(width, width + dx);
    const long long pitch = (long long)columns * tile_width, strip = (long long)rows * tile_height * pitch;
    const long long corner = (long long)(tile / columns) * tile_height * pitch + tile % columns * tile_width;
    const float* smoothed = factors + (references > 1 ? frame : 0) * strip + corner;
    const float* slope_y = smoothed + references * strip;
    const float* slope_x = slope_y + references * strip;
    const Right* pixels = frames + ((long long)frame * height + top - dy) * width + first - dx;
    double sum[FROM_FRAME] = {0.0, 0.0, 0.0, 0.0, 0.0};
    int y = lane / tile_width, x = lane - y * tile_width;
#pragma unroll 4
    for (int k = lane; whole && k < tile_height * tile_width; k += WARP) {
        const double f = (double)pixels[(long long)y * width + x];
        const long long at = y * pitch + x;
        sum[0] += f;
        sum[1] += f * f;
        sum[2] += f * (double)smoothed[at];
        sum[3] += f * (double)slope_y[at];
        sum[4] += f * (double)slope_x[at];
        x += WARP;
        while (x >= tile_width) {
            x -= tile_width;
            ++y;
        }
    }
#pragma unroll
    for (int kind = 0; kind < FROM_FRAME; ++kind) {
        sum[kind] = warp_sum(sum[kind]);
        if (lane == 0)
            products[(long long)number * FROM_FRAME + kind] =
                kind == 0 && !whole ? (double)__int_as_float(0x7fffffff) : sum[kind];
    }
}
