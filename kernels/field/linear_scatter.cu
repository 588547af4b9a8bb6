// How much the sums of a linear motion scatter: of each square of BLOCK x BLOCK pixels of an item, SUMS numbers. With the
// reference's slopes g and those h of the frame as seen v, residual e = r - gain v - offset, over the pixels compared:
//     e times -g_y, -g_x, -y g_y, -x g_y, -y g_x, -x g_x, v, 1;
//     g_y h_y, g_y h_x, g_x h_y, g_x h_x, each times 1, y, x, y^2, y x, x^2;
//     v and 1, each times h_y, h_x, y h_y, x h_y, y h_x, x h_x.
// A warp takes a square: a lane half of one of its columns.
//
// Floor: reading the frame as seen, and from the cache the reference and its slopes, writing 176 bytes a square: 512 x 512 on
// an H200 (4.1 TB/s) 0.3 us.
// Document: White 1980, doi:10.2307/1912934, with squares as clusters.
#include "linear_motion.cuh"

#define BLOCK 16
#define STRIP_ROWS (BLOCK / 2)
#define SUMS 44

__device__ __forceinline__ float slope_along(const float* place, long long step) {
    return (8 * (place[step] - place[-step]) - (place[2 * step] - place[-2 * step])) * (1.0f / 12);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    linear_scatter(const float* seen, const float* reference, const Vector* slopes, const double* motions,
                   const float* levels, float* sums, int height, int width, int items, int squares_down,
                   int squares_across) {
    const int squares = squares_down * squares_across;
    const int lane = (int)threadIdx.x % 32;
    const long long number = (long long)blockIdx.x * WARPS + (int)threadIdx.x / 32;
    if (number >= (long long)items * squares) return;
    const int item = (int)(number / squares), square = (int)(number - (long long)item * squares);
    const int x = square % squares_across * BLOCK + lane % BLOCK;
    const int first = square / squares_across * BLOCK + lane / BLOCK * STRIP_ROWS;
    const float* image = seen + (long long)item * height * width;
    const float gain = levels[2 * item], offset = levels[2 * item + 1];
    const Middle middle(height, width);
    float found[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) found[i] = 0;
    if (x < width && is_compared(x, width)) {
        const Line rows(motions + 6 * (long long)item, first, x), columns(motions + 6 * (long long)item + 3, first, x);
        const int stop = min(first + STRIP_ROWS, height - RIM);
        const float across = middle.across(x);
#pragma unroll 1
        for (int y = max(first, RIM); y < stop; ++y) {
            if (!is_compared(rows.after(y - first), height) || !is_compared(columns.after(y - first), width)) continue;
            const long long place = (long long)y * width + x;
            const float value = image[place], down = middle.down(y);
            const float left = reference[place] - fmaf(gain, value, offset);
            const Vector g = slopes[place], h = {slope_along(image + place, width), slope_along(image + place, 1)};
            const float powers[6] = {1, down, across, down * down, down * across, across * across};
            const float changes[6] = {g.y, g.x, down * g.y, across * g.y, down * g.x, across * g.x};
            const float of_frame[6] = {h.y, h.x, down * h.y, across * h.y, down * h.x, across * h.x};
            const float products[4] = {g.y * h.y, g.y * h.x, g.x * h.y, g.x * h.x};
#pragma unroll
            for (int k = 0; k < 6; ++k) {
                found[k] = fmaf(-changes[k], left, found[k]);
#pragma unroll
                for (int i = 0; i < 4; ++i) found[8 + 6 * i + k] = fmaf(products[i], powers[k], found[8 + 6 * i + k]);
                found[32 + k] = fmaf(value, of_frame[k], found[32 + k]);
                found[38 + k] += of_frame[k];
            }
            found[6] = fmaf(value, left, found[6]);
            found[7] += left;
        }
    }
    typedef WarpReduce<SUMS, 16> Reduce;
    Reduce::run(found, lane);
#pragma unroll
    for (int i = 0; i < Reduce::KEPT; ++i) {
        const int at = Reduce::index(i, lane);
        if (at >= 0) sums[number * SUMS + at] = found[i];
    }
}
