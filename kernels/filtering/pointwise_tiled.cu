// Pointwise convolution as a plain tiled matrix product, for more channels than `mix.cu` holds: float in and out.
//
// The product itself and its tunables: `product_tile.cuh`; filters are its rows, the pixels of all images its columns, so that
// planes of 49 pixels fill tiles too, and channels its K. WIDE 1 copies four neighbouring pixels at once (planes of whole
// fours that begin on 16 bytes); 0 copies single ones. INTERLEAVED 1: eight neighbouring lanes read as many channels of a pixel.
// Where tiles are too few to fill a device, blocks share the channels: each sums `segment_tiles` tiles of them, the first into
// the result, the others into a workspace that `im2win_sum.cu` adds to it in order: the same bits in every run.
//
// Document: none; it shows what the tiles of `pointwise.cu` are worth.
// Floor: the larger of the FMA rate and the copy rate.
#include "pointwise.cuh"
#include "product_tile.cuh"

#ifndef WIDE
#define WIDE 1
#endif
#ifndef INTERLEAVED
#define INTERLEAVED 0
#endif

constexpr int EACH = WIDE ? 4 : 1;                // pixels a copy
constexpr int COPIES_ACROSS = TILE_N / EACH;      // of a row of the tile
// Rows that are copied at once; a thread keeps its columns.
constexpr int ROWS_AT_ONCE = INTERLEAVED ? 8 : THREADS >= COPIES_ACROSS ? THREADS / COPIES_ACROSS : 1;
constexpr int ACROSS_AT_ONCE = THREADS / ROWS_AT_ONCE < COPIES_ACROSS ? THREADS / ROWS_AT_ONCE : COPIES_ACROSS;
constexpr int COLUMNS = (COPIES_ACROSS + ACROSS_AT_ONCE - 1) / ACROSS_AT_ONCE;
constexpr int ROWS = (TILE_K + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
static_assert(!(WIDE && INTERLEAVED), "four neighbouring pixels are no neighbours in memory");

struct PixelCopies {
    FilterCopies filters;
    const float* source;
    unsigned from[COLUMNS];
    int inner, k, depth;

    __device__ __forceinline__ PixelCopies(const Pointwise& p, const float* images, const float* matrix, int m_first,
                                           int n_first, int first)
        : filters(matrix, p.pitch, m_first, first), source(images), inner(p.inner), k(first + row()), depth(p.channels) {
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
            // Pixels that do not exist are read as the last ones are; their sums are not stored.
            const int n = n_first + column(j) * EACH, last = p.pixels - EACH;
            from[j] = (unsigned)pixel_start(p, n < last ? n : last, p.channels) + (unsigned)(k * inner);
        }
    }
    __device__ __forceinline__ int row() const {
        return INTERLEAVED ? (int)threadIdx.x % ROWS_AT_ONCE : (int)threadIdx.x / ACROSS_AT_ONCE;
    }
    __device__ __forceinline__ int column(int j) const {
        return (INTERLEAVED ? (int)threadIdx.x / ROWS_AT_ONCE : (int)threadIdx.x % ACROSS_AT_ONCE) + j * ACROSS_AT_ONCE;
    }
    __device__ __forceinline__ void next(float* buffer) {
        filters.next(buffer);
        float* to = buffer + TILE_K * PITCH_M + row() * PITCH_N;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int further = i * ROWS_AT_ONCE;
            if ((TILE_K % ROWS_AT_ONCE || THREADS % ACROSS_AT_ONCE) && row() + further >= TILE_K) continue;
            const bool inside = k + further < depth;
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                if (COPIES_ACROSS % ACROSS_AT_ONCE && column(j) >= COPIES_ACROSS) continue;
                const float* at = source + (inside ? from[j] + (unsigned)(further * inner) : 0u);
                float* place = to + further * PITCH_N + column(j) * EACH;
                if constexpr (WIDE)
                    copy_four(place, at, inside);
                else
                    copy_float(place, at, inside);
            }
        }
        k += TILE_K;
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) from[j] += (unsigned)(TILE_K * inner);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    pointwise_tiled(const float* images, float* results, float* workspace, const float* matrix, const Pointwise p,
                    int segment_tiles) {
    SHARED_FLOATS(buffers);  // BUFFERS tiles, later at least MICRO_N floats a thread
    // Tiles of filters fastest: the blocks that share pixels run at the same time.
    const int m_tiles = (p.filters + TILE_M - 1) / TILE_M, n_tiles = (p.pixels + TILE_N - 1) / TILE_N;
    const int tile = (int)blockIdx.x / m_tiles, segment = tile / n_tiles;
    const int m_first = (int)blockIdx.x % m_tiles * TILE_M, n_first = (tile - segment * n_tiles) * TILE_N;
    const int tiles = (p.channels + TILE_K - 1) / TILE_K - segment * segment_tiles;
    const TilePlace place = tile_place();

    float sum[MICRO_M][MICRO_N];
    PixelCopies copies(p, images, matrix, m_first, n_first, segment * segment_tiles * TILE_K);
    multiply_depth(copies, buffers, tiles < segment_tiles ? tiles : segment_tiles, place, sum);
    float* to = segment == 0 ? results : workspace + (segment - 1) * ((long long)p.pixels * p.filters);
    store_sums(to, p.filters, p.pixels, p.inner, p.inner, buffers, m_first, n_first, place, sum);
}
