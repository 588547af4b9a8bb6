// Windows of shifts on tensor cores for many frames compared with one reference: 64 frames are the rows of a product,
// on sm_90a.
//
// For a row y of 64 frames and the columns x of a panel, with shifts ey, ex of the reference over the frames:
//     sums[frame][ey, ex] += sum over x of frame[y][x] * reference[y + ey][x + ex]      (zero outside a matrix)
// A contains the frames unchanged. B is a Hankel matrix of the reference, in which each column begins one element after
// the previous one; to_fp16_hankel.cu has written each element eight times, so that the tensor cores read B from shared
// memory as well: eight neighbouring positions of a row are eight ex, successive rows of the reference are successive
// ey. A warpgroup (four warps) sums 8 ex x N_TILES ey of all frames in one product of 64 x 8 N_TILES, and EX_TILES
// groups share the frames: an element of a frame is read, converted to fp16 and stored once for 8 EX_TILES x N_TILES
// shifts, and no fragment is assembled.
//
// A block advances down the rows of a panel of PANEL columns. Its warps have two roles. Consumer warps: EX_TILES groups
// of four only start products and wait for them. Producer warps: SETS sets of SET_WARPS read rows of the frames
// round-robin: a set fetches a row SETS rows ahead, converts it to fp16 in one of FRAME_BUFFERS buffers, and copies the
// one row of the reference that this row is the first to need. Mbarriers (mbarrier.cuh) tell the consumers that a
// buffer is full, and the producers that its products have finished. The rows of the reference are in a ring buffer
// whose first rows are repeated after its last, so that the rows needed are contiguous wherever they begin. Sums go to
// a workspace, where sum_frames.cu adds the pieces of different blocks.
// Tensor cores truncate sums: a piece ends after at most 2048 products, which the launcher ensures.
//
// Document: docs/tensor_cores.md, "Sixty-four frames per product". Floor: the rate of `wgmma`, whose operands take 96
// of 128 clocks of shared memory at N_TILES 16, 80 at 32; frames are read (from memory, or the cache) for every N_TILES
// ey and 8 EX_TILES ex. Of 0.8 us a frame of 512 x 512 at 32 x 32 shifts the products alone take 0.66 (H200).
#ifndef FRAMES_ARE_LEFT
#define FRAMES_ARE_LEFT 0  // 1: the lefts are paired with the only right; 0: rights with the left that they share
#endif
#ifndef N_TILES
#define N_TILES 32  // ey of a tile of the window: 8, 11, 16, 17, 24 or 32
#endif
#ifndef EX_TILES
#define EX_TILES 2  // groups of four warps: 8 ex each
#endif
#ifndef PANEL
#define PANEL 64  // columns: 32, 64 or 128
#endif
#ifndef SETS
#define SETS 4  // of producer warps that read rows of the frames
#endif
#ifndef SET_WARPS
#define SET_WARPS 1
#endif
#ifndef FRAME_BUFFERS
#define FRAME_BUFFERS 4
#endif
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"
#include "scaling.cuh"
#define COLUMNS 4
#include "vector_access.cuh"
#include "packed.cuh"
#include "mma_fp16.cuh"
#include "wgmma_shared.cuh"
#include "mbarrier.cuh"

#if FRAMES_ARE_LEFT
typedef Left Element;
#else
typedef Right Element;
#endif
#define FRAMES_OF(lefts, rights) (FRAMES_ARE_LEFT ? (const Element*)lefts : (const Element*)rights)

constexpr int FRAMES = 64, MULTIPLYING = 128 * EX_TILES, SET = 32 * SET_WARPS, THREADS = MULTIPLYING + SETS * SET;
constexpr int SUMS = 4 * N_TILES, ALL = MULTIPLYING * SUMS;
constexpr int VECTORS = PANEL / 4, AT_ONCE = SET / VECTORS, PASSES = FRAMES / AT_ONCE;  // a set takes so many frames at once
// Words. Rows of 8 columns of the frames are contiguous; the next 8 columns are placed so that stores have no bank conflicts.
constexpr int CHUNK = 4 * FRAMES + (PANEL < 64 ? 8 : 4), FRAME_BUFFER = PANEL / 8 * CHUNK;
constexpr int PLACES = PANEL + 8 * (EX_TILES - 1), ROW = 4 * PLACES;
// As the copy of a row of the reference begins, products of FRAME_BUFFERS + SETS rows before may still read theirs.
constexpr int RING = N_TILES - 1 + FRAME_BUFFERS + SETS, RING_ROWS = RING + N_TILES - 1;
static_assert(PASSES * AT_ONCE == FRAMES, "threads share the frames evenly");
// A set has waited for the buffer of SETS rows before; the one that it waits for next may have been emptied once since.
static_assert(SETS <= FRAME_BUFFERS, "none is more than a turn late at an mbarrier");

// How a frame's elements are converted to fp16: element * factor + offset; the centre becomes zero.
struct __align__(16) Scale {
    float factor, offset, centre, unused;
};
// The rows of the reference that a block needs, `first` the first of them, from `place` on.
struct __align__(16) ReferenceRows {
    const unsigned* places;
    int first, height, place, pitch, unused[2];
    // Starts the copy of row `index` of these into the ring: COUNT threads copy 16 bytes at a time.
    template <int COUNT>
    __device__ __forceinline__ void start(unsigned* ring, int index, int thread) const {
        const int slot = (int)((unsigned)index % RING), y = first + index;
        unsigned* const to = ring + slot * ROW;
#pragma unroll
        for (int pass = 0; pass < (PLACES + COUNT - 1) / COUNT; ++pass) {
            const int i = pass * COUNT + thread, x = place + i;
            if (i >= PLACES) break;
            const bool inside = (unsigned)y < (unsigned)height && (unsigned)x < (unsigned)pitch;
            const unsigned* from = places + (inside ? 4 * ((long long)y * pitch + x) : 0);
            copy_four_words(to + 4 * i, from, inside);
            if (slot < N_TILES - 1) copy_four_words(to + RING * ROW + 4 * i, from, inside);
        }
    }
};
// Of a block. It lies in shared memory before the ring and the buffers, as registers are for sums and elements.
struct SharedStorage {
    ReferenceRows reference;
    Scale scale[FRAMES];
    Mbarrier filled[FRAME_BUFFERS], emptied[FRAME_BUFFERS];
};

struct __align__(8) TwoWords {
    unsigned first, second;
};

// Keeps the compiler from making places of all passes beforehand: they would take the registers of elements.
__device__ __forceinline__ void keep_place(long long& place) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+l"(place));
#endif
}

// A thread's float4s of a row of the frames, of every AT_ONCE-th frame.
struct FrameQuads {
    Packed<Element> vector[PASSES];
    // All elements become what `keep` makes zero of: there they stay where frames or columns end.
    __device__ __forceinline__ void clear(const Scale* scale) {
#pragma unroll
        for (int i = 0; i < PASSES; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) vector[i].set(e, (Element)scale[i * AT_ONCE].centre);
    }
    // `place`: of the first frame's; `stride`: from a pass to the next; `passes` of frames that exist, `columns` from the
    // first element to the row's end. `wide`: rows are whole float4s.
    __device__ __forceinline__ void fetch(const Element* all, long long place, long long stride, int passes, int columns,
                                          bool wide) {
#pragma unroll
        for (int i = 0; i < PASSES; ++i) {
            if (wide) {
                if (i < passes) vector[i] = *reinterpret_cast<const Packed<Element>*>(all + place);
            } else {
                if (i >= passes) break;
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (e < columns) vector[i].set(e, all[place + e]);
            }
            place += stride;
            keep_place(place);
        }
    }
    // `to`, `scale`: the first frame's.
    __device__ __forceinline__ void keep(unsigned* to, const Scale* scale) const {
#pragma unroll
        for (int i = 0; i < PASSES; ++i) {
            const float factor = scale[i * AT_ONCE].factor, offset = scale[i * AT_ONCE].offset;
            float value[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) value[e] = fmaf(vector[i].as_float(e), factor, offset);
            const TwoWords words = {half_pair(value[0], value[1]), half_pair(value[2], value[3])};
            *reinterpret_cast<TwoWords*>(to + i * AT_ONCE * 4) = words;
        }
    }
};

// What a set of warps does: every SETS-th row, from `row` on. `place`: of the first frame's first column in the block's
// first row; `frames` and `columns`: that exist from there on.
__device__ __forceinline__ void produce_rows(SharedStorage& storage, unsigned* ring, unsigned* buffers, const Element* all,
                                             long long place,
                                           int height, int width, int frames, int columns, int row, int rows, int thread) {
    const int own_frame = thread / VECTORS, own_quad = thread % VECTORS;
    const bool wide = width % 4 == 0 && is_aligned(all);
    columns -= 4 * own_quad;
    const int passes = columns > 0 ? ceil_div(max(0, frames - own_frame), AT_ONCE) : 0;
    const long long stride = (long long)AT_ONCE * height * width;
    place += ((long long)own_frame * height + row) * width + 4 * own_quad;
    const Scale* const scale = storage.scale + own_frame;
    unsigned* const kept = buffers + own_quad / 2 * CHUNK + own_frame * 4 + own_quad % 2 * 2;
    FrameQuads next;
    next.clear(scale);
    if (row < rows) {
        next.fetch(all, place, stride, passes, columns, wide);
        storage.reference.start<SET>(ring, row + N_TILES - 1, thread);
    }
#pragma unroll 1
    for (; row < rows; row += SETS) {
        const int buffer = (int)((unsigned)row % FRAME_BUFFERS);
        if (row >= FRAME_BUFFERS) await_mbarrier(&storage.emptied[buffer], row / FRAME_BUFFERS - 1);
        next.keep(kept + buffer * FRAME_BUFFER, scale);
        staged();
        publish_to_products();
        arrive_at_mbarrier(&storage.filled[buffer]);
        place += (long long)SETS * width;
        if (row + SETS < rows) {
            next.fetch(all, place, stride, passes, columns, wide);
            storage.reference.start<SET>(ring, row + SETS + N_TILES - 1, thread);
        }
    }
}

// What a group of four warps does: sums over all rows. `ring`: from the group's first ex on.
__device__ __forceinline__ void multiply_rows(float (&sum)[SUMS], SharedStorage& storage, const unsigned* ring,
                                              const unsigned* buffers,
                                              int rows) {
    const Operand first = operand_at(ring, 128, 4 * ROW);
#pragma unroll 1
    for (int row = 0; row < rows; ++row) {
        const int buffer = (int)((unsigned)row % FRAME_BUFFERS), before = (int)((unsigned)(row - 1) % FRAME_BUFFERS);
        const Operand frames = operand_at(buffers + buffer * FRAME_BUFFER, 4 * CHUNK, 128);
        const Operand reference = moved(first, (int)((unsigned)row % RING) * PLACES);
        await_mbarrier(&storage.filled[buffer], row / FRAME_BUFFERS);
        open_products();
#pragma unroll
        for (int k = 0; k < PANEL / 16; ++k)
            multiply_add_shared(sum, moved(frames, k * (CHUNK / 2)), moved(reference, k * 16));
        close_products();
        await_products_but<1>();  // those of the row before have ended
        if (row > 0) arrive_at_mbarrier(&storage.emptied[before]);
    }
    await_products();
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    hankel_frames(const Left* lefts, const Right* rights_of_all, const unsigned* reference_places, float* workspace,
                  const Moments* left_tables, const Moments* right_tables, PROBLEM_PARAMETERS, int left_cells,
                  int right_cells, int tiles_y, int tiles_x, int panels, int segments, int segment_rows) {
    SHARED_FLOATS(shared);
    SharedStorage& storage = *reinterpret_cast<SharedStorage*>(shared);
    unsigned* const ring = reinterpret_cast<unsigned*>(shared) + sizeof(SharedStorage) / 4;
    unsigned* const buffers = ring + RING_ROWS * ROW;
    // The same in all lanes, and the compiler knows.
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0), lane = (int)threadIdx.x % 32;

    // Which shifts of which frames, and which piece of them. Blocks that read the same elements are neighbours.
    const int tiles = tiles_y * tiles_x, pieces = panels * segments;
    const int tile = (int)blockIdx.x % tiles, part = (int)blockIdx.x / tiles, piece = part % pieces, bundle = part / pieces;
    const int of_one = FRAMES_ARE_LEFT ? pairs : rights_per_left;  // frames of a reference
    const int bundles = ceil_div(of_one, FRAMES), one = bundle / bundles, first_frame = (bundle - one * bundles) * FRAMES;
    const int height = FRAMES_ARE_LEFT ? left_height : right_height, width = FRAMES_ARE_LEFT ? left_width : right_width;
    const int one_height = FRAMES_ARE_LEFT ? right_height : left_height;
    const int one_width = FRAMES_ARE_LEFT ? right_width : left_width;
    // Shifts of a right over its left have the other sign.
    const int first_ey = (FRAMES_ARE_LEFT ? 1 - shift_y0 - shifts_y : shift_y0) + tile / tiles_x * N_TILES;
    const int first_ex = (FRAMES_ARE_LEFT ? 1 - shift_x0 - shifts_x : shift_x0) + tile % tiles_x * (8 * EX_TILES);
    const int row_first = max(0, 1 - first_ey - N_TILES) + piece / panels * segment_rows;
    const int row_last = min(min(height, one_height - first_ey), row_first + segment_rows);
    const int column_first = (max(0, 1 - first_ex - 8 * EX_TILES) & ~7) + piece % panels * PANEL;
    const int column_last = min(width, one_width - first_ex);
    const int rows = column_first < column_last ? max(0, row_last - row_first) : 0;
    const int first_of_all = (FRAMES_ARE_LEFT ? 0 : one * rights_per_left % rights) + first_frame;

    if ((int)threadIdx.x < FRAMES) {
        const int frame = first_of_all + min((int)threadIdx.x, of_one - first_frame - 1);
        const Moments* const tables = FRAMES_ARE_LEFT ? left_tables : right_tables;
        const Moments whole = tables[(long long)(frame + 1) * (FRAMES_ARE_LEFT ? left_cells : right_cells) - 1];
        const Scaling scaling = scaling_of<!IsFloat<Element>::VALUE>(whole, (double)height * width);
        const Scale scale = {scaling.factor, -(scaling.centre + magic<Element>()) * scaling.factor, scaling.centre, 0.0f};
        storage.scale[threadIdx.x] = scale;
    }
    if ((int)threadIdx.x < FRAME_BUFFERS) {
        make_mbarrier(&storage.filled[threadIdx.x], SET);
        make_mbarrier(&storage.emptied[threadIdx.x], MULTIPLYING);
    }
    const ReferenceRows reference = {reference_places + 4 * ((long long)one * one_height * (one_width + 7)),
                                     row_first + first_ey, one_height, column_first + first_ex + 7, one_width + 7, {}};
    if (threadIdx.x == 0) storage.reference = reference;
    if (rows > 0)
        for (int index = warp; index < N_TILES - 1; index += THREADS / 32) reference.start<32>(ring, index, lane);
    staged();
    publish_to_products();
    __syncthreads();

    if (warp >= MULTIPLYING / 32) {
        const int set = (warp - MULTIPLYING / 32) / SET_WARPS, thread = (int)threadIdx.x - MULTIPLYING - set * SET;
        const long long place = ((long long)first_of_all * height + row_first) * width + column_first;
        produce_rows(storage, ring, buffers, FRAMES_OF(lefts, rights_of_all), place, height, width, of_one - first_frame,
                   width - column_first, set, rows, thread);
        return;
    }
    float sum[SUMS] = {};
    multiply_rows(sum, storage, ring + warp / 4 * 32, buffers, rows);
    float4* const to = reinterpret_cast<float4*>(workspace) +
                       ((long long)(bundle * tiles + tile) * pieces + piece) * (ALL / 4) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < N_TILES; ++i) {
        const float4 four = {sum[4 * i], sum[4 * i + 1], sum[4 * i + 2], sum[4 * i + 3]};
        to[i * MULTIPLYING] = four;
    }
}
