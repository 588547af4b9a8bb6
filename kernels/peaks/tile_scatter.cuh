// The covariance of the slope of the correlation at the peak of one frame, by what tile_products.cu left of its tiles:
// xcorr_app/registration/standard_error/uncertainty.py defines it. A warp does it, twice over the tiles, in double precision; the order is
// fixed: the same bits every run.
#pragma once
#include "warp.cuh"

#define MIN_CLEAN 0.1  // share of the product of a smoothed image and itself that is taken for the scene at least
#define FROM_FRAME 5
#define FROM_REFERENCE 18
enum { G, GG, S, SG, WY, WX, WYG, WXG, WY_GY, WY_GX, WX_GY, WX_GX, WY_GYY, WY_GYX, WY_GXX, WX_GYY, WX_GYX, WX_GXX };

struct Scatter {
    double yy, yx, xx, tiles;  // tiles: how many lie in the overlap
};

struct OfReference {
    const double* sums;  // [FROM_REFERENCE][references][tiles]
    const double* noise;  // [3][references], and what a pixel of it adds to WY_GY and to WX_GX
    int references, number;
    bool plain;  // not smoothed
};

__device__ __forceinline__ double sum_of_lanes(double value) {
    value = warp_sum(value);
    return value;
}

// `sums` are [count][FROM_FRAME] of the frame, the first NaN beyond the overlap, which has so many pixels; (oy, ox) is the
// shift less whole pixels, and `rise` how many times as high the peak is there.
__device__ Scatter scatter_of(const double* sums, const OfReference& reference, int count, int tile_pixels, double overlap,
                              double oy, double ox, double rise, int lane) {
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
    const double of_frame = all[1] - n * mean * mean, of_image = r[GG] - n * level * level;
    const double norm = of_frame * of_image * overlap / n;
    const double product = (all[2] - n * mean * total) * rise, own = r[SG] - n * level * total;
    const double white = reference.noise[reference.number];
    const double shared = reference.plain && of_frame > 0 ? product * product / of_frame : 0.0;
    const double noise = fmax(fmin(n * white, of_image - shared), 0.0);
    const double clean = fmax(own - noise, MIN_CLEAN * own), gain = clean > 0 ? product / clean : 0.0;
    // A tile that was filled holds no noise, and no tile more than what it varies by.
    const double of_y = white > 0 ? reference.noise[reference.references + reference.number] / white : 0.0;
    const double of_x = white > 0 ? reference.noise[2 * reference.references + reference.number] / white : 0.0;
    const auto noise_of = [&](int tile) {
        const double g = of_tile(G, tile);
        return fmin(tile_pixels * noise / n, of_tile(GG, tile) - g * g / tile_pixels);
    };
    double held = 0.0;
    for (int tile = lane; tile < count; tile += WARP)
        if (sums[tile * FROM_FRAME] == sums[tile * FROM_FRAME]) held += noise_of(tile);
    held = sum_of_lanes(held);
    r[WY_GY] -= of_y * held;
    r[WX_GX] -= of_x * held;
    // Twice over the tiles: for the sum of what is left, and for its scatter about the further offset that takes it away.
    double further_y = 0.0, further_x = 0.0, sum_y = 0.0, sum_x = 0.0, yy = 0.0, yx = 0.0, xx = 0.0;
    for (int round = 0; round < 2; ++round) {
        for (int tile = lane; tile < count; tile += WARP) {
            const double* own = sums + tile * FROM_FRAME;
            if (own[0] != own[0]) continue;
            double t[FROM_REFERENCE];
            for (int kind = WY; kind < FROM_REFERENCE; ++kind) t[kind] = of_tile(kind, tile);
            t[WY_GY] -= of_y * noise_of(tile);
            t[WX_GX] -= of_x * noise_of(tile);
            const double bent_y = oy * oy / 2 * t[WY_GYY] + oy * ox * t[WY_GYX] + ox * ox / 2 * t[WY_GXX];
            const double bent_x = oy * oy / 2 * t[WX_GYY] + oy * ox * t[WX_GYX] + ox * ox / 2 * t[WX_GXX];
            const double y = own[3] - mean * t[WY] -
                             gain * (t[WYG] - level * t[WY] + oy * t[WY_GY] + ox * t[WY_GX] + bent_y) -
                             further_y * t[WY_GY] - further_x * t[WY_GX];
            const double x = own[4] - mean * t[WX] -
                             gain * (t[WXG] - level * t[WX] + oy * t[WX_GY] + ox * t[WX_GX] + bent_x) -
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
