// What the noise of every image is told from: sums over four rows in every PERIOD of v(y, x) v(y + k, x) and of
// v(y, x) v(y, x + k), k = 0 ... 3, and of the two factors, in double precision and less `v` of the image's first pixel, so
// that a large mean costs no digits (xcorr_app/registration/quality.py, clean_fraction). `parts` blocks share an image, of
// which each leaves sums of its own; a thread takes every so many-th column of a group. Floor: one read of these rows.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 256
#define LAGS 3
#define SUMS (2 * (2 * LAGS + 1))  // products and factors: of no lag, then of lags down, then across

extern "C" __global__ void __launch_bounds__(THREADS)
    noise_sums(const Right* images, double* sums, int height, int width, int period, int groups,
               int parts) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [THREADS / WARP][SUMS]
    const int number = (int)blockIdx.x / parts, part = (int)blockIdx.x - number * parts;
    const Right* image = images + (long long)number * height * width;
    const double level = (double)image[0];
    double sum[SUMS];
#pragma unroll
    for (int kind = 0; kind < SUMS; ++kind) sum[kind] = 0.0;
    for (int k = part * THREADS + (int)threadIdx.x; k < groups * width; k += parts * THREADS) {
        const int group = k / width, x = k - group * width;
        const Right* corner = image + (long long)group * period * width + x;
        double column[LAGS + 1];
#pragma unroll
        for (int y = 0; y <= LAGS; ++y) column[y] = (double)corner[(long long)y * width] - level;
#pragma unroll
        for (int y = 0; y <= LAGS; ++y) {
            sum[0] += column[y] * column[y];
            sum[1] += 2 * column[y];
#pragma unroll
            for (int lag = 1; lag <= LAGS; ++lag) {
                if (y + lag <= LAGS) {
                    sum[2 * lag] += column[y] * column[y + lag];
                    sum[2 * lag + 1] += column[y] + column[y + lag];
                }
                if (x + lag < width) {
                    const double other = (double)corner[(long long)y * width + lag] - level;
                    sum[2 * (LAGS + lag)] += column[y] * other;
                    sum[2 * (LAGS + lag) + 1] += column[y] + other;
                }
            }
        }
    }
    sums_of_warps(sum, of_warps);
    if (threadIdx.x >= SUMS) return;
    double total = 0.0;
    for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[w * SUMS + threadIdx.x];
    sums[(long long)blockIdx.x * SUMS + threadIdx.x] = total;
}
