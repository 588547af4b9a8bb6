// Matrices in fp16, centred and scaled (scaling.cuh): rows of `pitch` words of two elements, zero after the last. A
// thread = four neighbouring elements. For hankel_warpgroup.cu, whose fixed matrices are read many times.
// Floor: one read of the matrices and a write of half that size.
// Document: none.
#include "problem.cuh"
#include "zncc.cuh"
#include "scaling.cuh"
#include "shared_tile.cuh"
#include "mma_fp16.cuh"

#ifndef THREADS
#define THREADS 256
#endif

struct __align__(8) TwoWords {
    unsigned first, second;
};

extern "C" __global__ void __launch_bounds__(THREADS)
    to_fp16(const Right* matrices, const Moments* tables, unsigned* words, int height, int width, int cells, int pitch,
           int blocks) {
    const int matrix = (int)blockIdx.x / blocks, vectors = pitch / 2;
    const long long at = (long long)((int)blockIdx.x - matrix * blocks) * THREADS + threadIdx.x;
    if (at >= (long long)height * vectors) return;
    const int y = (int)(at / vectors), x = (int)(at - (long long)y * vectors) * 4;
    const Scaling scaling =
        scaling_of<!IsFloat<Right>::VALUE>(tables[(long long)(matrix + 1) * cells - 1], (double)height * width);
    const Right* from = matrices + ((long long)matrix * height + y) * width + x;
    float value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) value[i] = x + i < width ? ((float)from[i] - scaling.centre) * scaling.factor : 0.0f;
    const TwoWords two = {half_pair(value[0], value[1]), half_pair(value[2], value[3])};
    *reinterpret_cast<TwoWords*>(words + ((long long)matrix * height + y) * pitch + x / 2) = two;
}
