// Before an axis is transformed: its samples brought together, in the order of the transform (fourier.cuh).
//
// A block transposes a tile of 64 x 32 samples through shared memory, so that reads and writes are contiguous in runs of 32
// samples, and 64-byte runs at least. MOVED 0: rows of the frames' pixels become lines down the columns. MOVED 1: what the
// complex FFT of those lines left becomes moved samples, and these become lines along the rows; samples whose position
// lies outside take the frame's edge.
//
// Floor: one read and one write at the copy rate: 512 x 512 of uint16 on an H200 0.38 us, and 0.77 us for MOVED.
// Document: none; Makhoul 1980, doi:10.1109/TASSP.1980.1163351.
#include "fourier.cuh"

#ifndef MOVED
#define MOVED 0
#endif

#define TILE 64  // samples of a line
#define THREADS 256
#define PITCH (WARP + 1)

extern "C" __global__ void __launch_bounds__(THREADS)
    fourier_lines(const Pixel* frames, const Complex* moved, Sum* lines, const double* shifts,
                  const __grid_constant__ FourierFrames p) {
    SHARED_FLOATS(shared);
    Sum* tile = reinterpret_cast<Sum*>(shared);
    // Samples of a line, which are read as rows, and lines.
    const int samples = MOVED ? p.width : p.height, count = MOVED ? p.height : p.width;
    const int number = (int)blockIdx.x / p.blocks, block = (int)blockIdx.x - number * p.blocks;
    const int tiles = (count + WARP - 1) / WARP;
    const int first_sample = block / tiles * TILE, first_line = block % tiles * WARP;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const long long pixels = (long long)p.height * p.width;
    const Pixel* frame = frames + number * pixels;

    const int line = first_line + lane;
    Extent rows = {0, count, 0, 0};
    if (MOVED && !p.fills_outside) rows.set(count, shifts[2 * (long long)number]);
    if (line < count) {
#pragma unroll
        for (int r = warp; r < TILE; r += THREADS / WARP) {
            const int sample = first_sample + r;
            if (sample >= samples) break;
            Sum value;
            if (MOVED && rows.holds(line)) {
                value = sample_of(moved[number * pixels + (long long)sample * count + place_of(line, count)], line);
            } else {
                const int row = MOVED ? (line < rows.first ? 0 : count - 1) : sample, column = MOVED ? sample : line;
                value = value_of(bits_of(frame[(long long)row * p.width + column]), 0);
            }
            tile[r * PITCH + lane] = value;
        }
    }
    __syncthreads();
    for (int c = warp; c < WARP && first_line + c < count; c += THREADS / WARP) {
        Sum* to = lines + number * pixels + (long long)(first_line + c) * samples;
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
            const int r = 2 * lane + odd, sample = first_sample + r;
            if (sample < samples) to[place_of(sample, samples)] = tile[r * PITCH + c];
        }
    }
}
