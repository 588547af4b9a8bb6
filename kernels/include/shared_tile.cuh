// Shared-memory tiles: conversion on load, zero outside the matrix, 16-byte reads.
#pragma once
#include "async_copy.cuh"
#include "lanes.cuh"

struct __align__(16) Four {
    float at[4];
};
__device__ __forceinline__ Four load_four(const float* tile) {
    const float4 v = *reinterpret_cast<const float4*>(tile);
    Four four = {{v.x, v.y, v.z, v.w}};
    return four;
}

__device__ __forceinline__ float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
__device__ __forceinline__ double multiply_add(float a, float b, double c) { return fma((double)a, (double)b, c); }

template <typename T>
struct IsFloat {
    enum { VALUE = 0 };
};
template <>
struct IsFloat<float> {
    enum { VALUE = 1 };
};

// Copies COLUMNS columns of `rows` rows into a tile of pitch PITCH; row 0, column 0 of the tile is (y, x) of the matrix.
// Rows below zero are taken `period` further down (0: no wrap). Rows outside [0, y_last) and columns outside the matrix
// become zero. All warps of the block take part. Integers are loaded BATCH rows at a time before the first is converted.
// COLUMNS and PITCH are multiples of 4.
template <int COLUMNS, int PITCH, int BLOCK_WARPS, typename Element>
__device__ __forceinline__ void stage(float* tile, const Element* matrix, int width, int y_last, int y, int x, int rows,
                                      int period, int warp, int lane) {
    if (IsFloat<Element>::VALUE && ((x | width) & 3) == 0 && ((unsigned long long)matrix & 15) == 0) {
        constexpr int FOURS = COLUMNS / 4;  // no group of four straddles the matrix's edge
#pragma unroll 1
        for (int i = warp * 32 + lane; i < rows * FOURS; i += BLOCK_WARPS * 32) {
            const int row = i / FOURS, column = i % FOURS * 4;
            const int source_row = y + row + (y + row < 0 ? period : 0);
            const bool inside = (unsigned)source_row < (unsigned)y_last && (unsigned)(x + column) < (unsigned)width;
            const long long from = inside ? (long long)source_row * width + x + column : 0;
            copy_four(tile + row * PITCH + column, (const float*)matrix + from, inside);
        }
        return;
    }
    constexpr int STEPS = (COLUMNS + 31) / 32;
    constexpr int BATCH = IsFloat<Element>::VALUE ? 1 : STEPS < 8 ? 8 / STEPS : 1;
#pragma unroll 1
    for (int first = warp; first < rows; first += BLOCK_WARPS * BATCH) {
        Element value[BATCH][STEPS];
#pragma unroll
        for (int b = 0; b < BATCH; ++b) {
            const int row = first + b * BLOCK_WARPS;
            const int source_row = y + row + (y + row < 0 ? period : 0);
            const bool row_inside = row < rows && (unsigned)source_row < (unsigned)y_last;
            const Element* source = matrix + (long long)(row_inside ? source_row : 0) * width;
            const unsigned columns = row_inside ? width : 0;
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                const int column = step * 32 + lane;
                const bool inside = (unsigned)(x + column) < columns;
                if (IsFloat<Element>::VALUE) {
                    if (COLUMNS % 32 == 0 || column < COLUMNS)
                        copy_float(tile + row * PITCH + column, (const float*)source + (inside ? x + column : 0), inside);
                } else {
                    value[b][step] = inside ? source[x + column] : (Element)0;
                }
            }
        }
#pragma unroll
        for (int b = 0; b < (IsFloat<Element>::VALUE ? 0 : BATCH); ++b)
#pragma unroll
            for (int step = 0; step < STEPS; ++step) {
                const int row = first + b * BLOCK_WARPS, column = step * 32 + lane;
                if (row < rows && (COLUMNS % 32 == 0 || column < COLUMNS))
                    tile[row * PITCH + column] = (float)value[b][step];
            }
    }
}
