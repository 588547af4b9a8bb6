// A block's share of a matrix product filters[M x K] * values[K x N]: tiles in shared memory, sums in registers.
//
// A block computes TILE_M rows (filters) x TILE_N columns and loops over K, TILE_K elements at a time. In both tiles k
// is the slowest index. A thread adds the outer product of MICRO_M filter and MICRO_N column elements to as many sums
// (`fma_tile.cuh`); each sum is formed by one thread, in the order of k, so that no tunable changes a bit of the result.
// A kernel supplies an object whose `next(buffer)` starts the copies of the next TILE_K elements of both operands,
// beginning with the first: see `im2win_gather.cuh`. Elements beyond K must be zero in both operands; those beyond M or
// N may have any value, as their sums are not stored. Filters are stored in memory as [K][pitch], the pitch a multiple
// of 4, with rows of zeros up to the end of the last tile.
//
// Steps of the ablation, one define each:
//     MICRO_M, MICRO_N   1: no micro-kernel, two shared loads for an FMA
//     VECTOR             4: shared memory is read and the output written 16 bytes at a time; 1: 4 bytes
//     BUFFERS            2: double buffer, one barrier a tile; 1: one tile, two barriers
//     PREFETCH           1: the next tile's copies start before the work on this one (needs two buffers)
//     FRAGMENTS          2: the micro-kernel reads the next k's elements before it multiplies this one's
#pragma once
#include "shared_tile.cuh"

#ifndef WARPS_M
#define WARPS_M 4  // warps of a block along the filters
#endif
#ifndef WARPS_N
#define WARPS_N 2  // and along the columns
#endif
#ifndef LANES_M
#define LANES_M 4  // lanes of a warp along the filters: 1, 2, 4 ... 32
#endif
#ifndef MICRO_M
#define MICRO_M 8  // filters a thread; a multiple of VECTOR
#endif
#ifndef MICRO_N
#define MICRO_N 8  // columns a thread; a multiple of VECTOR
#endif
#ifndef TILE_K
#define TILE_K 8  // more: fewer barriers, more code in the loop
#endif
#ifndef VECTOR
#define VECTOR 4
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif
#ifndef PREFETCH
#define PREFETCH 1
#endif
#ifndef FRAGMENTS
#define FRAGMENTS 2
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

#define THREADS (32 * WARPS_M * WARPS_N)
#define LANES_N (32 / LANES_M)
#define TILE_M (WARPS_M * LANES_M * MICRO_M)
#define TILE_N (WARPS_N * LANES_N * MICRO_N)
#define PITCH_M (TILE_M + 4)
#define PITCH_N (TILE_N + 4)
#define BUFFER_FLOATS (TILE_K * (PITCH_M + PITCH_N))  // filters [TILE_K][PITCH_M], then values [TILE_K][PITCH_N]
#define WARP_N (LANES_N * MICRO_N)                    // columns of a warp

static_assert(MICRO_M % VECTOR == 0 && MICRO_N % VECTOR == 0, "a thread reads whole vectors");
static_assert(TILE_M % 4 == 0 && TILE_N % 4 == 0, "rows of the tiles start at multiples of 16 bytes");
static_assert(BUFFERS <= 2 && PREFETCH < BUFFERS, "the next tile needs a place of its own");

// Where a thread's sums lie in the block's tile: element (i, j) at row(i), column(j).
struct TilePlace {
    int warp, lane, warp_m, warp_n, lane_m, lane_n;
    __device__ __forceinline__ int row(int i) const {
        return warp_m + i / VECTOR * VECTOR * LANES_M + lane_m * VECTOR + i % VECTOR;
    }
    __device__ __forceinline__ int column(int j) const {
        return warp_n + j / VECTOR * VECTOR * LANES_N + lane_n * VECTOR + j % VECTOR;
    }
};
__device__ __forceinline__ TilePlace tile_place() {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_m = warp % WARPS_M * (LANES_M * MICRO_M), warp_n = warp / WARPS_M * WARP_N;
    TilePlace place = {warp, lane, warp_m, warp_n, lane / LANES_N, lane % LANES_N};
    return place;
}

// Copies the block's filters, TILE_K rows of k a time, 16 bytes a copy; a thread keeps its filters. No masks: filters that
// do not exist are read as others are.
struct FilterCopies {
    static constexpr int FOURS = TILE_M / 4, STEP = THREADS < FOURS ? 1 : THREADS / FOURS;  // rows of k at once
    static_assert(THREADS >= FOURS, "a thread copies four filters");
    const float* from;
    int pitch;
    __device__ __forceinline__ FilterCopies(const float* filter, int filter_pitch, int m_first, int k_first)
        : pitch(filter_pitch) {
        const int k = threadIdx.x / FOURS, m = m_first + (int)threadIdx.x % FOURS * 4;
        from = filter + (long long)(k_first + k) * pitch + (m < pitch ? m : 0);
    }
    __device__ __forceinline__ void next(float* buffer) {
        const int k = threadIdx.x / FOURS;
        float* to = buffer + k * PITCH_M + threadIdx.x % FOURS * 4;
#pragma unroll
        for (int i = 0; i < TILE_K; i += STEP)
            if (k < STEP && (TILE_K % STEP == 0 || k + i < TILE_K)) copy_four(to + i * PITCH_M, from + i * pitch, true);
        from += (long long)TILE_K * pitch;
    }
};

#include "fma_tile.cuh"

// Sums over `tiles` tiles of K, at least one. `buffers` holds BUFFERS of them; ends without a barrier.
template <typename Copies>
__device__ __forceinline__ void multiply_depth(Copies& copies, float* buffers, int tiles, const TilePlace& place,
                                               float (&sum)[MICRO_M][MICRO_N]) {
#pragma unroll
    for (int i = 0; i < MICRO_M; ++i)
#pragma unroll
        for (int j = 0; j < MICRO_N; ++j) sum[i][j] = 0.0f;
    float *present = buffers, *following = buffers + (BUFFERS - 1) * BUFFER_FLOATS;
    copies.next(present);
#pragma unroll 1
    for (int left = tiles - 1;; --left) {
        staged();
        __syncthreads();
        if (PREFETCH && left > 0) copies.next(following);
        multiply_tiles(present, place, sum);
        if (left == 0) break;
        if (BUFFERS == 1) __syncthreads();
        if (!PREFETCH) copies.next(following);
        float* done = present;
        present = following;
        following = done;
    }
}

// Sixteen bytes to device memory. (The compiler parts the assignment of a float4 into four stores here.)
__device__ __forceinline__ void store_four(float* to, float a, float b, float c, float d) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
#else
    const float4 four = {a, b, c, d};
    *reinterpret_cast<float4*>(to) = four;
#endif
}

// Writes a block's sums to output [images][filters][pitch], whose planes hold `plane` elements each; columns count the
// elements of one filter, image after image. (m_first, n_first) is the tile's first filter and column.
// Planes of whole vectors are written 16 bytes at a time from registers. Others pass through shared memory (`buffers`, at
// least MICRO_N floats a thread), so that the lanes of a warp write neighbouring elements.
__device__ __forceinline__ void store_sums(float* output, int filters, int columns, int plane, int pitch, float* buffers,
                                           int m_first, int n_first, const TilePlace& place,
                                           const float (&sum)[MICRO_M][MICRO_N]) {
    if (VECTOR == 4 && ((plane | pitch) & 3) == 0 && ((unsigned long long)output & 15) == 0) {
#pragma unroll
        for (int j = 0; j < MICRO_N; j += VECTOR) {
            const int n = n_first + place.column(j);
            if (n >= columns) continue;
            const int image = n / plane;
            float* to = output + ((long long)image * filters + m_first + place.row(0)) * pitch + (n - image * plane);
#pragma unroll
            for (int i = 0; i < MICRO_M; ++i) {
                if (i > 0) to += (long long)(place.row(i) - place.row(i - 1)) * pitch;
                if (m_first + place.row(i) < filters)
                    store_four(to, sum[i][j], sum[i][j + (VECTOR > 1)], sum[i][j + VECTOR / 2], sum[i][j + VECTOR - 1]);
            }
        }
        return;
    }
    constexpr int PASSES = (WARP_N + 31) / 32;
    const int m_own = m_first + place.warp_m;
    float* to[PASSES];
    bool exists[PASSES];
#pragma unroll
    for (int pass = 0; pass < PASSES; ++pass) {
        const int column = pass * 32 + place.lane, n = n_first + place.warp_n + column, image = n / plane;
        exists[pass] = column < WARP_N && n < columns;
        to[pass] = output + ((long long)image * filters + m_own) * pitch + (n - image * plane);
    }
    __syncthreads();  // every thread has read the last tile
    float* patch = buffers + place.warp * (LANES_M * WARP_N);
#pragma unroll
    for (int i = 0; i < MICRO_M; ++i) {
        float* own = patch + place.lane_m * WARP_N + place.lane_n * VECTOR;
#pragma unroll
        for (int j = 0; j < MICRO_N; j += VECTOR) {
            if (VECTOR == 4) {
                const float4 four = {sum[i][j], sum[i][j + (VECTOR > 1)], sum[i][j + VECTOR / 2], sum[i][j + VECTOR - 1]};
                *reinterpret_cast<float4*>(own + j * LANES_N) = four;
            } else {
                own[j * LANES_N] = sum[i][j];
            }
        }
        __syncwarp();
#pragma unroll
        for (int row = 0; row < LANES_M; ++row) {
            const int m = i / VECTOR * VECTOR * LANES_M + row * VECTOR + i % VECTOR;
            const int after = row + 1 < LANES_M ? m + VECTOR : (i + 1) / VECTOR * VECTOR * LANES_M + (i + 1) % VECTOR;
#pragma unroll
            for (int pass = 0; pass < PASSES; ++pass) {
                if (exists[pass] && m_own + m < filters) *to[pass] = patch[row * WARP_N + pass * 32 + place.lane];
                to[pass] += (long long)(after - m) * pitch;
            }
        }
        __syncwarp();
    }
}
