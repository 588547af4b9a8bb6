// What images leave that were moved onto each other and divided by their gains: sums over a row of frequencies, which a
// block takes. Of each frequency: the power of the mean, less the rest's share in it; the rest's power; and products of
// different rests once these are back where the images were. Four sums: the rest's power where there is noise alone
// (beyond HIGH, off the axes); power of the mean, and of the rest, below LOW; products everywhere. In the first column
// both halves of the plane are seen, so that it counts by half. Floor: one read of the spectra.
// Document: none.
#include "aligned.cuh"

#define SUMS 4

extern "C" __global__ void __launch_bounds__(THREADS)
    left_over(const float* spectra, const double* places, const double* gains, double* sums, int count, int height,
              int width) {
    SHARED_FLOATS(shared);
    const int row = (int)blockIdx.x, columns = width / 2 + 1;
    const double fy = frequency(row, height);
    double found[SUMS] = {0.0, 0.0, 0.0, 0.0};
    for (int x = (int)threadIdx.x; x < columns; x += THREADS) {
        const double fx = x * (1.0 / width);
        Complex values[MOST], mean = {0.0, 0.0}, back = {0.0, 0.0};
#pragma unroll
        for (int i = 0; i < MOST; ++i) {
            if (i >= count) break;
            const float* at = spectra + 2 * (((long long)i * height + row) * columns + x);
            const double* place = places + i * OF_IMAGE;
            const Complex stored = {at[0] / gains[i], at[1] / gains[i]};
            values[i] = turned(stored, place[DOWN] * fy + place[ACROSS] * fx);
            mean.re += values[i].re / count;
            mean.im += values[i].im / count;
        }
        double squares = 0.0;
#pragma unroll
        for (int i = 0; i < MOST; ++i) {
            if (i >= count) break;
            const Complex rest = {values[i].re - mean.re, values[i].im - mean.im};
            const double* place = places + i * OF_IMAGE;
            const Complex there = turned(rest, place[BACK_DOWN] * fy + place[BACK_ACROSS] * fx);
            squares += rest.re * rest.re + rest.im * rest.im;
            back.re += there.re;
            back.im += there.im;
        }
        const double products = (back.re * back.re + back.im * back.im - squares) / ((double)count * (count - 1));
        const double rest = squares / (count - 1);
        const double both = mean.re * mean.re + mean.im * mean.im - rest / count;
        const double half = x > 0 ? 1.0 : 0.5;
        if ((fabs(fy) > HIGH || fx > HIGH) && fabs(fy) > ON_AXIS && fx > ON_AXIS) found[0] += rest;
        if (fabs(fy) < LOW && fx < LOW) {
            found[1] += half * both;
            found[2] += half * rest;
        }
        found[3] += half * products;
    }
    sum_over_block(found, reinterpret_cast<double*>(shared), sums + row * SUMS);
}
