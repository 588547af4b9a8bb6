// Pointwise convolution with dynamic blocking: a matrix times every pixel's channel vector, cut as `pointwise/planner.py` says.
//
// A block of WARPS_FILTERS x WARPS_PIXELS warps (2 x 2 as published) loops over ITER block tiles of filters x pixels, each
// divided into as many warp tiles. In a warp,
// CHANNEL_COUNT neighbouring lanes split an output's channels: each multiplies its own, and a segmented reduction adds
// the sums. The 32 / CHANNEL_COUNT groups of lanes divide the warp tile: its filters in layout L1 (LAYOUT 1), its
// pixels in L2.
// A thread holds THREAD_FILTERS x THREAD_PIXELS sums. ROUNDS * CHANNEL_COUNT channels of both operands at a time pass
// through shared memory, while the next are being copied to the other of two buffers; a barrier separates the two.
// REGISTER_STAGING: the next are read into registers before the present ones are multiplied, and written to the other
// buffer after it, as published; otherwise they are copied asynchronously (sm_80 on).
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
#ifndef WARPS_FILTERS
#define WARPS_FILTERS 2
#endif
#ifndef WARPS_PIXELS
#define WARPS_PIXELS 2
#endif
#ifndef REGISTER_STAGING
#define REGISTER_STAGING 0
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

#define THREADS (WARPS_FILTERS * WARPS_PIXELS * WARP)
#define BLOCK_FILTERS (WARPS_FILTERS * WARP_FILTERS)
#define BLOCK_PIXELS (WARPS_PIXELS * WARP_PIXELS)
#define STAGED (CHANNEL_COUNT * ROUNDS)  // channels
#define GROUPS (WARP / CHANNEL_COUNT)
#define FOURS(n) (((n) + 3) / 4 * 4)

// One side of the block tile in shared memory, rows of one channel: the warps' shares, the groups' shares in them side by
// side, each from a multiple of 16 bytes on.
template <int SPREAD, int WARPS, int OF_WARP, int OF_THREAD>
struct Side {
    static constexpr int PARTS = SPREAD ? GROUPS : 1, STRIDE = FOURS(OF_THREAD), OF_WARP_STRIDE = PARTS * STRIDE;
    // Rows of neighbouring channels begin four banks apart, where a row has room for it.
    static constexpr int PITCH = WARPS * OF_WARP_STRIDE + (CHANNEL_COUNT > 1 ? 4 : 0), HELD = WARPS * PARTS * OF_THREAD;
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
typedef Side<LAYOUT == 1, WARPS_FILTERS, WARP_FILTERS, THREAD_FILTERS> Filters;
typedef Side<LAYOUT == 2, WARPS_PIXELS, WARP_PIXELS, THREAD_PIXELS> Pixels;
#define BUFFER_FLOATS (STAGED * (Filters::PITCH + Pixels::PITCH))

// Where in the stack the pixels of a tile lie that this thread copies: kept, or found each time where they are many.
struct PixelStarts {
    static constexpr int LANES = INTERLEAVED ? WARP / 8 : WARP, COUNT = (Pixels::HELD + LANES - 1) / LANES;
    static constexpr bool KEPT = COUNT <= 16;
    static constexpr int AT_ONCE = KEPT ? COUNT : 1;
    int at[AT_ONCE], tile;
    static __device__ __forceinline__ int start_of(const Pointwise& p, int tile, int q) {
        const int number = Pixels::number(q);
        return q < Pixels::HELD && number >= 0 ? pixel_start(p, tile * BLOCK_PIXELS + number, p.channels) : -1;
    }
    __device__ __forceinline__ void find(const Pointwise& p, int of_tile, int lane) {
        tile = of_tile;
        if constexpr (KEPT) {
#pragma unroll
            for (int i = 0; i < COUNT; ++i) at[i] = start_of(p, tile, lane + i * LANES);
        }
    }
    __device__ __forceinline__ int start(const Pointwise& p, int i, int q) const {
        if constexpr (KEPT) return at[i];
        return start_of(p, tile, q);
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
    constexpr int LANES = PixelStarts::LANES, ROWS = THREADS / LANES, AT_ONCE_OF_PIXELS = PixelStarts::AT_ONCE;
    const int first_row = INTERLEAVED ? (int)threadIdx.x % 8 + warp * 8 : warp, own = INTERLEAVED ? lane / 8 : lane;
#pragma unroll 1
    for (int row = first_row; row < STAGED; row += ROWS) {
        const int c = channel + row;
#pragma unroll AT_ONCE_OF_PIXELS
        for (int i = 0; i < PixelStarts::COUNT; ++i) {
            const int q = own + i * LANES, start = starts.start(p, i, q);
            const bool inside = start >= 0 && c < p.channels;
            if (q < Pixels::HELD)
                copy_value(pixels + row * Pixels::PITCH + Pixels::place(q), inside ? images + start + c * p.inner : images,
                           inside, p.scale);
        }
    }
}

// The next channels of a tile on their way through registers, as published: THREADS values at a time.
struct Fetched {
    static constexpr int OF_FILTERS = (STAGED * Filters::HELD + THREADS - 1) / THREADS;
    static constexpr int OF_PIXELS = (STAGED * Pixels::HELD + THREADS - 1) / THREADS;
    float filters[OF_FILTERS], pixels[OF_PIXELS];

    // The thread's number, of which the compiler knows nothing: it would keep all that follows from it in registers.
    static __device__ __forceinline__ int own() {
        int thread = (int)threadIdx.x;
#if defined(__CUDA_ARCH__)
        asm volatile("" : "+r"(thread));
#endif
        return thread;
    }
    // The i-th value of a thread: its channel among those staged, and its place among the elements held.
    static __device__ __forceinline__ bool filter_at(int thread, int i, int& row, int& q) {
        const int number = thread + i * THREADS;
        row = number / Filters::HELD;
        q = number - row * Filters::HELD;
        return row < STAGED;
    }
    static __device__ __forceinline__ bool pixel_at(int thread, int i, int& row, int& q) {
        const int number = thread + i * THREADS;
        row = INTERLEAVED ? number % STAGED : number / Pixels::HELD;
        q = INTERLEAVED ? number / STAGED : number - row * Pixels::HELD;
        return number < STAGED * Pixels::HELD;
    }
    __device__ __forceinline__ void read(const Pointwise& p, const Image* images, const float* matrix, int tile, int filter,
                                         int channel) {
        const int thread = own();
        int row, q;
#pragma unroll
        for (int i = 0; i < OF_FILTERS; ++i) {
            const bool exists = filter_at(thread, i, row, q);
            const int number = Filters::number(q), f = filter + number, c = channel + row;
            filters[i] = exists && number >= 0 && f < p.filters && c < p.channels ? matrix[c * p.pitch + f] : 0.0f;
        }
#pragma unroll
        for (int i = 0; i < OF_PIXELS; ++i) {
            const bool exists = pixel_at(thread, i, row, q);
            const int number = Pixels::number(q), c = channel + row;
            const int start = exists && number >= 0 ? pixel_start(p, tile * BLOCK_PIXELS + number, p.channels) : -1;
            pixels[i] = start >= 0 && c < p.channels ? (float)mixed_value(images[start + c * p.inner], p.scale) : 0.0f;
        }
    }
    __device__ __forceinline__ void write(float* buffer) const {
        const int thread = own();
        int row, q;
#pragma unroll
        for (int i = 0; i < OF_FILTERS; ++i)
            if (filter_at(thread, i, row, q)) buffer[row * Filters::PITCH + Filters::place(q)] = filters[i];
#pragma unroll
        for (int i = 0; i < OF_PIXELS; ++i)
            if (pixel_at(thread, i, row, q)) buffer[STAGED * Filters::PITCH + row * Pixels::PITCH + Pixels::place(q)] = pixels[i];
    }
};

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
    const int warp_f = warp % WARPS_FILTERS, warp_p = warp / WARPS_FILTERS;
    const int filter = (int)blockIdx.x % filter_blocks * BLOCK_FILTERS;
    const int first_tile = (int)blockIdx.x / filter_blocks * tiles_a_block;
    const int all_tiles = (p.pixels + BLOCK_PIXELS - 1) / BLOCK_PIXELS;
    const int last_tile = first_tile + tiles_a_block < all_tiles ? first_tile + tiles_a_block : all_tiles;

    float *present = buffers, *following = buffers + BUFFER_FLOATS;
    PixelStarts starts;
    const int start_lane = INTERLEAVED ? lane / 8 : lane;
    Fetched fetched;
    if constexpr (REGISTER_STAGING) {
        fetched.read(p, images, matrix, first_tile, filter, 0);
        fetched.write(present);
    } else {
        starts.find(p, first_tile, start_lane);
        stage_step(p, present, images, matrix, starts, filter, 0);
    }
    int beyond = 0;
    constexpr int AT_ONCE = THREAD_FILTERS * THREAD_PIXELS <= 64 ? ROUNDS : 1;  // more would not stay in registers
#pragma unroll 1
    for (int tile = first_tile; tile < last_tile; ++tile) {
        Sum sum[THREAD_FILTERS * THREAD_PIXELS];
#pragma unroll
        for (int i = 0; i < THREAD_FILTERS * THREAD_PIXELS; ++i) sum[i] = 0;
#pragma unroll 1
        for (int channel = 0; channel < p.channels; channel += STAGED) {
            if constexpr (!REGISTER_STAGING) staged();
            __syncthreads();
            const bool tile_ends = channel + STAGED >= p.channels, goes_on = !tile_ends || tile + 1 < last_tile;
            const int next_channel = tile_ends ? 0 : channel + STAGED;
            if constexpr (REGISTER_STAGING) {
                if (goes_on) fetched.read(p, images, matrix, tile + tile_ends, filter, next_channel);
            } else {
                if (tile_ends && tile + 1 < last_tile) starts.find(p, tile + 1, start_lane);
                if (goes_on) stage_step(p, following, images, matrix, starts, filter, next_channel);
            }
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
            if constexpr (REGISTER_STAGING) {
                if (goes_on) fetched.write(following);
            }
            float* done = present;
            present = following;
            following = done;
        }

        typedef WarpReduce<THREAD_FILTERS * THREAD_PIXELS, CHANNEL_COUNT / 2> Reduction;
        Reduction::run(sum, lane);
#pragma unroll
        for (int i = 0; i < Reduction::KEPT; ++i) {
            const int which = Reduction::index(i, lane), own_f = which / THREAD_PIXELS, own_p = which % THREAD_PIXELS;
            const int in_warp_f = own_f + (LAYOUT == 1 ? group * THREAD_FILTERS : 0);
            const int in_warp_p = own_p + (LAYOUT == 2 ? group * THREAD_PIXELS : 0);
            const int f = filter + warp_f * WARP_FILTERS + in_warp_f;
            if (which < 0 || in_warp_f >= WARP_FILTERS || in_warp_p >= WARP_PIXELS || f >= p.filters) continue;
            const int pixel = tile * BLOCK_PIXELS + warp_p * WARP_PIXELS + in_warp_p;
            const int start = pixel_start(p, pixel, p.filters);
            if (start >= 0) results[start + f * p.inner] = Stored<Result>::from(sum[i], beyond);
        }
    }
    add_count(clipped, beyond);
}
