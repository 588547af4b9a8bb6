// A few images of one scene, brought onto each other: where each lies, and its spectrum moved by fractions of pixels.
#pragma once
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 128
#define MOST 8  // images that are looked at together

// What is said of an image: its number in the stack, the first row and column of its part, in bins; the shift that brings
// what is left of fractions onto the others, and the one that brings it back to where the image was.
enum { NUMBER, TOP, LEFT, DOWN, ACROSS, BACK_DOWN, BACK_ACROSS, OF_IMAGE };

struct Complex {
    double re, im;
};

// Cycles per pixel, rounded as numpy.fft.fftfreq and numpy.fft.rfftfreq do.
__device__ __forceinline__ double frequency(int k, int size) { return (2 * k < size ? k : k - size) * (1.0 / size); }

// Sine and cosine of pi x.
__device__ __forceinline__ void sine_and_cosine(double x, double* sine, double* cosine) {
#ifdef __CUDA_ARCH__
    sincospi(x, sine, cosine);
#else  // a host build
    *sine = sin(3.14159265358979323846 * x);
    *cosine = cos(3.14159265358979323846 * x);
#endif
}

__device__ __forceinline__ Complex turned(Complex value, double turns) {
    double across, up;
    sine_and_cosine(2.0 * (turns - rint(turns)), &up, &across);
    const Complex found = {value.re * across - value.im * up, value.re * up + value.im * across};
    return found;
}

// Sums over a block of COUNT values of each thread, to `out`.
template <int COUNT>
__device__ __forceinline__ void sum_over_block(double (&values)[COUNT], double* of_warps, double* out) {
    sums_of_warps(values, of_warps);
    for (int k = (int)threadIdx.x; k < COUNT; k += THREADS) {
        double total = 0.0;
        for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[w * COUNT + k];
        out[k] = total;
    }
}
