// What fraction of an image's variance is no white noise, by the sums of noise_sums.cu over pixels next to each other:
// xcorr_app/registration/quality.py defines it. All lanes of a warp call it for one image; all get the answer.
#pragma once
#include "warp.cuh"

#define LAGS 3
#define NOISE_SUMS (2 * (2 * LAGS + 1))

// `sums` are [parts][NOISE_SUMS] over so many groups of four rows of a `width`; no groups: an image too small to tell.
__device__ __forceinline__ double clean_fraction(const double* sums, int groups, int parts, int width, double variance,
                                                 int lane) {
    double own = 0.0, of_lags[2 * LAGS + 1], mean = 0.0;
    if (groups == 0) return 1.0;
    if (lane < NOISE_SUMS)
        for (int part = 0; part < parts; ++part) own += sums[part * NOISE_SUMS + lane];
#pragma unroll
    for (int k = 0; k <= 2 * LAGS; ++k) {  // no lag, then lags down, then across
        const int lag = k <= LAGS ? k : k - LAGS;
        const double pairs = (double)groups * (k <= LAGS ? (LAGS + 1 - lag) * width : (LAGS + 1) * (width - lag));
        const double product = __shfl_sync(ALL_LANES, own, 2 * k) / pairs;
        const double factors = __shfl_sync(ALL_LANES, own, 2 * k + 1) / pairs;
        if (k == 0) mean = factors / 2;
        of_lags[k] = product - mean * factors + mean * mean;
    }
    double flanks = 0.0;
#pragma unroll
    for (int axis = 0; axis < 2; ++axis)
        flanks += (15 * of_lags[1 + LAGS * axis] - 6 * of_lags[2 + LAGS * axis] + of_lags[3 + LAGS * axis]) / 20;
    const double clean = variance > 0 ? 1 - (of_lags[0] - flanks) / variance : 1.0;
    return clean < 0.0 ? 0.0 : clean > 1.0 ? 1.0 : clean;
}
