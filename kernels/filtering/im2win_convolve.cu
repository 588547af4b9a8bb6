// Im2win convolution, high-performance form: a block multiplies tiles of filters and of the window tensor.
//
// A block owns TILE_M filters x TILE_N output columns and walks along K, TILE_K elements at a time, through tiles in shared
// memory. Of a tile a thread copies elements of one k alone: eight neighbouring lanes read eight neighbouring elements of the
// window tensor (what the window order is for), and one division by a constant a tile finds their place. The micro-kernel
// adds the outer product of MICRO_M filter and MICRO_N window elements to as many sums in registers.
// A tile that reaches beyond M, N or K holds zeros there, in both factors.
//
// Steps of the ablation, one define each:
//     MICRO_M, MICRO_N   1: no micro-kernel, two shared loads for an FMA
//     VECTOR             4: shared memory is read and the output written 16 bytes at a time; 1: 4 bytes
//     BUFFERS            2: double buffer, one barrier a tile; 1: one tile, two barriers
//     PREFETCH           1: the next tile's copies start before the work on this one (needs two buffers)
//     FRAGMENTS          2: the micro-kernel reads the next k's elements before it multiplies this one's
// All give the same bits: each sum is formed by one thread, in the order of k.
//
// Document: Im2win, Algorithm 3, with sums of M_T x N_T, the last product filter x window, the store that ends it, and masks.
// Floor: the FMA rate; the copy rate (the output) where K is small.
#include "im2win.cuh"
#include "tile.cuh"

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
#define TILE_K 8  // a divisor of the number of threads; 8 copies without bank conflicts
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
#define BUFFER_FLOATS (TILE_K * (PITCH_M + PITCH_N))

static_assert(MICRO_M % VECTOR == 0 && MICRO_N % VECTOR == 0, "a thread reads whole vectors");
static_assert(THREADS % TILE_K == 0, "a thread copies elements of one k");
static_assert(TILE_M % 4 == 0 && TILE_N % 4 == 0, "rows of the tiles start at multiples of 16 bytes");
static_assert(!PREFETCH || BUFFERS == 2, "the next tile needs a place of its own");

// Copies filters m_first ... and the block's columns, elements k_first ... of both, into a buffer; zeros outside.
__device__ __forceinline__ void stage_tiles(const Im2win& p, float* buffer, const float* window, const float* filter,
                                            const int* columns, int m_first, int k_first) {
    constexpr int STEP = THREADS / TILE_K;
    const int k_local = threadIdx.x % TILE_K, first = threadIdx.x / TILE_K;
    const int k = k_first + k_local, depth = p.depth();
    const float* filter_at = filter + k;
    float* filter_to = buffer + k_local * PITCH_M;
#pragma unroll
    for (int i = 0; i < (TILE_M + STEP - 1) / STEP; ++i) {
        const int row = first + i * STEP, m = m_first + row;
        const bool inside = k < depth && m < p.filters;
        if (TILE_M % STEP == 0 || row < TILE_M) copy_float(filter_to + row, inside ? filter_at + m * depth : filter, inside);
    }
    const float* window_at = window + depth_offset(p, k < depth ? k : 0);
    float* window_to = buffer + TILE_K * PITCH_M + k_local * PITCH_N;
#pragma unroll
    for (int i = 0; i < (TILE_N + STEP - 1) / STEP; ++i) {
        const int column = first + i * STEP;
        if (TILE_N % STEP == 0 || column < TILE_N) {
            const int start = columns[column];
            const bool inside = k < depth && start >= 0;
            copy_float(window_to + column, inside ? window_at + start : window, inside);
        }
    }
}

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

__device__ __forceinline__ void multiply_tiles(const float* filter_tile, const float* window_tile, int lane_m, int lane_n,
                                               float (&sum)[MICRO_M][MICRO_N]) {
    float a[FRAGMENTS][MICRO_M], b[FRAGMENTS][MICRO_N];
    read_fragment<MICRO_M, LANES_M>(filter_tile, lane_m, a[0]);
    read_fragment<MICRO_N, LANES_N>(window_tile, lane_n, b[0]);
#pragma unroll
    for (int k = 0; k < TILE_K; ++k) {
        const int now = k % FRAGMENTS, next = (k + 1) % FRAGMENTS;
        if (FRAGMENTS == 2 && k + 1 < TILE_K) {
            read_fragment<MICRO_M, LANES_M>(filter_tile + (k + 1) * PITCH_M, lane_m, a[next]);
            read_fragment<MICRO_N, LANES_N>(window_tile + (k + 1) * PITCH_N, lane_n, b[next]);
        }
#pragma unroll
        for (int i = 0; i < MICRO_M; ++i)
#pragma unroll
            for (int j = 0; j < MICRO_N; ++j) sum[i][j] = fmaf(a[now][i], b[now][j], sum[i][j]);
        if (FRAGMENTS == 1 && k + 1 < TILE_K) {
            read_fragment<MICRO_M, LANES_M>(filter_tile + (k + 1) * PITCH_M, lane_m, a[0]);
            read_fragment<MICRO_N, LANES_N>(window_tile + (k + 1) * PITCH_N, lane_n, b[0]);
        }
    }
}

// Writes a thread's sums; (m_first, n_first) are its first filter and column.
__device__ __forceinline__ void store_sums(const Im2win& p, float* output, int m_first, int n_first,
                                           const float (&sum)[MICRO_M][MICRO_N]) {
    const int plane = p.plane(), columns = p.columns();
    const bool whole = VECTOR == 4 && plane % 4 == 0 && ((unsigned long long)output & 15) == 0;
#pragma unroll
    for (int j = 0; j < MICRO_N; j += VECTOR) {
        const int n = n_first + j * LANES_N;
        if (n >= columns) continue;
        const int image = n / plane, pixel = n - image * plane;
#pragma unroll
        for (int i = 0; i < MICRO_M; ++i) {
            const int m = m_first + i / VECTOR * VECTOR * LANES_M + i % VECTOR;
            if (m >= p.filters) continue;
            float* to = output + ((long long)image * p.filters + m) * plane + pixel;
            if (whole) {
                const float4 four = {sum[i][j], sum[i][j + (VECTOR > 1)], sum[i][j + VECTOR / 2], sum[i][j + VECTOR - 1]};
                *reinterpret_cast<float4*>(to) = four;
                continue;
            }
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) {
                // Columns of the next image lie behind the planes of the other filters; a plane may have one element.
                const long long images_on = (pixel + v) / plane;
                if (n + v < columns) to[v + images_on * (p.filters - 1) * plane] = sum[i][j + v];
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    im2win_convolve(const float* window, const float* filter, float* output, IM2WIN_PARAMETERS) {
    const Im2win p = IM2WIN_ARGUMENTS;
    SHARED_FLOATS(buffers);  // BUFFERS times: [TILE_K][PITCH_M] filters, [TILE_K][PITCH_N] window; then TILE_N column starts
    int* columns = reinterpret_cast<int*>(buffers + BUFFERS * BUFFER_FLOATS);
    // Tiles of filters fastest: the blocks that share a tile of the window tensor run at the same time.
    const int m_tiles = (p.filters + TILE_M - 1) / TILE_M;
    const int m_first = (int)blockIdx.x % m_tiles * TILE_M, n_first = (int)blockIdx.x / m_tiles * TILE_N;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_m = warp % WARPS_M * (LANES_M * MICRO_M), warp_n = warp / WARPS_M * (LANES_N * MICRO_N);
    const int lane_m = lane / LANES_N, lane_n = lane % LANES_N;
#pragma unroll
    for (int column = threadIdx.x; column < TILE_N; column += THREADS)
        columns[column] = n_first + column < p.columns() ? column_start(p, n_first + column) : -1;
    __syncthreads();

    float sum[MICRO_M][MICRO_N];
#pragma unroll
    for (int i = 0; i < MICRO_M; ++i)
#pragma unroll
        for (int j = 0; j < MICRO_N; ++j) sum[i][j] = 0.0f;
    const int depth = p.depth();
    float *present = buffers, *following = buffers + (BUFFERS - 1) * BUFFER_FLOATS;
    stage_tiles(p, present, window, filter, columns, m_first, 0);
#pragma unroll 1
    for (int k_first = 0; k_first < depth; k_first += TILE_K) {
        const bool more = k_first + TILE_K < depth;
        staged();
        __syncthreads();
        if (PREFETCH && more) stage_tiles(p, following, window, filter, columns, m_first, k_first + TILE_K);
        multiply_tiles(present + warp_m, present + TILE_K * PITCH_M + warp_n, lane_m, lane_n, sum);
        if (BUFFERS == 1) __syncthreads();
        if (!PREFETCH && more) stage_tiles(p, following, window, filter, columns, m_first, k_first + TILE_K);
        float* done = present;
        present = following;
        following = done;
    }
    store_sums(p, output, m_first + warp_m + lane_m * VECTOR, n_first + warp_n + lane_n * VECTOR, sum);
}
