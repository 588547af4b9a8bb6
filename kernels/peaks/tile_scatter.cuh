// The covariance of the slope of the correlation at the peak of one frame, by what tile_products.cu left of its tiles:
// xcorr_app/registration/standard_error/uncertainty.py defines it. A warp does it, twice over the tiles, in double precision; the order is
// fixed: the same bits every run.
#pragma once
#include "warp.cuh"

#define MIN_CLEAN 0.1  // share of the product of a smoothed image and itself that is taken for the scene at least
#define FROM_FRAME 5
#define FROM_REFERENCE 12
enum { G, GG, S, SG, WY, WX, WYG, WXG, WY_GY, WY_GX, WX_GY, WX_GX };  // sums of the reference

struct Scatter {
    double yy, yx, xx, tiles;  // tiles: how many lie in the overlap
};

struct OfReference {
    const double* sums;  // [FROM_REFERENCE][references][tiles]
    const double* noise;  // [references]
    int references, number;
};

__device__ __forceinline__ double sum_of_lanes(double value) {
    value = warp_sum(value);
    return value;
}

// `sums` are [count][FROM_FRAME] of the frame, the first NaN beyond the overlap, which has so many pixels; (oy, ox) is the
// shift less whole pixels.
__device__ Scatter scatter_of(const double* sums, const OfReference& reference, int count, int tile_pixels, double overlap,
                              double oy, double ox, int lane) {
    int number = 0;
    double all[FROM_FRAME] = {0.0, 0.0, 0.0, 0.0, 0.0}, r[FROM_REFERENCE];
    const auto of_tile = [&](int kind, int tile) {
        return reference.sums[((long long)kind * reference.references + reference.number) * count + tile];
    };
    for (int kind = 0; kind < FROM_REFERENCE; ++kind) r[kind] = 0.0;
    for (int tile = lane; tile < count; tile += WARP) {
        const double* own = sums + tile * FROM_FRAME;
        if (own[0] != own[0]) continue;
        ++number;
        for (int kind = 0; kind < FROM_FRAME; ++kind) all[kind] += own[kind];
        for (int kind = 0; kind < FROM_REFERENCE; ++kind) r[kind] += of_tile(kind, tile);
    }
    const double inside = sum_of_lanes((double)number);
    for (int kind = 0; kind < FROM_FRAME; ++kind) all[kind] = sum_of_lanes(all[kind]);
    for (int kind = 0; kind < FROM_REFERENCE; ++kind) r[kind] = sum_of_lanes(r[kind]);
    const double n = fmax(inside * tile_pixels, 1.0);
    const double mean = all[0] / n, level = r[G] / n, total = r[S] / n;
    const double norm = (all[1] - n * mean * mean) * (r[GG] - n * level * level) * overlap / n;
    const double own = r[SG] - n * level * total, clean = fmax(own - n * reference.noise[reference.number], MIN_CLEAN * own);
    const double gain = clean > 0 ? (all[2] - n * mean * total) / clean : 0.0;
    // Twice over the tiles: for the sum of what is left, and for its scatter about the further offset that takes it away.
    double further_y = 0.0, further_x = 0.0, sum_y = 0.0, sum_x = 0.0, yy = 0.0, yx = 0.0, xx = 0.0;
    for (int round = 0; round < 2; ++round) {
        for (int tile = lane; tile < count; tile += WARP) {
            const double* own = sums + tile * FROM_FRAME;
            if (own[0] != own[0]) continue;
            double t[FROM_REFERENCE];
            for (int kind = WY; kind < FROM_REFERENCE; ++kind) t[kind] = of_tile(kind, tile);
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
    const bool usable = norm > 0;
    const double scale = usable ? inside / fmax(inside - 3.0, 1.0) / norm : 1.0;
    const double infinite = (double)__int_as_float(0x7f800000);
    const Scatter found = {usable ? yy * scale : infinite, usable ? yx * scale : infinite, usable ? xx * scale : infinite,
                           inside};
    return found;
}
