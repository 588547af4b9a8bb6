// Products with few input values per result (DEPTH = channels * filter height * filter width, up to about 64) and many
// filters.
//
// A thread computes a patch of PIXELS_X x PIXELS_Y neighbouring results, and holds in registers all input values that
// they need: windows of neighbours overlap, so that a 3x3 filter of three channels needs 72 values for eight results,
// not 216. It then loops over the filters of its block, GROUP at a time: every value is multiplied with the filters'
// elements, which are read from shared memory by 16-byte broadcasts, and the results go directly to the filters'
// planes. After the filters are staged there is no barrier: warps drift apart, and the stores of some overlap with the
// multiply-adds of others. Threads are numbered along rows, through planes and images, so that odd sizes fill warps
// too. Where there are too few columns to fill the device, blocks split the filters. A filter of one element
// (pointwise, stride 1) treats a plane as PIXELS_Y rows of any width: the last may be shorter.
//
// Each sum is formed by one thread in the order of K (channel, filter column, filter row), as in the tiled product of
// `product_tile.cuh` without segments: the same bits.
//
// For windows, patches one row high are the fastest where writing results costs more than multiply-adds: their warps
// write contiguous runs of a plane, while those of taller patches write row segments that begin and end within cache
// lines.
//
// Document: none; the limiting case, with one level, of Im2win's and pointwise convolution's tiles.
// Floor: the copy rate, mostly of the results, up to a depth of about 32; the FMA rate beyond. Layer 7 of Im2win on an
// H200, 1.7 GB and 10.9 G multiply-adds: 2 x 1 results, eight filters at once, 607 us; 2 x 2 786, 2 x 4 946; writing
// alone takes 374 to 409.
#include "mix.cuh"
#include "shared_tile.cuh"

#ifndef CHANNELS
#define CHANNELS 3
#endif
#ifndef FILTER_HEIGHT
#define FILTER_HEIGHT 3
#endif
#ifndef FILTER_WIDTH
#define FILTER_WIDTH 3
#endif
#ifndef STRIDE
#define STRIDE 1
#endif
#ifndef PIXELS_X
#define PIXELS_X 2  // results of a thread along a row
#endif
#ifndef PIXELS_Y
#define PIXELS_Y 4  // and rows of them
#endif
#ifndef GROUP
#define GROUP 4  // filters summed at once; a multiple of 4
#endif
#ifndef VECTOR_IN
#define VECTOR_IN 1  // elements of a row a load; divides SPAN
#endif
#ifndef VECTOR_OUT
#define VECTOR_OUT 1  // results a store: PIXELS_X, or 1
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#ifndef BANK
#define BANK 0  // 1: filters as a bank holds them, [filters][channels][FILTER_HEIGHT][FILTER_WIDTH]; 0: a matrix [DEPTH][pitch]
#endif

#define DEPTH (CHANNELS * FILTER_HEIGHT * FILTER_WIDTH)
#define GROUP_PITCH ((DEPTH | 1) * GROUP)  // of the filters in shared memory: odd, so that staging has few bank conflicts
#define ROWS ((PIXELS_Y - 1) * STRIDE + FILTER_HEIGHT)  // of the images that a thread reads
#define SPAN ((PIXELS_X - 1) * STRIDE + FILTER_WIDTH)   // and their elements

static_assert(GROUP % 4 == 0, "filters are read four at a time");
static_assert(SPAN % VECTOR_IN == 0 && PIXELS_X % VECTOR_OUT == 0, "a thread moves whole vectors");

struct Shallow {
    int filters, pitch;          // filters; elements of a row of the matrix
    int patches, columns, rows;  // patches in all; along a row and down a plane
    int width, channel;          // elements of a row and of a channel of the images
    int out_width, plane;        // elements of a row and of a plane of the results
    float scale;                 // 1 / white, for DENSITY
};

// Filters [m_first, m_last) as [group][DEPTH][GROUP]; zeros for what fills the last group.
__device__ __forceinline__ void stage_filters(float* to, const float* matrix, const Shallow& p, int m_first, int m_last) {
    if constexpr (BANK) {
        // A thread keeps its element of K; where there are fewer than threads, those left over take the next filters.
        constexpr int AT_ONCE = THREADS > DEPTH ? THREADS / DEPTH : 1, TAPS = FILTER_HEIGHT * FILTER_WIDTH;
        const int own = threadIdx.x / DEPTH;
        if (own >= AT_ONCE) return;
        const int count = (m_last - m_first + GROUP - 1) / GROUP * GROUP;
        for (int i = (int)threadIdx.x - own * DEPTH; i < DEPTH; i += THREADS) {
            const int tap = i % TAPS, k = i - tap + tap % FILTER_WIDTH * FILTER_HEIGHT + tap / FILTER_WIDTH;
            const float* from = matrix + (long long)m_first * DEPTH + i;
            for (int m = own; m < count; m += AT_ONCE)
                copy_float(to + m / GROUP * GROUP_PITCH + k * GROUP + m % GROUP, from + m * DEPTH, m_first + m < p.filters);
        }
        return;
    }
    const int fours = (m_last - m_first + GROUP - 1) / GROUP * (GROUP / 4);
    for (int i = threadIdx.x; i < fours * DEPTH; i += THREADS) {
        const int k = i / fours, m = (i - k * fours) * 4;
        const bool exists = m_first + m < p.pitch;
        const float* from = matrix + (exists ? k * p.pitch + m_first + m : 0);
        copy_four(to + m / GROUP * GROUP_PITCH + k * GROUP + m % GROUP, from, exists);
    }
}

// The same address, of which the compiler knows nothing: it would keep one for every store in registers through the loop.
__device__ __forceinline__ Result* unknown(Result* address) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+l"(address));
#endif
    return address;
}

// Ends a sum here. With a branch after it the compiler leaves the multiply-adds in the order of k; it would move them to the
// sums' stores, filter after filter, and hold all filters' elements in registers for that.
__device__ __forceinline__ void end_sum(float& sum) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+f"(sum));
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    shallow(const Image* images, Result* results, unsigned long long* clipped, const float* matrix,
            const __grid_constant__ Shallow p, int share) {
    SHARED_FLOATS(filters);
    // Shares of the filters (whole groups) fastest: the blocks that read the same pixels run at the same time.
    const int shares = (p.filters + share - 1) / share, tile = (int)blockIdx.x / shares;
    const int m_first = ((int)blockIdx.x - tile * shares) * share;
    const int m_last = m_first + share < p.filters ? m_first + share : p.filters;
    stage_filters(filters, matrix, p, m_first, m_last);

    const int patch = tile * THREADS + (int)threadIdx.x;
    const bool exists = patch < p.patches;  // one that does not reads the first one's values
    const int line = exists ? patch / p.columns : 0, image = line / p.rows;
    const int y = (line - image * p.rows) * PIXELS_Y, x = exists ? (patch - line * p.columns) * PIXELS_X : 0;

    // What lies beyond the plane is read as its last elements are; the sums that it enters are not stored.
    typedef Pack<Image, VECTOR_IN> ImagePack;
    Sum value[CHANNELS][ROWS][SPAN];
    const Image* from = images + (long long)image * CHANNELS * p.channel;
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
#pragma unroll
        for (int v = 0; v < SPAN; v += VECTOR_IN) {
            const int at = (y * STRIDE + r) * p.width + x * STRIDE + v, last = p.channel - VECTOR_IN;
            const Image* channel = from + (at < last ? at : last);
#pragma unroll
            for (int c = 0; c < CHANNELS; ++c, channel += p.channel) {
                const ImagePack pack = *reinterpret_cast<const ImagePack*>(channel);
#pragma unroll
                for (int i = 0; i < VECTOR_IN; ++i) value[c][r][v + i] = mixed_value(pack.at[i], p.scale);
            }
        }

    bool stored[PIXELS_Y][PIXELS_X / VECTOR_OUT];
#pragma unroll
    for (int j = 0; j < PIXELS_Y; ++j)
#pragma unroll
        for (int i = 0; i < PIXELS_X / VECTOR_OUT; ++i) {
            const int column = x + i * VECTOR_OUT;
            stored[j][i] = column < p.out_width && (y + j) * p.out_width + column < p.plane;
        }
    Result* to = results + ((long long)image * p.filters + m_first) * p.plane + y * p.out_width + x;

    staged();
    __syncthreads();
    const float* group = filters;
    int beyond = 0;
#pragma unroll 1
    for (int m = m_first; m < m_last; m += GROUP, group += GROUP_PITCH) {
        Sum sum[GROUP][PIXELS_Y][PIXELS_X];
#pragma unroll
        for (int g = 0; g < GROUP; ++g)
#pragma unroll
            for (int j = 0; j < PIXELS_Y; ++j)
#pragma unroll
                for (int i = 0; i < PIXELS_X; ++i) sum[g][j][i] = 0;
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            const int c = k / (FILTER_HEIGHT * FILTER_WIDTH), tap = k % (FILTER_HEIGHT * FILTER_WIDTH);
            const int u = tap % FILTER_HEIGHT, v = tap / FILTER_HEIGHT;
#pragma unroll
            for (int vec4 = 0; vec4 < GROUP; vec4 += 4) {
                const Four four = load_four(group + k * GROUP + vec4);
#pragma unroll
                for (int g = 0; g < 4; ++g)
#pragma unroll
                    for (int j = 0; j < PIXELS_Y; ++j)
#pragma unroll
                        for (int i = 0; i < PIXELS_X; ++i)
                            sum[vec4 + g][j][i] =
                                fused(four.at[g], value[c][j * STRIDE + u][i * STRIDE + v], sum[vec4 + g][j][i]);
            }
        }
#pragma unroll
        for (int i = 0; i < GROUP * PIXELS_Y * PIXELS_X; ++i) end_sum((&sum[0][0][0])[i]);
        if (!exists) continue;
#pragma unroll
        for (int g = 0; g < GROUP; ++g) {
            Result* row = unknown(to);
#pragma unroll
            for (int j = 0; j < PIXELS_Y; ++j, row += p.out_width)
#pragma unroll
                for (int i = 0; i < PIXELS_X / VECTOR_OUT; ++i) {
                    Pack<Result, VECTOR_OUT> pack;
                    int beyond_here = 0;
#pragma unroll
                    for (int e = 0; e < VECTOR_OUT; ++e)
                        pack.at[e] = Stored<Result>::from(sum[g][j][i * VECTOR_OUT + e], beyond_here);
                    const bool wanted = stored[j][i] && m + g < m_last;
                    beyond += wanted ? beyond_here : 0;  // without a branch: it would draw multiply-adds after it
                    if (wanted) store_pack(row + i * VECTOR_OUT, pack);
                }
            to += p.plane;
        }
    }
    add_count(clipped, beyond);
}
