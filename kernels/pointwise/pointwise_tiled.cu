// Pointwise convolution as an ordinary tiled matrix product, for more channels than `mix.cu` holds: float in and out.
//
// For the product itself and its tunables see `product_tile.cuh`; filters are its rows, the pixels of all images its
// columns, so that planes of 49 pixels fill tiles too, and channels its K. WIDE 1 copies four neighbouring pixels at
// once (plane sizes that are multiples of 4, aligned to 16 bytes); 0 copies single ones. INTERLEAVED 1: eight
// neighbouring lanes read as many channels of a pixel.
// PLANE: the channels of a small plane of any size are contiguous, so that TILE_K of them are copied 16 bytes at a time
// whatever its size (channels and filters are multiples of 4; stack and result are aligned to 16 bytes); a block
// processes whole planes. Where there are too few tiles to fill the device, groups of a block's warps split the
// channels (WARPS_K), or blocks do: each sums `segment_tiles` tiles of them, the first into the result, the others into
// a workspace that `add_segments.cu` adds to it in order.
// Both give the same bits in every run.
//
// Document: none; it shows how much the tiles of `pointwise.cu` gain.
// Floor: the larger of the FMA rate and the copy rate.
#include "pointwise.cuh"
#include "product_sum.cuh"

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
constexpr bool SOME_IDLE = ROWS_AT_ONCE * ACROSS_AT_ONCE < THREADS;  // no whole row of copies is left for the last threads
static_assert(!(WIDE && INTERLEAVED), "four neighbouring pixels are no neighbours in memory");
static_assert(!(PLANE && INTERLEAVED), "interleaved channels have no planes");

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
            const int n = n_first + column(j) * EACH, last = p.pixels - EACH, pixel = n < last ? n : last;
            const int start = p.pixels == p.inner ? pixel : pixel_start(p, pixel, p.channels);  // a division less
            from[j] = (unsigned)start + (unsigned)(k * inner);
        }
    }
    __device__ __forceinline__ int row() const {
        return INTERLEAVED ? (int)threadIdx.x % ROWS_AT_ONCE : (int)threadIdx.x / ACROSS_AT_ONCE;
    }
    __device__ __forceinline__ int column(int j) const {
        return (INTERLEAVED ? (int)threadIdx.x / ROWS_AT_ONCE : (int)threadIdx.x % ACROSS_AT_ONCE) + j * ACROSS_AT_ONCE;
    }
    __device__ __forceinline__ bool is_idle() const {
        return SOME_IDLE && (INTERLEAVED ? column(0) >= ACROSS_AT_ONCE : row() >= ROWS_AT_ONCE);
    }
    __device__ __forceinline__ void next(float* buffer) {
        filters.next(buffer);
        float* to = buffer + TILE_K * PITCH_M + row() * PITCH_N;
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int further = i * ROWS_AT_ONCE;
            if (is_idle() || (TILE_K % ROWS_AT_ONCE && row() + further >= TILE_K)) continue;
            const bool inside = k + further < depth;
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                if (COPIES_ACROSS % ACROSS_AT_ONCE && column(j) >= COPIES_ACROSS) continue;
                const float* at = source + (from[j] + (unsigned)(further * inner));  // not read where it is not inside
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

// Copies TILE_K channels of whole planes, image by image.
struct PlaneCopies {
    static constexpr int FOURS = TILE_K * PLANE / 4, COPIES = (IMAGES * FOURS + THREADS - 1) / THREADS;
    FilterCopies filters;
    const float* from;
    int left, pitch, images;  // floats of an image from here on and altogether, images from the block's first

    __device__ __forceinline__ PlaneCopies(const Pointwise& p, const float* stack, const float* matrix, int m_first,
                                           int n_first, int first)
        : filters(matrix, p.pitch, m_first, first), from(stack + (unsigned)n_first * p.channels + first * PLANE),
          left((p.channels - first) * PLANE), pitch(p.channels * PLANE), images((p.pixels - n_first) / (PLANE + !PLANE)) {}
    __device__ __forceinline__ void next(float* buffer) {
        filters.next(buffer);
#pragma unroll
        for (int i = 0; i < COPIES; ++i) {
            const int four = threadIdx.x + i * THREADS, image = IMAGES == 1 ? 0 : four / (FOURS + !FOURS);
            if (i + 1 == COPIES && IMAGES * FOURS % THREADS && four >= IMAGES * FOURS) break;
            const int at = (four - image * FOURS) * 4;
            const bool inside = at < left && (IMAGES == 1 || image < images);
            copy_four(buffer + TILE_K * PITCH_M + four * 4, from + (image * pitch + at), inside);  // nor is this one
        }
        from += TILE_K * PLANE;
        left -= TILE_K * PLANE;
    }
};

template <bool PLANES>
struct CopiesOf {
    using Type = PixelCopies;
};
template <>
struct CopiesOf<true> {
    using Type = PlaneCopies;
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    pointwise_tiled(const float* images, float* results, float* workspace, const float* matrix, const Pointwise p,
                    int segment_tiles) {
    SHARED_FLOATS(buffers);  // BUFFERS tiles, later at least MICRO_N floats a thread, or the groups' sums
    constexpr int COLUMNS_OF_BLOCK = PLANE ? IMAGES * PLANE : TILE_N;
    // Tiles of filters fastest: the blocks that share pixels run at the same time.
    const int m_tiles = (p.filters + TILE_M - 1) / TILE_M, n_tiles = (p.pixels + COLUMNS_OF_BLOCK - 1) / COLUMNS_OF_BLOCK;
    // Divisions come before the first copy: none where the answer is zero.
    const int tile = (int)blockIdx.x < m_tiles ? 0 : (int)blockIdx.x / m_tiles;
    const int segment = tile < n_tiles ? 0 : tile / n_tiles;
    const int m_first = ((int)blockIdx.x - tile * m_tiles) * TILE_M, n_first = (tile - segment * n_tiles) * COLUMNS_OF_BLOCK;
    const int tiles = (p.channels + TILE_K - 1) / TILE_K - segment * segment_tiles;
    const TilePlace place = tile_place();

    float sum[MICRO_M][MICRO_N];
    typename CopiesOf<(PLANE > 0)>::Type copies(p, images, matrix, m_first, n_first, segment * segment_tiles * TILE_K);
    multiply_depth(copies, buffers, tiles < segment_tiles ? tiles : segment_tiles, place, sum);
    float* to = segment == 0 ? results : workspace + (segment - 1) * ((long long)p.pixels * p.filters);
    if constexpr (WARPS_K > 1 || PLANE > 0)
        store_added(to, p.filters, p.pixels, p.inner, buffers, m_first, n_first, place, sum);
    else
        store_sums<false>(to, p.filters, p.pixels, p.inner, p.inner, buffers, m_first, n_first, place, sum);
}
