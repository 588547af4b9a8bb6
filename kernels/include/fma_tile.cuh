// How the warps of `product_tile.cuh` multiply a tile of filters and a tile of values: with FMA instructions.
#pragma once

// A lane's share of a row of a tile: vectors, with those of the other lanes between them.
template <int MICRO, int LANES>
__device__ __forceinline__ void read_fragment(const float* row, int lane, float* fragment) {
#pragma unroll
    for (int i = 0; i < MICRO; i += VECTOR) {
        const float* from = row + i * LANES + lane * VECTOR;
        if constexpr (VECTOR == 4) {
            const Four four = load_four(from);
#pragma unroll
            for (int v = 0; v < 4; ++v) fragment[i + v] = four.at[v];
        } else {
            fragment[i] = *from;
        }
    }
}

// Where a thread's columns lie in the values of a tile, of which it reads those of one k.
struct ValueColumns {
    int at[PLANE ? MICRO_N : 1], lane_n;
    __device__ __forceinline__ ValueColumns(const TilePlace& place) : lane_n(place.lane_n) {
        at[0] = TILE_K * PITCH_M + place.group * (GROUP_K * PITCH_N) + place.warp_n;
        if constexpr (PLANE > 0) {
#pragma unroll
            for (int j = 0; j < MICRO_N; ++j) {
                // Columns beyond the last plane are read as the first one is; their sums are not stored.
                const int n = place.column(j), image = n / (PLANE + !PLANE);
                at[j] = TILE_K * PITCH_M + place.group * (GROUP_K * PLANE);
                if (image < IMAGES) at[j] += image * (TILE_K * PLANE) + n - image * PLANE;
            }
        }
    }
    __device__ __forceinline__ void read(const float* buffer, int k, float* fragment) const {
        if constexpr (PLANE > 0) {
#pragma unroll
            for (int j = 0; j < MICRO_N; ++j) fragment[j] = buffer[at[j] + k * PLANE];
        } else {
            read_fragment<MICRO_N, LANES_N>(buffer + at[0] + k * PITCH_N, lane_n, fragment);
        }
    }
};

__device__ __forceinline__ void multiply_tiles(const float* buffer, const TilePlace& place, const ValueColumns& columns,
                                               float (&sum)[MICRO_M][MICRO_N]) {
    const float* filter_tile = buffer + place.group * (GROUP_K * PITCH_M) + place.warp_m;
    float a[FRAGMENTS][MICRO_M], b[FRAGMENTS][MICRO_N];
    read_fragment<MICRO_M, LANES_M>(filter_tile, place.lane_m, a[0]);
    columns.read(buffer, 0, b[0]);
#pragma unroll
    for (int k = 0; k < GROUP_K; ++k) {
        const int now = k % FRAGMENTS, next = (k + 1) % FRAGMENTS;
        if (FRAGMENTS == 2 && k + 1 < GROUP_K) {
            read_fragment<MICRO_M, LANES_M>(filter_tile + (k + 1) * PITCH_M, place.lane_m, a[next]);
            columns.read(buffer, k + 1, b[next]);
        }
#pragma unroll
        for (int i = 0; i < MICRO_M; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_N; ++j) sum[i][j] = fmaf(a[now][i], b[now][j], sum[i][j]);
        if (FRAGMENTS == 1 && k + 1 < GROUP_K) {
            read_fragment<MICRO_M, LANES_M>(filter_tile + (k + 1) * PITCH_M, place.lane_m, a[0]);
            columns.read(buffer, k + 1, b[0]);
        }
    }
}
