// Between the transforms of an axis: coefficients of the samples become those of the moved samples (fourier.cuh).
//
// A thread takes coefficients k and n - k of a line, which one number of the real FFT holds, and writes those of the complex
// FFT. The phases pi k s / n of each frame are a table: cosine and sine in `phases`, exp(i pi k / 2n) in `turns`.
//
// Floor: one read of n / 2 complex numbers a line and one write of n at the copy rate: 512 x 512, 0.77 us on an H200.
// Document: none; Makhoul 1980, doi:10.1109/TASSP.1980.1163351.
#include "fourier.cuh"

#define THREADS 256

struct Lines {
    int samples, count;  // of a line, and lines of a frame
    int blocks;          // of a frame
};

__device__ __forceinline__ Complex product(Complex a, Complex b) {
    return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fourier_shift(const Complex* spectra, Complex* moved, const Complex* phases, const Complex* turns,
                  const __grid_constant__ Lines p) {
    const int n = p.samples, half = n / 2 + 1;
    const int number = (int)blockIdx.x / p.blocks;
    const int thread = ((int)blockIdx.x - number * p.blocks) * THREADS + (int)threadIdx.x;
    const int line = thread / half, k = thread - line * half;
    if (line >= p.count) return;
    const long long lines = (long long)number * p.count + line;
    const Complex turn = turns[k], found = spectra[lines * half + k];
    Complex* to = moved + lines * n;
    const Sum factor = (Sum)1 / (Sum)n;
    const Complex both = product(found, {turn.real, -turn.imaginary});  // the coefficient at k, less i times that at n - k
    if (k == 0) {
        to[0] = {both.real * factor, 0};
        return;
    }
    const Complex here = phases[(long long)number * n + k], there = phases[(long long)number * n + n - k];
    const Sum low = both.real * factor, high = -both.imaginary * factor;
    const Complex cosines = product(turn, {low * here.real, -high * there.real});
    const Complex sines = product(turn, {high * there.imaginary, -low * here.imaginary});
    to[k] = {cosines.real - sines.imaginary, cosines.imaginary + sines.real};
    to[n - k] = {cosines.real + sines.imaginary, sines.real - cosines.imaginary};
}
