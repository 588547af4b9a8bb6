// Integers as floats and back by their bits, counted from a level near the mean of a warp's sub-block.
//
// The conversion instructions run at a quarter of the rate of byte permutations or less: so the bits of 2^23 + i are
// assembled, which are those of 2^23 | i, and one subtraction removes 2^23 and the level together. Adding 1.5 * 2^23
// rounds half to even and leaves the integer in the low bits.
// Sixteen bits take two thirds of the precision of float, and each rounding of a large sum is visible in the result.
// Differences from the level are exact, their sums are small, and the contribution of the level itself, level * (sum of
// all taps), is known exactly.
#pragma once

#include "filter.cuh"

#ifndef CENTRE  // 0: the level is zero
#define CENTRE 0
#endif

template <typename T>
struct IsInteger {
    enum { VALUE = 1 };
};
template <>
struct IsInteger<float> {
    enum { VALUE = 0 };
};
template <>
struct IsInteger<double> {
    enum { VALUE = 0 };
};
#define USES_MAGIC (IsInteger<Image>::VALUE && sizeof(Sum) == sizeof(float))

#define MAGIC 8388608.0f        // 2^23
#define ROUNDING 12582912.0f   // 1.5 * 2^23
#define LARGEST_WHOLE 4.0e6    // 2^22: up to there ROUNDING + whole is exact, and so is the rounding of a result in range

struct Level {
    float zero;    // bits of an integer with the exponent of MAGIC, less `zero`, are its difference from the level
    Sum base;      // the level, an integer
    Sum fraction;  // what the level adds to a result: a fraction, where every sum begins,
    float whole;   // and a whole number
};

// `weight`: sum of all taps. Taps that amplify too much leave the level at zero.
__device__ __forceinline__ Level level_of(int mean, double weight) {
    const double wanted = mean * weight;
    const bool fits = wanted <= LARGEST_WHOLE && wanted >= -LARGEST_WHOLE;
    const int base = fits ? mean : 0;
    const double added = fits ? wanted : 0;
    const int whole = __double2int_rn(added);
    const float lowest = (Image)-1 < (Image)0 ? 32768.0f : 0.0f;
    const Level level = {MAGIC + lowest + (float)base, (Sum)base, (Sum)(added - whole), (float)whole};
    return level;
}

// Mean of one element a lane.
__device__ __forceinline__ int mean_of(int element) {
    element = warp_sum(element);
    return element / WARP;
}

// The k-th of neighbouring elements that were read at once, counted from the level; a word holds two or four integers.
template <typename T>
__device__ __forceinline__ float magic_float(const T* elements, int k, float zero) {
    const unsigned word = reinterpret_cast<const unsigned*>(elements)[k * (int)sizeof(T) / 4], magic = 0x4b000000u;
    if (sizeof(T) == 1) return __uint_as_float(__byte_perm(word, magic, 0x7440 + k % 4)) - zero;
    const unsigned positive = (T)-1 < (T)0 ? word ^ 0x80008000u : word;
    return __uint_as_float(__byte_perm(positive, magic, k % 2 ? 0x7432 : 0x7410)) - zero;
}
__device__ __forceinline__ float magic_float(const float* elements, int k, float) { return elements[k]; }
__device__ __forceinline__ double magic_float(const double* elements, int k, float) { return elements[k]; }

__device__ __forceinline__ Sum counted(const Image* elements, int k, const Level& level) {
    return USES_MAGIC ? (Sum)magic_float(elements, k, level.zero) : (Sum)elements[k];
}
// A single one, wherever it lies.
__device__ __forceinline__ Sum counted(Image element, const Level& level) {
    const Image alone[4] = {element};
    return counted(alone, 0, level);
}

__device__ __forceinline__ float lowest_of(unsigned char*) { return 0.0f; }
__device__ __forceinline__ float lowest_of(unsigned short*) { return 0.0f; }
__device__ __forceinline__ float lowest_of(short*) { return -32768.0f; }
__device__ __forceinline__ float highest_of(unsigned char*) { return 255.0f; }
__device__ __forceinline__ float highest_of(unsigned short*) { return 65535.0f; }
__device__ __forceinline__ float highest_of(short*) { return 32767.0f; }

// A sum as a result; returns other than zero where it was clipped.
__device__ __forceinline__ unsigned finish(float* to, Sum sum, const Level& level) {
    *to = (float)(USES_MAGIC ? sum + level.whole : sum);
    return 0;
}
__device__ __forceinline__ unsigned finish(double* to, Sum sum, const Level& level) {
    *to = USES_MAGIC ? (double)sum + level.whole : (double)sum;
    return 0;
}
template <typename Integer>
__device__ __forceinline__ unsigned finish(Integer* to, Sum sum, const Level& level) {
    if (USES_MAGIC) {
        const float rounded = (float)sum + (ROUNDING + level.whole);
        float kept = rounded;
        if (CLIPS) kept = fminf(fmaxf(rounded, ROUNDING + lowest_of(to)), ROUNDING + highest_of(to));
        *to = (Integer)__float_as_uint(kept);
        return CLIPS ? __float_as_uint(kept) ^ __float_as_uint(rounded) : 0;
    }
    fit(to, sum);
    return CLIPS ? is_clipped(*to, sum) : 0;
}
