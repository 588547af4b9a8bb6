// Products of the spectra of images with each other, once they are moved onto each other, of frequencies below LOW: the
// real parts of pairs (i, j), j >= i, summed over a row of frequencies, which a block takes. Floor: one read of the
// spectra.
// Document: none.
#include "aligned.cuh"

#define PAIRS (MOST * (MOST + 1) / 2)

extern "C" __global__ void __launch_bounds__(THREADS)
    aligned_products(const float* spectra, const double* places, double* sums, int count, int height, int width) {
    SHARED_FLOATS(shared);
    const int row = (int)blockIdx.x, columns = width / 2 + 1;
    const double fy = frequency(row, height);
    double products[PAIRS];
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) products[k] = 0.0;
    for (int x = (int)threadIdx.x; x < columns && fabs(fy) < LOW; x += THREADS) {
        const double fx = x * (1.0 / width);
        if (fx >= LOW) break;
        Complex values[MOST];
#pragma unroll
        for (int i = 0; i < MOST; ++i) {
            Complex value = {0.0, 0.0};
            if (i < count) {
                const float* at = spectra + 2 * (((long long)i * height + row) * columns + x);
                const double* place = places + i * OF_IMAGE;
                const Complex stored = {at[0], at[1]};
                value = turned(stored, place[DOWN] * fy + place[ACROSS] * fx);
            }
            values[i] = value;
        }
        int k = 0;
#pragma unroll
        for (int i = 0; i < MOST; ++i)
#pragma unroll
            for (int j = i; j < MOST; ++j) products[k++] += values[i].re * values[j].re + values[i].im * values[j].im;
    }
    sum_over_block(products, reinterpret_cast<double*>(shared), sums + row * PAIRS);
}
