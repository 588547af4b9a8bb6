// Frames looked at through linear motions, and the sums from which a step of Gauss-Newton follows. Of the reference's slopes
// g_y, g_x, coordinates y, x, the frame as seen v, the reference r, over the pixels that both show: SUMS numbers of each tile,
//     g_y g_y, g_y g_x, g_x g_x, each times 1, y, x, y^2, y x, x^2;
//     v, r and 1, each times g_y, g_x, y g_y, x g_y, y g_x, x g_x;
//     v, v^2, v r, r, r^2, 1.
// Frames are given by the coefficients of their cubic splines; an item is one motion of one frame, whose place among the
// frames `numbers` tells. A block takes a tile of an item, a thread a strip of one of its columns, on which x stays the same:
// so it keeps sums over y alone, 27 of them.
//
// Floor: reading coefficients, and from the cache the reference and its slopes: 512 x 512 on an H200 (4.1 TB/s) 0.26 us.
// Measured in a profile of twelve launches: about 2 us for each motion; what bounds it was not looked at.
// Documents: Baker and Matthews 2004, doi:10.1023/B:VISI.0000011205.11775.fd; Unser 1999, doi:10.1109/79.799930.
#include "cubic_spline.cuh"
#include "linear_motion.cuh"

#define STRIP_ROWS (TILE_ROWS / STRIPS)
#define SUMS 42

// Sums over a strip of a value and of the value times y.
struct Moments {
    float all, y;
    __device__ __forceinline__ void add(float value, float down) {
        all += value;
        y = fmaf(value, down, y);
    }
};
struct SecondMoments {
    float all, y, yy;
    __device__ __forceinline__ void add(float value, float down) {
        const float product = value * down;
        all += value;
        y += product;
        yy = fmaf(product, down, yy);
    }
};

__device__ __forceinline__ float spline_at(const float* frame, int width, const Place& row, const Place& column) {
    float down[4], across[4], sum = 0;
    cubic_weights(row.rest, down);
    cubic_weights(column.rest, across);
    const float* corner = frame + (long long)(row.at - 1) * width + column.at - 1;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float part = 0;
#pragma unroll
        for (int k = 0; k < 4; ++k) part = fmaf(corner[(long long)i * width + k], across[k], part);
        sum = fmaf(part, down[i], sum);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    linear_sums(const float* frames, const float* reference, const Vector* slopes, const int* numbers,
                const double* motions, float* sums, int height, int width, int tiles_down, int tiles_across) {
    SHARED_FLOATS(shared);
    const int tiles = tiles_down * tiles_across, item = (int)blockIdx.x / tiles, tile = (int)blockIdx.x - item * tiles;
    const int x = tile % tiles_across * COLUMNS + (int)threadIdx.x % COLUMNS;
    const int first = tile / tiles_across * TILE_ROWS + (int)threadIdx.x / COLUMNS * STRIP_ROWS;
    const float* frame = frames + (long long)numbers[item] * height * width;
    const Middle middle(height, width);
    SecondMoments yy = {0, 0, 0}, yx = {0, 0, 0}, xx = {0, 0, 0};
    Moments by_y[3], by_x[3];  // v, r and 1 times g_y, and times g_x
#pragma unroll
    for (int i = 0; i < 3; ++i) by_y[i] = by_x[i] = {0, 0};
    float v = 0, vv = 0, vr = 0, r = 0, rr = 0, count = 0;
    if (x < width && is_compared(x, width)) {
        const Line rows(motions + 6 * (long long)item, first, x), columns(motions + 6 * (long long)item + 3, first, x);
        const int stop = min(first + STRIP_ROWS, height - RIM);
#pragma unroll 1
        for (int y = max(first, RIM); y < stop; ++y) {
            const Place row = rows.after(y - first), column = columns.after(y - first);
            if (!is_compared(row, height) || !is_compared(column, width)) continue;
            const long long place = (long long)y * width + x;
            const float value = spline_at(frame, width, row, column), other = reference[place], down = middle.down(y);
            const Vector slope = slopes[place];
            yy.add(slope.y * slope.y, down);
            yx.add(slope.y * slope.x, down);
            xx.add(slope.x * slope.x, down);
            by_y[0].add(value * slope.y, down);
            by_x[0].add(value * slope.x, down);
            by_y[1].add(other * slope.y, down);
            by_x[1].add(other * slope.x, down);
            by_y[2].add(slope.y, down);
            by_x[2].add(slope.x, down);
            v += value;
            vv = fmaf(value, value, vv);
            vr = fmaf(value, other, vr);
            r += other;
            rr = fmaf(other, other, rr);
            count += 1;
        }
    }
    const float across = middle.across(x);
    float found[SUMS];
    const SecondMoments pairs[3] = {yy, yx, xx};
#pragma unroll
    for (int i = 0; i < 3; ++i) {
        found[6 * i] = pairs[i].all;
        found[6 * i + 1] = pairs[i].y;
        found[6 * i + 2] = pairs[i].all * across;
        found[6 * i + 3] = pairs[i].yy;
        found[6 * i + 4] = pairs[i].y * across;
        found[6 * i + 5] = pairs[i].all * across * across;
        float* to = found + 18 + 6 * i;
        to[0] = by_y[i].all;
        to[1] = by_x[i].all;
        to[2] = by_y[i].y;
        to[3] = by_y[i].all * across;
        to[4] = by_x[i].y;
        to[5] = by_x[i].all * across;
    }
    const float rest[6] = {v, vv, vr, r, rr, count};
#pragma unroll
    for (int i = 0; i < 6; ++i) found[36 + i] = rest[i];
    sums_of_block<SUMS>(found, shared, sums + (long long)blockIdx.x * SUMS);
}
