// What a filter kernel is asked for: types, taps, sizes, boundary, rounding.
//
// result[y][x] = sum over f, e of taps[f][e] * image[y + f - TOP][x + e - LEFT]   (correlation, no flip)
// Images are dense (row after row), a stack is dense too. What lies outside an image follows from BOUNDARY, with the names
// of scipy.ndimage; no padded copy exists. A result may be smaller than its image ("valid": LEFT = TOP = 0).
// The taps are an argument of the kernel: constant memory of that launch, so other taps need no other kernel.
#pragma once

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
#define BOUNDARY_REFLECT 0   // d c b a | a b c d | d c b a
#define BOUNDARY_MIRROR 1    // d c b | a b c d | c b a
#define BOUNDARY_NEAREST 2   // a a a a | a b c d | d d d d
#define BOUNDARY_WRAP 3      // a b c d | a b c d | a b c d
#define BOUNDARY_CONSTANT 4  // k k k k | a b c d | k k k k

#define WARP 32
#define ALL_LANES 0xffffffffu

typedef IMAGE_TYPE Image;    // unsigned char, unsigned short, short, float or double
typedef RESULT_TYPE Result;  // one of the same; integers are rounded half to even and clipped
typedef SUM_TYPE Sum;        // accumulator: float, or double for images of double

struct Taps {
    Sum at[FILTER_HEIGHT * FILTER_WIDTH];
    Sum outside;  // value outside the image, for BOUNDARY_CONSTANT
};

struct FilterProblem {
    int height, width;                // of an image
    int result_height, result_width;  // of a result
    int count;                        // of images
    int block_rows;  // rows of a sub-block, the share of one warp
};
#define FILTER_PARAMETERS int height, int width, int result_height, int result_width, int count, int block_rows
#define FILTER_ARGUMENTS {height, width, result_height, result_width, count, block_rows}

__device__ __forceinline__ int least(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int most(int a, int b) { return a > b ? a : b; }
__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }
__device__ __forceinline__ bool is_inside(int index, int size) { return (unsigned)index < (unsigned)size; }

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return fma(a, b, c); }

// Index of the image element that stands for one outside. BOUNDARY_CONSTANT: any that can be read.
__device__ __forceinline__ int source_index(int index, int size) {
    if (is_inside(index, size)) return index;
#if BOUNDARY == BOUNDARY_REFLECT || BOUNDARY == BOUNDARY_MIRROR
    const int twice = BOUNDARY == BOUNDARY_MIRROR;  // 1: the elements at the rim do not occur twice
    const int period = most(1, 2 * (size - twice));
    index %= period;
    if (index < 0) index += period;
    return index < size ? index : period - 1 + twice - index;
#elif BOUNDARY == BOUNDARY_WRAP
    index %= size;
    return index < 0 ? index + size : index;
#else
    return index < 0 ? 0 : size - 1;
#endif
}

// The sub-block of a warp: the same rows of COLUMNS * WARP neighbouring columns.
struct SubBlock {
    const Image* image;
    Result* result;
    int x, y, rows;  // first column, first row and number of rows of the result; no rows: nothing to do
};
template <int COLUMNS>
__device__ __forceinline__ SubBlock sub_block_of(const FilterProblem& p, const Image* images, Result* results, int warp) {
    const int across = ceil_div(p.result_width, COLUMNS * WARP);
    const int blocks = across * ceil_div(p.result_height, p.block_rows);
    const int number = warp / blocks, block = warp % blocks;
    const int y = block / across * p.block_rows;
    SubBlock found = {images + (long long)number * p.height * p.width,
                      results + (long long)number * p.result_height * p.result_width,
                      block % across * (COLUMNS * WARP), y,
                      number < p.count ? least(p.block_rows, p.result_height - y) : 0};
    return found;
}

// Sums become results; a value out of range becomes the nearest that is in range.
__device__ __forceinline__ int nearest_int(float value) { return __float2int_rn(value); }
__device__ __forceinline__ int nearest_int(double value) { return __double2int_rn(value); }
__device__ __forceinline__ void put(float* to, Sum value) { *to = (float)value; }
__device__ __forceinline__ void put(double* to, Sum value) { *to = (double)value; }
__device__ __forceinline__ void put(unsigned char* to, Sum value) { *to = (unsigned char)most(0, least(255, nearest_int(value))); }
__device__ __forceinline__ void put(unsigned short* to, Sum value) {
    *to = (unsigned short)most(0, least(65535, nearest_int(value)));
}
__device__ __forceinline__ void put(short* to, Sum value) { *to = (short)most(-32768, least(32767, nearest_int(value))); }
