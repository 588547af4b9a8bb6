// What channel mixing reads and writes: types, optical density on load, rounding on store.
#pragma once
#include "lanes.cuh"

#ifndef IMAGE_TYPE
#define IMAGE_TYPE float
#endif
#ifndef RESULT_TYPE
#define RESULT_TYPE float
#endif
#ifndef SUM_TYPE
#define SUM_TYPE float
#endif
#ifndef DENSITY  // 1: log2(max(value * scale, 1e-6)) is mixed in place of the value; the matrix holds the factor -log10(2)
#define DENSITY 0
#endif
#ifndef CLIP  // 1: negative results become zero
#define CLIP 0
#endif
#ifndef COUNT_CLIPPED  // 1: values beyond the range of an integer result are counted
#define COUNT_CLIPPED 0
#endif

#define DARKEST 1e-6f
#define COUNTERS 256  // to which the warps add: one would be a queue

typedef IMAGE_TYPE Image;    // unsigned char, unsigned short, short or float
typedef RESULT_TYPE Result;  // one of the same; integers are rounded half to even and clipped to their range
typedef SUM_TYPE Sum;        // float, or double

__device__ __forceinline__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return fma(a, b, c); }

__device__ __forceinline__ float log2_of(float value) {
#if defined(__CUDA_ARCH__)
    return __log2f(value);  // off by 2^-22 near 1, by 2 units in the last place elsewhere
#else
    return log2f(value);
#endif
}

// Conversions. To double by the bits, for a unit that converts is four times slower than one that adds: an integer in the low
// word of 2^52 is 2^52 and the integer.
template <typename To, typename From>
__device__ __forceinline__ To converted(From value) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(To) == 8 && sizeof(From) <= 2)
        return __hiloint2double(0x43300000, (int)value + 32768) - (4503599627370496.0 + 32768.0);
#endif
    return (To)value;
}

// A value as it is mixed. What is darker than the darkest counts as that; NaN stays.
__device__ __forceinline__ Sum mixed_value(Image image, float scale) {
    if (!DENSITY) return converted<Sum>(image);
    const float fraction = (float)image * scale;
    return (Sum)log2_of(fraction < DARKEST ? DARKEST : fraction);
}

// Sums become results; `beyond` counts those that no integer of the type holds.
template <typename T>
struct Limits {
    enum { LOWEST = 0, HIGHEST = 0 };
};
template <>
struct Limits<unsigned char> {
    enum { LOWEST = 0, HIGHEST = 255 };
};
template <>
struct Limits<unsigned short> {
    enum { LOWEST = 0, HIGHEST = 65535 };
};
template <>
struct Limits<short> {
    enum { LOWEST = -32768, HIGHEST = 32767 };
};
__device__ __forceinline__ int nearest_int(float value) { return __float2int_rn(value); }
__device__ __forceinline__ int nearest_int(double value) { return __double2int_rn(value); }

template <typename T>
struct Stored {
    static __device__ __forceinline__ T from(Sum value, int& beyond) {
        int nearest = nearest_int(value);
        if (CLIP && nearest < 0) nearest = 0;
        int held = nearest < Limits<T>::HIGHEST ? nearest : (int)Limits<T>::HIGHEST;
        held = held > Limits<T>::LOWEST ? held : (int)Limits<T>::LOWEST;
        if (COUNT_CLIPPED) beyond += held != nearest;
        return (T)held;
    }
};
template <>
struct Stored<float> {
    static __device__ __forceinline__ float from(Sum value, int&) { return (float)(CLIP && value < (Sum)0 ? (Sum)0 : value); }
};

// Adds a warp's count to the counters; all lanes take part.
__device__ __forceinline__ void add_count(unsigned long long* clipped, int beyond) {
#if COUNT_CLIPPED
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) beyond += __shfl_xor_sync(0xffffffffu, beyond, distance);
    if (threadIdx.x % WARP == 0 && beyond) atomicAdd(clipped + blockIdx.x % COUNTERS, (unsigned long long)beyond);
#endif
}

// SIZE neighbouring elements, moved at once.
template <typename T, int SIZE>
struct alignas(sizeof(T) * SIZE) Pack {
    T at[SIZE];
};

// Four bytes of a pack as one number.
__device__ __forceinline__ unsigned bits_of(float value) { return __float_as_uint(value); }
__device__ __forceinline__ unsigned bits_of(unsigned value) { return value; }
__device__ __forceinline__ unsigned bits_of(unsigned char value) { return value; }
__device__ __forceinline__ unsigned bits_of(unsigned short value) { return value; }
__device__ __forceinline__ unsigned bits_of(short value) { return (unsigned short)value; }
template <typename T, int SIZE>
__device__ __forceinline__ unsigned word_of(const Pack<T, SIZE>& pack, int word) {
    constexpr int EACH = 4 / sizeof(T);
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < EACH; ++i) bits |= bits_of(pack.at[word * EACH + i]) << (i * 32 / EACH);
    return bits;
}

// Stores by the words that a pack is made of, in so many words: below a condition the compiler would store each element.
template <typename T, int SIZE>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, SIZE>& pack) {
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(pack) == 16)
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(word_of(pack, 0)), "r"(word_of(pack, 1)),
                     "r"(word_of(pack, 2)), "r"(word_of(pack, 3))
                     : "memory");
    else if constexpr (sizeof(pack) == 8)
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(word_of(pack, 0)), "r"(word_of(pack, 1)) : "memory");
    else if constexpr (sizeof(pack) == 4)
        asm volatile("st.global.u32 [%0], %1;" ::"l"(to), "r"(word_of(pack, 0)) : "memory");
    else
        *reinterpret_cast<Pack<T, SIZE>*>(to) = pack;
#else
    *reinterpret_cast<Pack<T, SIZE>*>(to) = pack;
#endif
}
