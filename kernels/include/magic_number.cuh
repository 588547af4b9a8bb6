// Packed integers to floats by magic-number conversion: the bits of an integer become the mantissa of a float, which
// adds `magic` to it. Conversion instructions have a quarter of the throughput of others.
#pragma once

template <typename T>
__device__ __forceinline__ float magic() {
    return 8388608.0f;  // 2^23
}
template <>
__device__ __forceinline__ float magic<short>() {
    return 8388608.0f + 32768.0f;
}
template <>
__device__ __forceinline__ float magic<float>() {
    return 0.0f;
}

// Element e of four that lie packed in words.
template <typename T>
__device__ __forceinline__ float magic_float(const unsigned* word, int e) {
    const unsigned exponent = 0x4b000000u;
    if constexpr (sizeof(T) == 4) return __uint_as_float(word[e]);
    if constexpr (sizeof(T) == 1) return __uint_as_float(__byte_perm(word[0], exponent, 0x7440u | (unsigned)e));
    const unsigned two = T(-1) < T(0) ? word[e / 2] ^ 0x80008000u : word[e / 2];
    return __uint_as_float(__byte_perm(two, exponent, e % 2 ? 0x7432u : 0x7410u));
}
