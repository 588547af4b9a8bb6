// Fourier interpolation along an axis of n samples by transforms of length n: what its kernels share.
//
// The cosine series of the mirrored samples (see xcorr_app/registration/moving/translation.py) moved by s has the coefficients of the
// DCT-II times cos(pi k s / n), as a series of cosines, and times sin(pi k s / n), as one of sines. Makhoul's reordering
// makes each of these transforms a real FFT of n samples: even samples first, then the odd ones backwards. The two series
// that move the frame are the real and the imaginary part of one complex FFT; with (-1)^i before it, that of sines is one
// of cosines with its coefficients backwards. So an axis takes: reordering, a real FFT, one step from each coefficient and
// its counterpart at n - k to two of the moved series', and a complex FFT, whose two parts are added or subtracted.
//
// Document: Makhoul, IEEE Trans. ASSP 1980, doi:10.1109/TASSP.1980.1163351.
#pragma once

#include "pixel.cuh"

struct alignas(2 * sizeof(Sum)) Complex {
    Sum real, imaginary;
};

struct FourierFrames {
    unsigned long long outside;  // bits of what lies outside, where it is filled
    int height, width;           // of a frame
    int blocks;                  // of a frame
    int fills_outside;           // 0: what lies outside takes the sample at the edge next to it
};

// Where sample i lies in the order of the transforms.
__device__ __forceinline__ int place_of(int i, int n) { return i % 2 == 0 ? i / 2 : n - 1 - i / 2; }

// Sample i of the moved series, from what the complex FFT leaves at its place.
__device__ __forceinline__ Sum sample_of(Complex value, int i) {
    return i % 2 == 0 ? value.real + value.imaginary : value.real - value.imaginary;
}

__device__ __forceinline__ Word bits_of(Pixel pixel) {
    Word bits = 0;
    memcpy(&bits, &pixel, sizeof pixel);
    return bits;
}

// A shift of an axis: which output indices come from inside the frame, and where a shift by whole pixels reads.
struct Extent {
    int first, stop, start, is_whole;

    __device__ __forceinline__ void set(int length, double shift) {
        const double reach = (double)length + 8, whole = rint(shift);
        shift = fabs(shift - whole) <= 1e-9 ? whole : shift;  // as axis_move.cuh
        is_whole = shift == whole;
        shift = shift < -reach ? -reach : shift > reach ? reach : shift;
        const double from = ceil(shift - 1e-3), to = floor((double)(length - 1) + shift + 1e-3) + 1.0;
        first = from > 0 ? (int)from : 0;
        stop = to < length ? (int)to : length;
        start = -(int)rint(shift);
    }
    __device__ __forceinline__ bool holds(int index) const { return index >= first && index < stop; }
};
