// Adds up the sums of a block's groups of warps and stores them, through shared memory; also for whole small planes.
//
// Every group writes its sums to its own tile; then all threads add four neighbouring elements of every tile, in the
// order of the groups, so that every run gives the same bits, and write them 16 bytes at a time. Rows of TILE_N columns
// have the layout [TILE_M][PITCH_N]. Whole planes (PLANE) have the layout of global memory, where the filters' planes
// of an image follow each other: [IMAGES][TILE_M][PLANE].
#pragma once
#include "product_tile.cuh"

#define GROUP_SUMS (TILE_M * (PLANE ? IMAGES * PLANE : PITCH_N))  // floats of a group; WARPS_K of them in shared memory

__device__ __forceinline__ void leave_sums(float* tile, const TilePlace& place, const float (&sum)[MICRO_M][MICRO_N]) {
#pragma unroll
    for (int j = 0; j < MICRO_N; j += VECTOR_N) {
        const int n = place.column(j), image = n / (PLANE + !PLANE);
        if (PLANE && image >= IMAGES) continue;
        float* to = tile + (PLANE ? image * (TILE_M - 1) * PLANE + n : n);
#pragma unroll
        for (int i = 0; i < MICRO_M; ++i) {
            float* at = to + place.row(i) * (PLANE ? PLANE : PITCH_N);
            if constexpr (VECTOR_N == 4) {
                const float4 four = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
                *reinterpret_cast<float4*>(at) = four;
            } else {
                *at = sum[i][j];
            }
        }
    }
}

__device__ __forceinline__ Four added(const float* tiles, int at) {
    Four four = load_four(tiles + at);
#pragma unroll
    for (int group = 1; group < WARPS_K; ++group) {
        const Four more = load_four(tiles + group * GROUP_SUMS + at);
#pragma unroll
        for (int v = 0; v < 4; ++v) four.at[v] += more.at[v];
    }
    return four;
}

// Writes to output [images][filters][plane]; (m_first, n_first) is the tile's first filter and column, of the first element
// of a plane where whole planes are stored. `buffers` holds GROUP_SUMS floats a group.
__device__ __forceinline__ void store_added(float* output, int filters, int columns, int plane, float* buffers, int m_first,
                                            int n_first, const TilePlace& place, const float (&sum)[MICRO_M][MICRO_N]) {
    constexpr int ACROSS = PLANE ? TILE_M * PLANE / 4 : TILE_N / 4, FOURS = ACROSS * (PLANE ? IMAGES : TILE_M);
    __syncthreads();  // every thread has read the last tile
    leave_sums(buffers + place.group * GROUP_SUMS, place, sum);
    __syncthreads();
    const bool whole = (plane & 3) == 0 && ((unsigned long long)output & 15) == 0;
#pragma unroll 4
    for (int i = 0; i < (FOURS + THREADS - 1) / THREADS; ++i) {
        const int e = threadIdx.x + i * THREADS, row = e / ACROSS, at = (e - row * ACROSS) * 4;
        if (FOURS % THREADS && e >= FOURS) break;
        if constexpr (PLANE > 0) {
            if (at >= (filters - m_first) * PLANE || n_first + row * PLANE >= columns) continue;
            const Four four = added(buffers, e * 4);
            float* to = output + (long long)(n_first + row * PLANE) * filters + m_first * PLANE + at;
            store_four(to, four.at[0], four.at[1], four.at[2], four.at[3]);
        } else {
            const int m = m_first + row, n = n_first + at;
            if (m >= filters || n >= columns) continue;
            const Four four = added(buffers, row * PITCH_N + at);
            const int image = n < plane ? 0 : n / plane;
            int pixel = n - image * plane;
            float* to = output + ((long long)image * filters + m) * plane;
            if (whole) {
                store_four(to + pixel, four.at[0], four.at[1], four.at[2], four.at[3]);
            } else {
#pragma unroll
                for (int v = 0; v < 4; ++v) {
                    if (n + v < columns) to[pixel] = four.at[v];
                    if (++pixel == plane) {
                        pixel = 0;
                        to += (long long)filters * plane;  // the same filter of the next image
                    }
                }
            }
        }
    }
}
