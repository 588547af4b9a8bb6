// After both axes: the moved samples rounded, clipped, counted and written as pixels (fourier.cuh).
//
// A thread takes two neighbouring pixels of a row, which lie at either end of what the complex FFT left. A pixel whose
// column lies outside takes the sample at the edge next to it, as it was before the second axis moved (`lines`), or is
// filled. A frame that moves by whole pixels is copied, bit by bit.
//
// Floor: one read of two complex numbers and one write of two pixels at the copy rate: 512 x 512 of uint16 on an H200 0.64 us.
// Document: none; Makhoul 1980, doi:10.1109/TASSP.1980.1163351.
#include "fourier.cuh"

#ifndef COUNTS
#define COUNTS 0
#endif

#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
    fourier_store(const Complex* moved, const Sum* lines, const Pixel* frames, Pixel* results, unsigned long long* clipped,
                  const double* shifts, const __grid_constant__ FourierFrames p) {
    SHARED_FLOATS(shared);
    Extent* extent = reinterpret_cast<Extent*>(shared);
    const int number = (int)blockIdx.x / p.blocks;
    if (threadIdx.x < 2)
        extent[threadIdx.x].set(threadIdx.x == 0 ? p.height : p.width, shifts[2 * (long long)number + threadIdx.x]);
    __syncthreads();

    const Extent rows = extent[0], columns = extent[1];
    const int pairs = (p.width + 1) / 2;
    const int thread = ((int)blockIdx.x - number * p.blocks) * THREADS + (int)threadIdx.x;
    const int y = thread / pairs, m = thread - y * pairs;
    int mine = 0;
    if (y < p.height) {
        const long long first = (long long)number * p.height * p.width;
        const Sum* line = lines + first + (long long)y * p.width;
        const Complex* series = moved + first + (long long)y * p.width;
        const bool copies = rows.is_whole && columns.is_whole;
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const int x = 2 * m + odd;
            if (x >= p.width) continue;
            Pixel* to = results + first + (long long)y * p.width + x;
            const bool inside = rows.holds(y) && columns.holds(x);
            if (p.fills_outside && !inside) {
                *to = same_bits<Pixel>(p.outside);
            } else if (copies) {
                const int row = y + rows.start, column = x + columns.start;
                const int from_y = row < 0 ? 0 : row < p.height ? row : p.height - 1;
                const int from_x = column < 0 ? 0 : column < p.width ? column : p.width - 1;
                *to = frames[first + (long long)from_y * p.width + from_x];
            } else {
                const int edge = x < columns.first ? 0 : p.width - 1;
                const Sum value =
                    columns.holds(x) ? sample_of(series[place_of(x, p.width)], x) : line[place_of(edge, p.width)];
                *to = stored(value);
                mine += is_clipped(value);
            }
        }
    }
    if constexpr (COUNTS) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, distance);
        if (threadIdx.x % 32 == 0 && mine) atomicAdd(clipped + number, (unsigned long long)mine);
    }
}
