// How the warps of `product_tile.cuh` multiply a tile of filters and a tile of values: on tensor cores, with
// `mma_split.cuh`.
//
// The mapping from filters and columns of the warp's tile to rows and columns of the products can be chosen freely.
// Here a lane reads four adjacent ones at once, for four products, without bank conflicts; its sums are then blocks of
// four rows and four columns, arranged as those of `fma_tile.cuh` are for eight by four lanes, so that they are stored
// in the same way. With G(g) = 4 (g % 2) + g / 2, the lane's `lane_m`: row g of products 2 v and 2 v + 1 are filters 32
// v + 4 G(g) and the three after it (g + 8 takes the odd ones of each pair); column g of products 4 w ... 4 w + 3 are
// columns 32 w + 4 G(g) ... + 3. The sums of a lane for columns 2 t and 2 t + 1 are then columns 32 w + 4 t ... + 3 and
// those 16 further.
// Whole planes are read an element at a time: column g of product u is column 8 u + G(g).
//
// Tensor cores truncate their sums: they sum the products of one tile, and ordinary additions sum the tiles. With 1152
// positive products, 16 or 32 per tile, the error is then a quarter of 2e-6 of the sum of magnitudes; nine times that
// without the additions (`test_split_on_host.py`, which truncates as sm_80 does).
#pragma once
#include "mma_split.cuh"

constexpr int PRODUCTS_M = MICRO_M / 2, PRODUCTS_N = MICRO_N / 2;
constexpr int K_AT_ONCE = PLANE ? 2 : GROUP_K / 8;  // in a piece of straight code: addresses of single elements take registers
static_assert(MICRO_N % (PLANE ? 2 : 8) == 0, "products have eight columns; a lane reads those of four");

// Where a lane's columns lie in the values of a tile.
struct ValueColumns {
    int at[PLANE ? PRODUCTS_N : 1];
    __device__ __forceinline__ ValueColumns(const TilePlace& place) {
        const int tile = TILE_K * PITCH_M;
        at[0] = tile + (place.group * GROUP_K + place.lane_n) * PITCH_N + place.warp_n + 4 * place.lane_m;
        if constexpr (PLANE > 0) {
#pragma unroll
            for (int u = 0; u < PRODUCTS_N; ++u) {
                // Columns beyond the last plane are read as the first one is; their sums are not stored.
                const int n = place.warp_n + 8 * u + place.lane_m, image = n / (PLANE + !PLANE);
                at[u] = tile + (place.group * GROUP_K + place.lane_n) * PLANE;
                if (image < IMAGES) at[u] += image * (TILE_K * PLANE) + n - image * PLANE;
            }
        }
    }
    // Of the lane's elements of eight, those of the first four or the last four.
    __device__ __forceinline__ void read(const float* buffer, int k, int half, Parts (&b)[PRODUCTS_N][2]) const {
        if constexpr (PLANE > 0) {
#pragma unroll
            for (int u = 0; u < PRODUCTS_N; ++u) b[u][half] = parts_of(buffer[at[u] + (k + 4 * half) * PLANE]);
        } else {
#pragma unroll
            for (int u = 0; u < PRODUCTS_N; u += 4) {
                const Four four = load_four(buffer + at[0] + (k + 4 * half) * PITCH_N + u / 4 * 32);
#pragma unroll
                for (int j = 0; j < 4; ++j) b[u + j][half] = parts_of(four.at[j]);
            }
        }
    }
};

__device__ __forceinline__ void multiply_tiles(const float* buffer, const TilePlace& place, const ValueColumns& columns,
                                               float (&sum)[MICRO_M][MICRO_N]) {
    const float* filters = buffer + (place.group * GROUP_K + place.lane_n) * PITCH_M + place.warp_m + 4 * place.lane_m;
    float part[PRODUCTS_M][PRODUCTS_N][4] = {};
#pragma unroll K_AT_ONCE
    for (int k = 0; k < GROUP_K; k += 8) {
        Parts a[MICRO_M][2], b[PRODUCTS_N][2];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
            for (int i = 0; i < MICRO_M; i += 4) {
                const Four four = load_four(filters + (k + 4 * half) * PITCH_M + i * 8);
#pragma unroll
                for (int v = 0; v < 4; ++v) a[i + v][half] = parts_of(four.at[v]);
            }
            columns.read(buffer, k, half, b);
        }
        multiply_add_parts<PRODUCTS_M, PRODUCTS_N>(part, a, b);
    }
#pragma unroll
    for (int i = 0; i < MICRO_M; ++i)
#pragma unroll
        for (int u = 0; u < PRODUCTS_N; ++u)
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                const int j = PLANE ? 2 * u + odd : u / 4 * 8 + 4 * odd + u % 4;
                sum[i][j] += part[i / 2][u][i % 2 * 2 + odd];
            }
}
