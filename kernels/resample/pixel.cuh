// Pixels as they lie in memory, as they are summed, and back: every type that a stack can have.
//
// Integers become floats by their bits (see magic_number.cuh, which knows fewer types), since conversion instructions have
// a quarter of the throughput of others; results are rounded half to even and clipped to their type by one instruction.
#pragma once
#include "lanes.cuh"

struct Half {  // float16
    unsigned short bits;
};

#ifndef PIXEL_TYPE  // (un)signed char, (unsigned) short, (unsigned) int, Half, float or double
#define PIXEL_TYPE float
#endif
#ifndef SUM_TYPE  // float, or double for int, unsigned int and double
#define SUM_TYPE float
#endif

typedef PIXEL_TYPE Pixel;
typedef SUM_TYPE Sum;

// The bits of a pixel, or of four bytes of neighbouring ones.
template <int BYTES>
struct WordOf {
    typedef unsigned Type;
};
template <>
struct WordOf<8> {
    typedef unsigned long long Type;
};
typedef WordOf<sizeof(Pixel)>::Type Word;

#define PIXELS_A_WORD (sizeof(Pixel) < 4 ? 4 / (int)sizeof(Pixel) : 1)

template <typename T>
struct Is {
    enum { INTEGER = 1, HALF = 0 };
};
template <>
struct Is<float> {
    enum { INTEGER = 0, HALF = 0 };
};
template <>
struct Is<double> {
    enum { INTEGER = 0, HALF = 0 };
};
template <>
struct Is<Half> {
    enum { INTEGER = 0, HALF = 1 };
};

__device__ __forceinline__ float fused(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double fused(double a, double b, double c) { return fma(a, b, c); }

template <typename To, typename From>
__device__ __forceinline__ To same_bits(From from) {
    static_assert(sizeof(To) <= sizeof(From), "bits are dropped from the top, never made");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

__device__ __forceinline__ float float_of_half(unsigned bits) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((unsigned short)bits));
    return value;
#else
    return host_half_of(bits, 0);
#endif
}
__device__ __forceinline__ unsigned short half_of_float(float value) {
#if defined(__CUDA_ARCH__)
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
#else
    return (unsigned short)host_half_pair(value, 0.0f);
#endif
}

// Pixel `place` of those that lie in a word, as it is summed.
template <typename P = Pixel>
__device__ __forceinline__ Sum value_of(Word word, int place) {
    if constexpr (Is<P>::HALF) {
        return float_of_half((unsigned)word >> 16 * place);
    } else if constexpr (Is<P>::INTEGER && sizeof(P) < 4) {
        const bool is_signed = (P)-1 < (P)0;
        const unsigned exponent = 0x4b000000u;  // of 2^23, in whose mantissa the integer is put
        const unsigned sign = sizeof(P) == 1 ? 0x80u << 8 * place : 0x8000u << 16 * place;
        const unsigned biased = is_signed ? (unsigned)word ^ sign : (unsigned)word;
        const unsigned selector = sizeof(P) == 1 ? 0x7440u | (unsigned)place : place ? 0x7432u : 0x7410u;
        const float magic = 8388608.0f + (is_signed ? (sizeof(P) == 1 ? 128.0f : 32768.0f) : 0.0f);
        return __uint_as_float(__byte_perm(biased, exponent, selector)) - magic;
    } else {
        return (Sum)same_bits<P>(word);
    }
}

// The same pixel, bit by bit.
__device__ __forceinline__ Pixel pixel_of(Word word, int place) {
    return same_bits<Pixel>((Word)(word >> (sizeof(Pixel) < 4 ? 8 * (int)sizeof(Pixel) * place : 0)));
}

template <typename T>
struct Range {};
template <>
struct Range<unsigned char> {
    static __device__ __forceinline__ constexpr Sum lowest() { return 0; }
    static __device__ __forceinline__ constexpr Sum highest() { return 255; }
};
template <>
struct Range<signed char> {
    static __device__ __forceinline__ constexpr Sum lowest() { return -128; }
    static __device__ __forceinline__ constexpr Sum highest() { return 127; }
};
template <>
struct Range<unsigned short> {
    static __device__ __forceinline__ constexpr Sum lowest() { return 0; }
    static __device__ __forceinline__ constexpr Sum highest() { return 65535; }
};
template <>
struct Range<short> {
    static __device__ __forceinline__ constexpr Sum lowest() { return -32768; }
    static __device__ __forceinline__ constexpr Sum highest() { return 32767; }
};
template <>
struct Range<unsigned int> {
    static __device__ __forceinline__ constexpr Sum lowest() { return 0; }
    static __device__ __forceinline__ constexpr Sum highest() { return (Sum)4294967295.0; }
};
template <>
struct Range<int> {
    static __device__ __forceinline__ constexpr Sum lowest() { return (Sum)-2147483648.0; }
    static __device__ __forceinline__ constexpr Sum highest() { return (Sum)2147483647.0; }
};

// Half to even, then clipped.
template <typename T>
__device__ __forceinline__ T rounded(Sum value) {
#if defined(__CUDA_ARCH__)
    // The instructions clip by themselves.
    if constexpr (sizeof(T) == 1 && (T)-1 < (T)0) {
        int result;
        asm("cvt.rni.s8.f32 %0, %1;" : "=r"(result) : "f"((float)value));
        return (T)result;
    } else if constexpr (sizeof(T) == 1) {
        unsigned result;
        asm("cvt.rni.u8.f32 %0, %1;" : "=r"(result) : "f"((float)value));
        return (T)result;
    } else if constexpr (sizeof(T) == 2 && (T)-1 < (T)0) {
        short result;
        asm("cvt.rni.s16.f32 %0, %1;" : "=h"(result) : "f"((float)value));
        return (T)result;
    } else if constexpr (sizeof(T) == 2) {
        unsigned short result;
        asm("cvt.rni.u16.f32 %0, %1;" : "=h"(result) : "f"((float)value));
        return (T)result;
    } else if constexpr ((T)-1 < (T)0) {
        return (T)__double2int_rn((double)value);
    } else {
        return (T)__double2uint_rn((double)value);
    }
#else
    const Sum whole = rint(value);
    return (T)(whole < Range<T>::lowest() ? Range<T>::lowest() : whole > Range<T>::highest() ? Range<T>::highest() : whole);
#endif
}

// What a sum leaves in a stack, and whether it had to be clipped for that. The largest integers are odd and the smallest
// even: a tie beyond the largest leaves the range, one below the smallest does not.
template <typename P = Pixel>
__device__ __forceinline__ P stored(Sum value) {
    if constexpr (Is<P>::HALF) {
        return {half_of_float((float)value)};
    } else if constexpr (Is<P>::INTEGER) {
        return rounded<P>(value);
    } else {
        return (P)value;
    }
}
template <typename P = Pixel>
__device__ __forceinline__ bool is_clipped(Sum value) {
    if constexpr (Is<P>::INTEGER) {
        return value < Range<P>::lowest() - (Sum)0.5 || value >= Range<P>::highest() + (Sum)0.5;
    } else {
        return false;
    }
}
