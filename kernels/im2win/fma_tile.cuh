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

__device__ __forceinline__ void multiply_tiles(const float* buffer, const TilePlace& place,
                                               float (&sum)[MICRO_M][MICRO_N]) {
    const float *filters = buffer + place.warp_m, *values = buffer + TILE_K * PITCH_M + place.warp_n;
    float a[FRAGMENTS][MICRO_M], b[FRAGMENTS][MICRO_N];
    read_fragment<MICRO_M, LANES_M>(filters, place.lane_m, a[0]);
    read_fragment<MICRO_N, LANES_N>(values, place.lane_n, b[0]);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
        const int now = k % FRAGMENTS, next = (k + 1) % FRAGMENTS;
        if (FRAGMENTS == 2 && k + 1 < TILE_K) {
            read_fragment<MICRO_M, LANES_M>(filters + (k + 1) * PITCH_M, place.lane_m, a[next]);
            read_fragment<MICRO_N, LANES_N>(values + (k + 1) * PITCH_N, place.lane_n, b[next]);
        }
#pragma unroll
        for (int i = 0; i < MICRO_M; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_N; ++j) sum[i][j] = fmaf(a[now][i], b[now][j], sum[i][j]);
        if (FRAGMENTS == 1 && k + 1 < TILE_K) {
            read_fragment<MICRO_M, LANES_M>(filters + (k + 1) * PITCH_M, place.lane_m, a[0]);
            read_fragment<MICRO_N, LANES_N>(values + (k + 1) * PITCH_N, place.lane_n, b[0]);
        }
    }
}
