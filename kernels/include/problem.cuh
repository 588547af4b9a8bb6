// The parameters of a correlation kernel: sizes, window of shifts, which left is paired with which right.
//
// Plane of one pair, for the shift (dy, dx) = (shift_y0 + iy, shift_x0 + ix):
//     plane[iy][ix] = sum over y, x of left[y + dy][x + dx] * right[y][x],  terms outside a matrix being zero.
// Matrices are dense (row after row), and so are stacks. Pair p takes left p / rights_per_left and right p % rights,
// which covers one-to-one, one-to-many, n-to-mn (rights = n * m) and n-to-m (rights = m).
// Element offsets are 64 bits wide. Numbers of pairs, blocks and workers of one launch are not: a launcher divides
// larger batches into parts (64-bit division is a function call, and a call costs a stack frame).
#pragma once

#ifndef LEFT_TYPE
#define LEFT_TYPE float
#endif
#ifndef RIGHT_TYPE
#define RIGHT_TYPE float
#endif
#ifndef SUM_TYPE
#define SUM_TYPE float
#endif

typedef LEFT_TYPE Left;    // element of a left matrix: unsigned char, unsigned short, short or float
typedef RIGHT_TYPE Right;  // element of a right matrix: one of the same
typedef SUM_TYPE Sum;      // accumulator: float; of planes, double too

struct Problem {
    int left_height, left_width, right_height, right_width;
    int shift_y0, shift_x0;  // first shift of the window
    int shifts_y, shifts_x;  // size of the window, and of a plane
    int rights_per_left, rights, pairs;
};

// Kernels take the fields one by one (a launcher needs no struct layout) and gather them again.
#define PROBLEM_PARAMETERS                                                                                 \
    int left_height, int left_width, int right_height, int right_width, int shift_y0, int shift_x0,        \
        int shifts_y, int shifts_x, int rights_per_left, int rights, int pairs
#define PROBLEM_ARGUMENTS                                                                                  \
    {left_height, left_width, right_height,    right_width, shift_y0, shift_x0,                            \
     shifts_y,    shifts_x,   rights_per_left, rights,      pairs}

__device__ __forceinline__ int ceil_div(int a, int b) { return (a + b - 1) / b; }

__device__ __forceinline__ const Left* left_of(const Problem& p, const Left* lefts, int pair) {
    return lefts + (long long)(pair / p.rights_per_left) * p.left_height * p.left_width;
}
__device__ __forceinline__ const Right* right_of(const Problem& p, const Right* rights, int pair) {
    return rights + (long long)(pair % p.rights) * p.right_height * p.right_width;
}
__device__ __forceinline__ Sum* plane_of(const Problem& p, Sum* planes, int pair) {
    return planes + (long long)pair * p.shifts_y * p.shifts_x;
}

// Right indices that overlap the left matrix at a shift: [first, last). Empty where last <= first.
struct Span {
    int first, last;
};
__device__ __forceinline__ Span overlap(int left_size, int right_size, int shift) {
    Span span = {max(0, -shift), min(right_size, left_size - shift)};
    return span;
}
// The same for any of the shifts shift ... shift + count - 1.
__device__ __forceinline__ Span overlap_of_any(int left_size, int right_size, int shift, int count) {
    Span span = {max(0, 1 - shift - count), min(right_size, left_size - shift)};
    return span;
}

// Row pointer with zero outside the matrix, so that no lane diverges where the products are formed.
template <typename Element>
struct Row {
    const Element* elements;
    int width;  // 0 for a row outside the matrix
    __device__ __forceinline__ Sum at(int x) const {
        return (unsigned)x < (unsigned)width ? (Sum)elements[x] : (Sum)0;
    }
};
template <typename Element>
__device__ __forceinline__ Row<Element> row_of(const Element* matrix, int height, int width, int y) {
    bool inside = (unsigned)y < (unsigned)height;
    Row<Element> row = {matrix + (long long)(inside ? y : 0) * width, inside ? width : 0};
    return row;
}
