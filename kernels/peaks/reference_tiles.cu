// What standard errors need of reference images on tiles (xcorr_app/registration/standard_error/uncertainty.py): the images s, smoothed as
// planes were, or as they are; the slopes of s along both axes, central differences averaged over three neighbours along
// the other axis; and eighteen sums over each tile of these, of the image g, of its own slopes and second slopes and of their
// products, in double precision. g is less `mean` of the image and constant beyond its rim. A block takes one tile of one image, a
// thread every THREADS-th of its pixels; the order is fixed. Floor: one read of the images, one write of three floats a
// pixel of the tiles.
// Document: none; Huber 1967 and White 1980 (doi 10.2307/1912934) for the estimator.
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 128
#define KINDS 18
#define RIM 2  // pixels that smoothed strips have around their tiles

struct Image {  // as it is
    const float* pixels;
    float mean;
    int height, width;
    __device__ __forceinline__ float at(int y, int x) const {
        y = max(0, min(height - 1, y));
        x = max(0, min(width - 1, x));
        return pixels[(long long)y * width + x] - mean;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    reference_tiles(const float* images, const double* means, const float* strips, float* factors, double* sums,
                    int has_strips, int count, int height, int width, int rows, int columns, int tile_height,
                    int tile_width, int first_row, int row_pitch, int left) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [THREADS / WARP][KINDS]
    const int tiles = rows * columns, image = (int)blockIdx.x / tiles, tile = (int)blockIdx.x - image * tiles;
    const int row = tile / columns, column = tile - row * columns, all = columns * tile_width;
    const Image g = {images + (long long)image * height * width, (float)means[image], height, width};
    const long long strip = (long long)tile_height * all, every = (long long)count * rows * strip;
    float* s_of = factors + ((long long)image * rows + row) * strip;
    const float* smoothed = strips;
    if (has_strips) smoothed += ((long long)image * rows + row) * (tile_height + 2 * RIM) * (all + 2 * RIM);
    double sum[KINDS];
#pragma unroll
    for (int kind = 0; kind < KINDS; ++kind) sum[kind] = 0.0;
    for (int k = (int)threadIdx.x; k < tile_height * tile_width; k += THREADS) {
        const int y = k / tile_width, x = column * tile_width + k - y * tile_width;
        const int top = first_row + row * row_pitch + y, first = left + x;
        float near[3][3];
#pragma unroll
        for (int i = 0; i < 3; ++i)
#pragma unroll
            for (int j = 0; j < 3; ++j)
                near[i][j] = has_strips ? smoothed[(long long)(y + RIM - 1 + i) * (all + 2 * RIM) + x + RIM - 1 + j]
                                        : g.at(top - 1 + i, first - 1 + j);
        const float s = near[1][1];
        const float wy = ((near[2][0] + near[2][1] + near[2][2]) / 3 - (near[0][0] + near[0][1] + near[0][2]) / 3) / 2;
        const float wx = ((near[0][2] + near[1][2] + near[2][2]) / 3 - (near[0][0] + near[1][0] + near[2][0]) / 3) / 2;
        const long long at = (long long)y * all + x;
        s_of[at] = s;
        s_of[every + at] = wy;
        s_of[2 * every + at] = wx;
        const double v = (double)g.at(top, first);
        const double above = g.at(top - 1, first), below = g.at(top + 1, first);
        const double before = g.at(top, first - 1), after = g.at(top, first + 1);
        const double gy = (below - above) / 2, gx = (after - before) / 2;
        const double gyy = below + above - 2 * v, gxx = after + before - 2 * v;
        const double gyx = ((double)g.at(top + 1, first + 1) - (double)g.at(top + 1, first - 1) -
                            (double)g.at(top - 1, first + 1) + (double)g.at(top - 1, first - 1)) / 4;
        sum[0] += v;
        sum[1] += v * v;
        sum[2] += s;
        sum[3] += s * v;
        sum[4] += wy;
        sum[5] += wx;
        sum[6] += wy * v;
        sum[7] += wx * v;
        sum[8] += wy * gy;
        sum[9] += wy * gx;
        sum[10] += wx * gy;
        sum[11] += wx * gx;
        sum[12] += wy * gyy;
        sum[13] += wy * gyx;
        sum[14] += wy * gxx;
        sum[15] += wx * gyy;
        sum[16] += wx * gyx;
        sum[17] += wx * gxx;
    }
    sums_of_warps(sum, of_warps);
    if (threadIdx.x >= KINDS) return;
    double total = 0.0;
    for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[w * KINDS + threadIdx.x];
    sums[((long long)threadIdx.x * count + image) * tiles + tile] = total;
}
