// Reorders filters as Im2win's kernels read them: [filters][channels][FILTER_HEIGHT][FILTER_WIDTH] to [K][pitch] of
// `im2win.cuh`, with zeros beyond the last filter and in TAIL rows beyond the last element.
//
// A block moves 32 filters x 32 elements through shared memory, so that neighbouring threads read neighbouring elements of a
// filter and write neighbouring filters of an element.
// Document: Im2win stores filters as [filters][channels][FILTER_WIDTH][FILTER_HEIGHT]; here they are also transposed.
// Floor: the copy rate.
#include "im2win.cuh"
#include "shared_tile.cuh"

#ifndef TAIL
#define TAIL 32  // rows of zeros
#endif
#define SIDE 32
#define ROWS 8  // of a block's threads

extern "C" __global__ void __launch_bounds__(SIDE * ROWS)
    im2win_filters(const float* filter, float* stored, int filters, int depth) {
    SHARED_FLOATS(tile);  // [SIDE][SIDE + 1]
    const int pitch = (filters + 3) / 4 * 4, m_blocks = (pitch + SIDE - 1) / SIDE;
    const int m_first = (int)blockIdx.x % m_blocks * SIDE, k_first = (int)blockIdx.x / m_blocks * SIDE;
    const int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
#pragma unroll
    for (int row = y; row < SIDE; row += ROWS) {
        const int m = m_first + row, k = k_first + x;
        tile[row * (SIDE + 1) + x] = m < filters && k < depth ? filter[(long long)m * depth + k] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int row = y; row < SIDE; row += ROWS) {
        const int m = m_first + x, k = k_first + row;
        const int channel = k / TAPS, tap = k - channel * TAPS, u = tap / FILTER_WIDTH, v = tap - u * FILTER_WIDTH;
        const int to = k < depth ? channel * TAPS + v * FILTER_HEIGHT + u : k;
        if (m < pitch && k < depth + TAIL) stored[(long long)to * pitch + m] = tile[x * (SIDE + 1) + row];
    }
}
