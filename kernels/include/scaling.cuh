// How a matrix is brought into half precision: value -> (value - centre) * factor.
//
// The centre is the mean, a whole number for integers, and the factor is the power of two that brings the standard
// deviation into [1/2, 1): whole numbers of up to 11 bits around the centre stay exact, and no value can overflow, as none
// of n lies further than sqrt(n) standard deviations from the mean (n < 2^31: 46341 < 65504). Needs `zncc.cuh`.
#pragma once

struct Scaling {
    float centre, factor;
};
template <bool INTEGER>
__device__ __forceinline__ Scaling scaling_of(const Moments& whole, double elements) {
    const double mean = whole.sum / elements, variance = whole.squares / elements - mean * mean;
    const float deviation = (float)sqrt(variance > 0.0 ? variance : 0.0);
    // 2^-(e + 1) for a deviation of 1.f * 2^e; a constant matrix has only rounding to scale.
    const int exponent = (int)(__float_as_uint(deviation) >> 23) - 127;
    const bool usable = exponent > -126 && exponent < 126;
    Scaling scaling = {(float)(INTEGER ? rint(mean) : mean), usable ? __uint_as_float((unsigned)(126 - exponent) << 23) : 1.0f};
    return scaling;
}
