// A float as split fp16: two numbers, the second being the rounding error of the first: 22 bits, as long as the second
// is a normal number. Exact factors, powers of two, scale values into that range and back.
#pragma once
#include "mma_fp16.cuh"

// Of two neighbours each.
struct HalfParts {
    unsigned upper, lower;
};

__device__ __forceinline__ HalfParts half_parts(float first, float second) {
    HalfParts parts = {half_pair(first, second), 0};
#if !defined(__CUDA_ARCH__)
    const float rounded[2] = {host_half_of(parts.upper, 0), host_half_of(parts.upper, 1)};
#else
    float rounded[2];
    asm("{.reg .b16 first, second; mov.b32 {first, second}, %2; cvt.f32.f16 %0, first; cvt.f32.f16 %1, second;}"
        : "=f"(rounded[0]), "=f"(rounded[1])
        : "r"(parts.upper));
#endif
    parts.lower = half_pair(first - rounded[0], second - rounded[1]);
    return parts;
}

// 2^exponent, of a normal number: -126 to 127.
__device__ __forceinline__ float power_of_two(int exponent) { return __uint_as_float((unsigned)(exponent + 127) << 23); }
// The same, of exponents below that the least: what it is multiplied with is then as good as zero.
__device__ __forceinline__ float min_power_of_two(int exponent) { return power_of_two(exponent > -126 ? exponent : -126); }

// The largest of the warp's numbers.
__device__ __forceinline__ int largest_of_warp(int number) {
#if !defined(__CUDA_ARCH__)
    return host_largest_of_warp(number);
#elif __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, number);
#else
    return 0;
#endif
}
// Exponent e of the largest of the warp's values, which are given by their bits and are not negative: 2^e <= value < 2^(e + 1);
// 128 for infinity and NaN, -127 for zero.
__device__ __forceinline__ int largest_exponent(unsigned bits) { return (largest_of_warp((int)bits) >> 23) - 127; }
