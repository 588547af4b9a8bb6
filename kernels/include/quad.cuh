// Four neighbouring columns a lane: loads and stores of up to 16 bytes, and the exchange with lanes on both sides.
#pragma once

#define COLUMNS 4
#define WARP_COLUMNS (COLUMNS * WARP)

template <typename T>
struct alignas(sizeof(T) * COLUMNS > 16 ? 16 : sizeof(T) * COLUMNS) Quad {
    T at[COLUMNS];
};

template <typename T>
__device__ __forceinline__ bool is_aligned(const T* address) {
    return ((unsigned long long)address & (alignof(Quad<T>) - 1)) == 0;
}

// Where a lane finds four neighbouring columns of every row: the boundary of the columns, worked out once.
struct QuadSource {
    int column;            // of the first, where `whole`
    bool whole;            // all inside and aligned: one load
    int source[COLUMNS];   // column that is read for each
    unsigned outside;      // bit k: column k lies outside the image
};
__device__ __forceinline__ QuadSource quad_source(int column, int width, bool aligned) {
    QuadSource quad;
    quad.column = column;
    quad.whole = aligned && column % COLUMNS == 0 && column >= 0 && column + COLUMNS <= width;
    quad.outside = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) {
        quad.source[k] = source_index(column + k, width);
        if (!is_inside(column + k, width)) quad.outside |= 1u << k;
    }
    return quad;
}
__device__ __forceinline__ Quad<Image> load_quad(const Image* row, const QuadSource& from) {
    if (from.whole) return *reinterpret_cast<const Quad<Image>*>(row + from.column);
    Quad<Image> quad;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) quad.at[k] = row[from.source[k]];
    return quad;
}

// Converts what was loaded; only here does the program wait for it.
__device__ __forceinline__ Quad<Sum> sums_of(const Quad<Image>& raw, unsigned outside, bool row_outside, Sum constant) {
    Quad<Sum> quad;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) {
        quad.at[k] = (Sum)raw.at[k];
        if (BOUNDARY == BOUNDARY_CONSTANT && (row_outside || (outside >> k & 1))) quad.at[k] = constant;
    }
    return quad;
}

// Quad of the lane `distance` to the right (below zero: to the left). `halo` holds the quads beyond the warp's: those to
// the right in the first lanes, those to the left in the last, so that one register serves both sides.
__device__ __forceinline__ Sum neighbour(Sum own, Sum halo, int distance, int lane) {
    const bool beyond = distance > 0 ? lane < distance : lane >= WARP + distance;
    return __shfl_sync(ALL_LANES, beyond ? halo : own, (lane + distance) & (WARP - 1));
}

__device__ __forceinline__ void store_quad(Result* row, int column, int width, bool aligned, const Quad<Sum>& sums) {
    if (aligned && column + COLUMNS <= width) {
        Quad<Result> quad;
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) put(&quad.at[k], sums.at[k]);
        *reinterpret_cast<Quad<Result>*>(row + column) = quad;
        return;
    }
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k)
        if (column + k < width) put(row + column + k, sums.at[k]);
}
