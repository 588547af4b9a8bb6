// Basic Im2win convolution: a thread sums one output element, reading directly from device memory.
//
// A block holds 32 columns (neighbouring elements of the output) x ROWS filters. The lanes of a warp take neighbouring
// columns, where the document gives them neighbouring filters, so that their stores are contiguous.
// IMPLICIT 0 reads the window tensor, 1 the images.
// Document: Im2win, Algorithm 2, and Algorithm 1 (IMPLICIT), with the indices in the filter's stored order.
// Floor: two loads per FMA, so the bandwidth of the cache is the limit. It is the first step of the ablation, and a
// check on the other kernels, which add the same products in the same order and so give the same bits.
#include "im2win.cuh"

#ifndef ROWS
#define ROWS 32  // filters a block
#endif

extern "C" __global__ void __launch_bounds__(32 * ROWS)
    im2win_basic(const float* source, const float* filter, float* output, IM2WIN_PARAMETERS) {
    const Im2win p = IM2WIN_ARGUMENTS;
    const int row_blocks = (p.filters + ROWS - 1) / ROWS;
    const int m = (int)blockIdx.x % row_blocks * ROWS + (int)threadIdx.x / 32;
    const int n = (int)blockIdx.x / row_blocks * 32 + (int)threadIdx.x % 32;
    if (m >= p.filters || n >= p.columns()) return;
    const float* value = source + column_start(p, n);
    const int of_channel = IMPLICIT ? p.height * p.width : p.window_channel();
    const float* own_filter = filter + m;
    float sum = 0.0f;
#pragma unroll 1
    for (int channel = 0; channel < p.channels; ++channel) {
#pragma unroll 4
        for (int tap = 0; tap < TAPS; ++tap) {
            const int at = IMPLICIT ? tap % FILTER_HEIGHT * p.width + tap / FILTER_HEIGHT : tap;
            sum = fmaf(own_filter[tap * p.filter_pitch()], value[at], sum);
        }
        own_filter += TAPS * p.filter_pitch();
        value += of_channel;
    }
    const int image = n / p.plane(), pixel = n - image * p.plane();
    output[((long long)image * p.filters + m) * p.plane_pitch + pixel] = sum;
}
