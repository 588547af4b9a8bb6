// How a matrix is converted to fp16: value -> (value - centre) * factor.
//
// The centre is the mean, a whole number for integers, and the factor is the power of two that brings the standard
// deviation into [1/2, 1): whole numbers of up to 11 bits around the centre stay exact, and no value can overflow, as
// none of n values is further than sqrt(n) standard deviations from the mean (n < 2^31: 46341 < 65504). Needs
// `zncc.cuh`.
#pragma once

struct Scaling {
    float centre, factor;
};
template <bool INTEGER>
__device__ __forceinline__ Scaling scaling_of(const Moments& whole, double elements) {
    const double mean = whole.sum / elements, variance = whole.squares / elements - mean * mean;
    // Below the rounding of single precision the variance is a difference of two large sums, if it is not below zero.
    const float deviation = (float)sqrt(fmax(variance, mean * mean * 0x1p-50));
    // 2^-(e + 1) for a deviation of 1.f * 2^e, as far as that is a normal number; zeros stay what they are.
    const int exponent = (int)(__float_as_uint(deviation) >> 23) - 127, field = exponent < 125 ? 126 - exponent : 1;
    Scaling scaling = {(float)(INTEGER ? rint(mean) : mean), exponent > -127 ? __uint_as_float((unsigned)field << 23) : 1.0f};
    return scaling;
}

// A sum of products of scaled values scaled back, exactly where it is in range. Of units on both sides of one, as for values
// around 1e30 against 1e-30, either alone might leave the range; of two on the same side, their product might.
__device__ __forceinline__ float unscaled(float sum, const Scaling& a, const Scaling& b) {
    const float first = 1.0f / a.factor, second = 1.0f / b.factor;
    return (first < 1.0f) == (second < 1.0f) ? sum * first * second : sum * (first * second);
}
