// A pointwise convolution over any number of channels: sizes, and the address of a pixel.
//
// result[image][f][pixel] = sum over c of matrix[f][c] * image[image][c][pixel], dense stacks [outer][channels][inner];
// an inner of 1 is the interleaved case. Pixels are numbered through all images. Offsets are 32 bits wide: a launcher
// divides larger stacks into parts. The matrix is stored as [channels][pitch], float, zero where there is no filter or
// channel.
#pragma once
#include "mix.cuh"
#include "shared_tile.cuh"

struct Pointwise {
    int filters, channels, pitch, inner, pixels;
    float scale;  // 1 / white, for DENSITY
};

// Where the values of a pixel begin, whose channels lie `inner` elements apart; -1 for a pixel that does not exist.
__device__ __forceinline__ int pixel_start(const Pointwise& p, int pixel, int channels) {
    if ((unsigned)pixel >= (unsigned)p.pixels) return -1;
    if (p.inner == 1) return pixel * channels;
    const int image = pixel / p.inner;
    return image * (channels - 1) * p.inner + pixel;
}

// One value into shared memory as it is mixed, zero where `inside` is false; without passing through registers where it can.
__device__ __forceinline__ void copy_value(float* to, const Image* from, bool inside, float scale) {
    if constexpr (IsFloat<Image>::VALUE && !DENSITY)
        copy_float(to, (const float*)from, inside);
    else
        *to = inside ? mixed_value(*from, scale) : 0.0f;
}
