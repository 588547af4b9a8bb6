// Pointwise convolution with dynamic blocking: a matrix times every pixel's channel vector, cut as `pointwise/planner.py` says.
//
// A block of four warps loops over ITER block tiles of filters x pixels, each divided into 2 x 2 warp tiles. In a warp,
// CHANNEL_COUNT neighbouring lanes split an output's channels: each multiplies its own, and a segmented reduction adds
// the sums. The 32 / CHANNEL_COUNT groups of lanes divide the warp tile: its filters in layout L1 (LAYOUT 1), its
// pixels in L2.
// A thread holds THREAD_FILTERS x THREAD_PIXELS sums. ROUNDS * CHANNEL_COUNT channels of both operands at a time pass
// through shared memory, while the next are being copied to the other of two buffers; a barrier separates the two.
// Filters, pixels and channels that do not exist are zeros in shared memory, and are not stored.
//
// Document: pointwise convolution, Algorithm 1; what it leaves open is decided in the planner, and ROUNDS is added here
// (the document has 1).
// Floor: the larger of the FMA rate and the copy rate.
#include "pointwise.cuh"
#include "warp_reduce.cuh"

#ifndef LAYOUT
#define LAYOUT 1
#endif
#ifndef CHANNEL_COUNT
#define CHANNEL_COUNT 8
#endif
#ifndef WARP_FILTERS
#define WARP_FILTERS 32
#endif
#ifndef WARP_PIXELS
#define WARP_PIXELS 8
#endif
#ifndef THREAD_FILTERS
#define THREAD_FILTERS 8
#endif
#ifndef THREAD_PIXELS
#define THREAD_PIXELS 8
#endif
#ifndef ROUNDS  // multiplications of a thread and sum between two barriers
#define ROUNDS 1
#endif
#ifndef INTERLEAVED  // 1: neighbouring threads copy neighbouring channels
#define INTERLEAVED 0
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

#define THREADS 128
#define STAGED (CHANNEL_COUNT * ROUNDS)  // channels
#define GROUPS (WARP / CHANNEL_COUNT)
#define FOURS(n) (((n) + 3) / 4 * 4)

// One side of the block tile in shared memory, rows of one channel: two warps' shares, the groups' shares in them side by
// side, each from a multiple of 16 bytes on.
template <int SPREAD, int OF_WARP, int OF_THREAD>
struct Side {
    static constexpr int PARTS = SPREAD ? GROUPS : 1, STRIDE = FOURS(OF_THREAD), OF_WARP_STRIDE = PARTS * STRIDE;
    // Rows of neighbouring channels begin four banks apart, where a row has room for it.
    static constexpr int PITCH = 2 * OF_WARP_STRIDE + (CHANNEL_COUNT > 1 ? 4 : 0), HELD = 2 * PARTS * OF_THREAD;
    // The q-th element that is held: its position in the row, and its number in the block tile (-1: in no warp's
    // share).
    static __device__ __forceinline__ int place(int q) { return q / OF_THREAD * STRIDE + q % OF_THREAD; }
    static __device__ __forceinline__ int number(int q) {
        const int warp = q / (PARTS * OF_THREAD), i = q - warp * (PARTS * OF_THREAD);
        return i < OF_WARP ? warp * OF_WARP + i : -1;
    }
    static __device__ __forceinline__ const float* share(const float* row, int warp, int group) {
        return row + warp * OF_WARP_STRIDE + (SPREAD ? group * STRIDE : 0);
    }
};
typedef Side<LAYOUT == 1, WARP_FILTERS, THREAD_FILTERS> Filters;
typedef Side<LAYOUT == 2, WARP_PIXELS, THREAD_PIXELS> Pixels;
#define BUFFER_FLOATS (STAGED * (Filters::PITCH + Pixels::PITCH))

// Where in the stack the pixels of a tile lie that this thread copies.
struct PixelStarts {
    static constexpr int LANES = INTERLEAVED ? WARP / 8 : WARP, COUNT = (Pixels::HELD + LANES - 1) / LANES;
    int at[COUNT];
    __device__ __forceinline__ void find(const Pointwise& p, int tile, int lane) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int q = lane + i * LANES, number = Pixels::number(q);
            at[i] = q < Pixels::HELD && number >= 0 ? pixel_start(p, tile * (2 * WARP_PIXELS) + number, p.channels) : -1;
        }
    }
};

__device__ __forceinline__ void stage_step(const Pointwise& p, float* buffer, const Image* images, const float* matrix,
                                           const PixelStarts& starts, int filter, int channel) {
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    constexpr int AT_ONCE = Filters::HELD <= 4 * WARP ? 4 : 1;
#pragma unroll 1  // unrolled, addresses of all rows would be kept in registers
    for (int row = warp; row < STAGED; row += THREADS / WARP) {
        const int c = channel + row;
#pragma unroll AT_ONCE
        for (int q = lane; q < Filters::HELD; q += WARP) {
            const int number = Filters::number(q), f = filter + number;
            const bool inside = number >= 0 && f < p.filters && c < p.channels;
            copy_float(buffer + row * Filters::PITCH + Filters::place(q), inside ? matrix + c * p.pitch + f : matrix, inside);
        }
    }
    float* pixels = buffer + STAGED * Filters::PITCH;
    // Planes: a warp a channel. Interleaved: eight channels and four pixels a warp.
    constexpr int LANES = PixelStarts::LANES, ROWS = THREADS / LANES;
    const int first_row = INTERLEAVED ? (int)threadIdx.x % 8 + warp * 8 : warp, own = INTERLEAVED ? lane / 8 : lane;
#pragma unroll 1
    for (int row = first_row; row < STAGED; row += ROWS) {
        const int c = channel + row;
#pragma unroll
        for (int i = 0; i < PixelStarts::COUNT; ++i) {
            const int q = own + i * LANES;
            const bool inside = starts.at[i] >= 0 && c < p.channels;
            if (q < Pixels::HELD)
                copy_value(pixels + row * Pixels::PITCH + Pixels::place(q), inside ? images + starts.at[i] + c * p.inner : images,
                           inside, p.scale);
        }
    }
}

template <int COUNT>
__device__ __forceinline__ void read_share(const float* from, float (&value)[FOURS(COUNT)]) {
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) {
        const Four four = load_four(from + i);
#pragma unroll
        for (int k = 0; k < 4; ++k) value[i + k] = four.at[k];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    pointwise(const Image* images, Result* results, unsigned long long* clipped, const float* matrix, const Pointwise p,
              int filter_blocks, int tiles_a_block) {
    SHARED_FLOATS(buffers);
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP, group = lane / CHANNEL_COUNT;
    const int warp_f = warp % 2, warp_p = warp / 2;
    const int filter = (int)blockIdx.x % filter_blocks * (2 * WARP_FILTERS);
    const int first_tile = (int)blockIdx.x / filter_blocks * tiles_a_block;
    const int all_tiles = (p.pixels + 2 * WARP_PIXELS - 1) / (2 * WARP_PIXELS);
    const int last_tile = first_tile + tiles_a_block < all_tiles ? first_tile + tiles_a_block : all_tiles;

    float *present = buffers, *following = buffers + BUFFER_FLOATS;
    PixelStarts starts;
    const int start_lane = INTERLEAVED ? lane / 8 : lane;
    starts.find(p, first_tile, start_lane);
    stage_step(p, present, images, matrix, starts, filter, 0);
    int beyond = 0;
    constexpr int AT_ONCE = THREAD_FILTERS * THREAD_PIXELS <= 64 ? ROUNDS : 1;  // more would not stay in registers
#pragma unroll 1
    for (int tile = first_tile; tile < last_tile; ++tile) {
        Sum sum[THREAD_FILTERS * THREAD_PIXELS];
#pragma unroll
        for (int i = 0; i < THREAD_FILTERS * THREAD_PIXELS; ++i) sum[i] = 0;
#pragma unroll 1
        for (int channel = 0; channel < p.channels; channel += STAGED) {
            staged();
            __syncthreads();
            const bool tile_ends = channel + STAGED >= p.channels;
            if (tile_ends && tile + 1 < last_tile) starts.find(p, tile + 1, start_lane);
            if (!tile_ends || tile + 1 < last_tile)
                stage_step(p, following, images, matrix, starts, filter, tile_ends ? 0 : channel + STAGED);
            const float* filters_of = Filters::share(present, warp_f, group);
            const float* pixels_of = Pixels::share(present + STAGED * Filters::PITCH, warp_p, group);
#pragma unroll AT_ONCE
            for (int round = 0; round < ROUNDS; ++round) {
                const int row = round * CHANNEL_COUNT + lane % CHANNEL_COUNT;
                float a[FOURS(THREAD_FILTERS)], b[FOURS(THREAD_PIXELS)];
                read_share<THREAD_FILTERS>(filters_of + row * Filters::PITCH, a);
                read_share<THREAD_PIXELS>(pixels_of + row * Pixels::PITCH, b);
#pragma unroll
                for (int i = 0; i < THREAD_FILTERS; ++i)
#pragma unroll
                    for (int j = 0; j < THREAD_PIXELS; ++j)
                        sum[i * THREAD_PIXELS + j] = fmaf(a[i], b[j], sum[i * THREAD_PIXELS + j]);
            }
            float* done = present;
            present = following;
            following = done;
        }

        typedef Fold<THREAD_FILTERS * THREAD_PIXELS, CHANNEL_COUNT / 2> Reduction;
        Reduction::run(sum, lane);
#pragma unroll
        for (int i = 0; i < Reduction::KEPT; ++i) {
            const int which = Reduction::index(i, lane), own_f = which / THREAD_PIXELS, own_p = which % THREAD_PIXELS;
            const int in_warp_f = own_f + (LAYOUT == 1 ? group * THREAD_FILTERS : 0);
            const int in_warp_p = own_p + (LAYOUT == 2 ? group * THREAD_PIXELS : 0);
            const int f = filter + warp_f * WARP_FILTERS + in_warp_f;
            if (which < 0 || in_warp_f >= WARP_FILTERS || in_warp_p >= WARP_PIXELS || f >= p.filters) continue;
            const int pixel = tile * (2 * WARP_PIXELS) + warp_p * WARP_PIXELS + in_warp_p;
            const int start = pixel_start(p, pixel, p.filters);
            if (start >= 0) results[start + f * p.inner] = Stored<Result>::from(sum[i], beyond);
        }
    }
    add_count(clipped, beyond);
}
