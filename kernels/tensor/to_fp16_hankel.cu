// Matrices in fp16, centred and scaled (scaling.cuh), as hankel_frames.cu reads them: for every position of a row its
// element and the next seven, 16 bytes. Rows begin 7 positions before their first element; elements outside a matrix
// are zero.
// A thread = one position. Tensor cores read operands in rows of 16 bytes that begin at multiples of 16 bytes; rows of
// a Hankel matrix begin one element apart, so each element is stored here eight times.
// Floor: one read of the matrices and a write of eight times half that size.
// Document: none.
#include "problem.cuh"
#include "zncc.cuh"
#include "scaling.cuh"
#include "shared_tile.cuh"
#include "mma_fp16.cuh"

#ifndef THREADS
#define THREADS 256
#endif

struct __align__(16) FourWords {
    unsigned word[4];
};

extern "C" __global__ void __launch_bounds__(THREADS)
    to_fp16_hankel(const Right* matrices, const Moments* tables, FourWords* places, int height, int width, int cells,
                 int blocks) {
    const int matrix = (int)blockIdx.x / blocks, pitch = width + 7;
    const long long at = (long long)((int)blockIdx.x - matrix * blocks) * THREADS + threadIdx.x;
    if (at >= (long long)height * pitch) return;
    const int y = (int)(at / pitch), x = (int)(at - (long long)y * pitch) - 7;
    const Scaling scaling =
        scaling_of<!IsFloat<Right>::VALUE>(tables[(long long)(matrix + 1) * cells - 1], (double)height * width);
    const Right* from = matrices + ((long long)matrix * height + y) * width + x;
    float value[8];
#pragma unroll
    for (int i = 0; i < 8; ++i)
        value[i] = (unsigned)(x + i) < (unsigned)width ? ((float)from[i] - scaling.centre) * scaling.factor : 0.0f;
    FourWords words;
#pragma unroll
    for (int i = 0; i < 4; ++i) words.word[i] = half_pair(value[2 * i], value[2 * i + 1]);
    places[(long long)matrix * height * pitch + at] = words;
}
