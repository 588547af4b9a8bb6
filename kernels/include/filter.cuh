// The parameters of a filter kernel: types, taps, sizes, boundary, rounding.
//
// result[y][x] = sum over f, e of taps[f][e] * image[y + f - TOP][x + e - LEFT]   (correlation, no flip) Images are
// dense (row after row), and so are stacks. BOUNDARY defines what lies outside an image, with the names of
// scipy.ndimage; no padded copy is stored. A result may be smaller than its image ("valid": LEFT = TOP = 0). The taps
// are an argument of the kernel: constant memory of that launch, so other taps need no recompilation. Integer results
// that did not fit their type are counted: a thread adds its count to `*clipped` once (null: nowhere).
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
#ifndef FILTER_HEIGHT
#define FILTER_HEIGHT 3
#endif
#ifndef FILTER_WIDTH
#define FILTER_WIDTH 3
#endif
#ifndef TOP
#define TOP (FILTER_HEIGHT / 2)
#endif
#ifndef LEFT
#define LEFT (FILTER_WIDTH / 2)
#endif
#ifndef BOUNDARY
#define BOUNDARY BOUNDARY_REFLECT
#endif
#ifndef CLIPS  // 0: no result can leave the range of its type (taps of one sign, with a sum of at most one)
#define CLIPS 1
#endif
#define BOUNDARY_REFLECT 0   // d c b a | a b c d | d c b a
#define BOUNDARY_MIRROR 1    // d c b | a b c d | c b a
#define BOUNDARY_NEAREST 2   // a a a a | a b c d | d d d d
#define BOUNDARY_WRAP 3      // a b c d | a b c d | a b c d
#define BOUNDARY_CONSTANT 4  // k k k k | a b c d | k k k k

// Architectures whose compiler takes some registers more for the same sums: fewer blocks are asked for there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define TAKES_MORE 1
#else
#define TAKES_MORE 0
#endif

typedef IMAGE_TYPE Image;    // unsigned char, unsigned short, short, float or double
typedef RESULT_TYPE Result;  // one of the same; integers are rounded half to even and clipped
typedef SUM_TYPE Sum;        // accumulator: float, or double for images of double and where float is not exact enough

struct Taps {
    Sum at[FILTER_HEIGHT * FILTER_WIDTH];
    Sum outside;   // value outside the image, for BOUNDARY_CONSTANT
    Sum total[2];  // sum of all taps: rounded, and what that leaves
};

struct FilterProblem {
    int height, width;                // of an image
    int result_height, result_width;  // of a result
    int count;                        // of images
    int block_rows;  // rows of a sub-block, the share of one warp
};
#define FILTER_PARAMETERS int height, int width, int result_height, int result_width, int count, int block_rows
#define FILTER_ARGUMENTS {height, width, result_height, result_width, count, block_rows}

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }
__device__ __forceinline__ bool is_inside(int index, int size) { return (unsigned)index < (unsigned)size; }

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// What the compiler shall keep in registers, not recompute in every step.
__device__ __forceinline__ int in_register(int value) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(value));
#endif
    return value;
}
template <typename T>
__device__ __forceinline__ T* in_register(T* address) {  // of device memory, which the compiler forgets and is told again
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(address));
    __builtin_assume(__isGlobal(address));
#endif
    return address;
}

// Index of the image element that stands for one outside. BOUNDARY_CONSTANT: any that can be read.
__device__ __forceinline__ int source_index(int index, int size) {
    if (is_inside(index, size)) return index;
#if BOUNDARY == BOUNDARY_REFLECT || BOUNDARY == BOUNDARY_MIRROR
    const int twice = BOUNDARY == BOUNDARY_MIRROR;  // 1: the elements at the edge do not occur twice
    if (twice && size == 1) return 0;
    // Once, but for filters larger than the image: no division.
    do index = index < 0 ? twice - 1 - index : 2 * size - 1 - twice - index;
    while (!is_inside(index, size));
    return index;
#elif BOUNDARY == BOUNDARY_WRAP
    do index += index < 0 ? size : -size;
    while (!is_inside(index, size));
    return index;
#else
    return index < 0 ? 0 : size - 1;
#endif
}

// What is the same in all lanes of a warp. From a shuffle the compiler knows it too: branches on it, and on what follows from
// it, then need no code for lanes that diverge and reconverge, and it is computed once.
__device__ __forceinline__ int same_in_warp(int value) { return __shfl_sync(ALL_LANES, value, 0); }

// The sub-block of a warp: the same rows of COLUMNS * WARP neighbouring columns.
struct SubBlock {
    const Image* image;
    Result* result;
    int x, y, rows;  // first column, first row and number of rows of the result; no rows: nothing to do
    int number;      // the image's
};
template <int COLUMNS_A_LANE>
__device__ __forceinline__ SubBlock sub_block_of(const FilterProblem& p, const Image* images, Result* results, int warp) {
    const int across = ceil_div(p.result_width, COLUMNS_A_LANE * WARP);
    const int blocks = across * ceil_div(p.result_height, p.block_rows);
    const int number = warp / blocks, block = warp % blocks;
    const int y = block / across * p.block_rows;
    SubBlock found = {images + (long long)number * p.height * p.width,
                      results + (long long)number * p.result_height * p.result_width,
                      block % across * (COLUMNS_A_LANE * WARP), y,
                      number < p.count ? min(p.block_rows, p.result_height - y) : 0, number};
    return found;
}

// Sums become results: integers are rounded half to even, and a value out of range becomes the nearest that is in range.
__device__ __forceinline__ int nearest_int(float value) { return __float2int_rn(value); }
__device__ __forceinline__ int nearest_int(double value) { return __double2int_rn(value); }
template <typename T>
__device__ __forceinline__ void fit_between(T* to, int lowest, int highest, Sum value) {
    *to = (T)max(lowest, min(highest, nearest_int(value)));
}
#if defined(__CUDA_ARCH__)  // one instruction for a float
__device__ __forceinline__ void fit(unsigned char* to, float value) {
    unsigned fitting;
    asm("cvt.rni.u8.f32 %0, %1;" : "=r"(fitting) : "f"(value));
    *to = (unsigned char)fitting;
}
__device__ __forceinline__ void fit(unsigned short* to, float value) {
    asm("cvt.rni.u16.f32 %0, %1;" : "=h"(*to) : "f"(value));
}
__device__ __forceinline__ void fit(short* to, float value) { asm("cvt.rni.s16.f32 %0, %1;" : "=h"(*to) : "f"(value)); }
#else
__device__ __forceinline__ void fit(unsigned char* to, float value) { fit_between(to, 0, 255, (Sum)value); }
__device__ __forceinline__ void fit(unsigned short* to, float value) { fit_between(to, 0, 65535, (Sum)value); }
__device__ __forceinline__ void fit(short* to, float value) { fit_between(to, -32768, 32767, (Sum)value); }
#endif
__device__ __forceinline__ void fit(unsigned char* to, double value) { fit_between(to, 0, 255, (Sum)value); }
__device__ __forceinline__ void fit(unsigned short* to, double value) { fit_between(to, 0, 65535, (Sum)value); }
__device__ __forceinline__ void fit(short* to, double value) { fit_between(to, -32768, 32767, (Sum)value); }
__device__ __forceinline__ void fit(float* to, Sum value) { *to = (float)value; }
__device__ __forceinline__ void fit(double* to, Sum value) { *to = (double)value; }

// Whether `result` is what was left of a sum that did not fit. Of floating point nothing is ever clipped.
template <typename T>
__device__ __forceinline__ int is_clipped(T result, Sum value) {
    return fabs(rint(value) - (Sum)result) > 0;
}
__device__ __forceinline__ int is_clipped(float, Sum) { return 0; }
__device__ __forceinline__ int is_clipped(double, Sum) { return 0; }

template <typename T>
__device__ __forceinline__ int put(T* to, Sum value) {
    T result;
    fit(&result, value);
    *to = result;
    return is_clipped(result, value);
}

// Adds what a thread has clipped to the count of the whole run.
__device__ __forceinline__ void add_clipped(unsigned long long* clipped, int mine) {
    if (clipped && mine) atomicAdd(clipped, (unsigned long long)mine);
}
