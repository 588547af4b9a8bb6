// Windows of shifts on tensor cores, by products of one warp: for any form, from sm_80 on.
//
// The mapping: `hankel.cuh`. A warp sums 16 M_TILES x 8 N_TILES shifts of a slid matrix, over its share of rows
// and columns. Rows come through shared memory, STEP_ROWS at a time, PANEL columns of
// them; those of the plain matrix stay in a ring until the window has passed.
//
//     SPLIT   1: half precision. 2: every value as the sum of two halves, three products; near single precision
//     FLUSH   1: sums of a row's share are added to others in single precision, as tensor cores cut sums off; 0: at the end
//
// Document: none; KERNELS.md, "correlation as a Hankel product". Floor: the rate of `mma.sync`, 315 TFMA/s on an H200;
// 153 of it at 32 x 32 shifts.
#ifndef TEAMS
#define TEAMS 1
#endif
#ifndef WARPS
#define WARPS 8  // of a team; a multiple of STEP_ROWS
#endif
#ifndef SPLIT
#define SPLIT 1
#endif
#ifndef FLUSH
#define FLUSH 0
#endif
#include "hankel.cuh"
#include "mma_fp16.cuh"

constexpr int PARTS = WARPS / STEP_ROWS, STEPS_K = PANEL / 16 / PARTS;
constexpr int RING = WINDOW + 2 * STEP_ROWS;  // rows of the plain matrix
constexpr int PLAIN_QUADS = PANEL / 4;
// Eight rows of the plain matrix are read at once: they begin 4 banks apart.
constexpr int PLAIN_WORDS = (PANEL / 2 + 31) / 32 * 32 + 4, PLAIN_PART = RING * PLAIN_WORDS;
constexpr int SLID_PART = MEMBERS * STEP_ROWS * SLID_ROW, SLID_BUFFER = SPLIT * SLID_PART;
static_assert(N_TILES % 2 == 0 && WINDOW % STEP_ROWS == 0 && WARPS % STEP_ROWS == 0 && PANEL % (16 * PARTS) == 0,
              "warps share the work evenly");
#include "hankel_warp.cuh"

// Shared memory: the work, rows as they come from memory, two buffers of slid rows, the ring.
constexpr int RAW_SLID_FLOATS = MEMBERS * STEP_ROWS * SLID_QUADS * 4, RAW_PLAIN_FLOATS = STEP_ROWS * PLAIN_QUADS * 4;

// Starts the copy of a quad to where this thread will look for it.
template <typename Element>
__device__ __forceinline__ void start(Quad<Element>* raw, const Element* matrix, const Rows& rows, int row, int column) {
    if (rows.has(row, column)) copy_quad(raw, matrix + rows.at(row, column));
}
// The four scaled elements, zero for those outside.
template <typename Element>
__device__ __forceinline__ Four arrived_quad(const Quad<Element>* raw, const Element* stack, const Source& source,
                                             const Rows& rows, int row, int column) {
    Four four = {{0.0f, 0.0f, 0.0f, 0.0f}};
    const Scaling scaling = source.scaling;
    if (rows.wide) {
        if (!rows.has(row, column)) return four;
        const Quad<Element> quad = *raw;
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] = ((float)quad.at[i] - scaling.centre) * scaling.factor;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
            if (rows.has(row, column + i))
                four.at[i] = ((float)stack[source.start + rows.at(row, column + i)] - scaling.centre) * scaling.factor;
    }
    return four;
}
__device__ __forceinline__ Four residues(const Four& four) {
    Four rest;
#pragma unroll
    for (int i = 0; i < 4; ++i) rest.at[i] = half_residue(four.at[i]);
    return rest;
}

// A thread's share of STEP_ROWS rows of the slid matrices. Item i: quad i % SLID_QUADS of a row; rows of one matrix follow.
constexpr int SLID_ITEMS = MEMBERS * STEP_ROWS * SLID_QUADS, PLAIN_ITEMS = STEP_ROWS * PLAIN_QUADS;

__device__ __forceinline__ void start_slid(Quad<Slid>* raw, const Slid* stack, const Source* sources, const Rows& rows) {
    if (!rows.wide) return;
#pragma unroll 1
    for (int i = threadIdx.x; i < SLID_ITEMS; i += THREADS) {
        const int row = i / SLID_QUADS;
        start(raw + i, stack + sources[row / STEP_ROWS].start, rows, row % STEP_ROWS, (i - row * SLID_QUADS) * 4);
    }
}
__device__ __forceinline__ void keep_slid(unsigned* buffer, const Quad<Slid>* raw, const Slid* stack,
                                          const Source* sources, const Rows& rows) {
#pragma unroll 1
    for (int i = threadIdx.x; i < SLID_ITEMS; i += THREADS) {
        const int row = i / SLID_QUADS, at = i - row * SLID_QUADS;
        Four four = arrived_quad(raw + i, stack, sources[row / STEP_ROWS], rows, row % STEP_ROWS, at * 4);
#pragma unroll
        for (int part = 0; part < SPLIT; ++part) {
            keep_shifted(buffer + part * SLID_PART + row * SLID_ROW + 2 * at, four, at > 0);
            if (SPLIT > 1) four = residues(four);
        }
    }
}

// The same of the plain matrix. `first`: place of the first row in the ring, if that had no end.
__device__ __forceinline__ void start_plain(Quad<Plain>* raw, const Plain* stack, const Source& source, const Rows& rows) {
    if (!rows.wide) return;
#pragma unroll 1
    for (int i = threadIdx.x; i < PLAIN_ITEMS; i += THREADS)
        start(raw + i, stack + source.start, rows, i / PLAIN_QUADS, i % PLAIN_QUADS * 4);
}
__device__ __forceinline__ void keep_plain(unsigned* ring, const Quad<Plain>* raw, const Plain* stack,
                                           const Source& source, const Rows& rows, int first) {
#pragma unroll 1
    for (int i = threadIdx.x; i < PLAIN_ITEMS; i += THREADS) {
        const int row = i / PLAIN_QUADS, at = i % PLAIN_QUADS;
        Four four = arrived_quad(raw + i, stack, source, rows, row, at * 4);
#pragma unroll
        for (int part = 0; part < SPLIT; ++part) {
            keep(ring + part * PLAIN_PART + (first + row) % RING * PLAIN_WORDS + 2 * at, four);
            if (SPLIT > 1) four = residues(four);
        }
    }
}

// Sums of one panel of PANEL columns.
__device__ __forceinline__ void sum_panel(const Work& work, const Slid* slids, const Plain* plains, Quad<Slid>* raw_slid,
                                          Quad<Plain>* raw_plain, unsigned* slid_buffers, unsigned* ring, int x, int team,
                                          int warp, int lane, WarpSums& sum, WarpSums& total) {
    const int slid_x = (x + work.first_ex) & ~3, begin = x + work.first_ex - slid_x + lane / 4 + lane % 4 * 2;
    const int own_row = warp % STEP_ROWS, own_words = warp / STEP_ROWS * (STEPS_K * 8);
    const int slid_word = begin % 2 * SLID_WORDS + begin / 2 + own_words + (team * STEP_ROWS + own_row) * SLID_ROW;
    const int plain_word = lane / 8 % 2 * 4 + own_words, own_ey = lane / 16 * 8 + lane % 8;

    // Counted from the first plain row of all, the row that ey n pairs with slid row `row_first + r` is r + WINDOW - n.
    Rows moving_rows = {work.row_last, work.slid_width, work.row_first, slid_x, work.slid_wide};
    Rows fixed_rows = {work.plain_height, work.fixed_width, work.row_first - work.first_ey - WINDOW, x, work.plain_wide};
    start_slid(raw_slid, slids, work.slid, moving_rows);
#pragma unroll 1
    for (int r = 0; r < WINDOW + STEP_ROWS; r += STEP_ROWS, fixed_rows.y += STEP_ROWS) {
        start_plain(raw_plain, plains, work.plain, fixed_rows);
        staged();
        keep_plain(ring, raw_plain, plains, work.plain, fixed_rows, r);
    }
    keep_slid(slid_buffers, raw_slid, slids, work.slid, moving_rows);
    __syncthreads();
#pragma unroll 1
    for (int done = 0;; done += STEP_ROWS) {
        moving_rows.y += STEP_ROWS;
        const bool more = moving_rows.y < moving_rows.height;
        if (more) {
            start_slid(raw_slid, slids, work.slid, moving_rows);
            start_plain(raw_plain, plains, work.plain, fixed_rows);
        }
        const unsigned* plain_row[N_TILES / 2];
#pragma unroll
        for (int n = 0; n < N_TILES / 2; ++n)
            plain_row[n] = ring + (done + own_row + WINDOW - n * 16 - own_ey) % RING * PLAIN_WORDS + plain_word;
        multiply_row(slid_buffers + done / STEP_ROWS % 2 * SLID_BUFFER + slid_word, plain_row, sum);
#if FLUSH
#pragma unroll
        for (int i = 0; i < SUMS; ++i) (&total[0][0][0])[i] += (&sum[0][0][0])[i];
        clear(sum);
#endif
        if (!more) break;
        staged();
        keep_slid(slid_buffers + (done / STEP_ROWS + 1) % 2 * SLID_BUFFER, raw_slid, slids, work.slid, moving_rows);
        keep_plain(ring, raw_plain, plains, work.plain, fixed_rows, WINDOW + done + STEP_ROWS);
        fixed_rows.y += STEP_ROWS;
        __syncthreads();
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    hankel(const Left* lefts, const Right* rights_of_all, float* planes, float* workspace, int* arrived,
           const Moments* left_tables, const Moments* right_tables, PROBLEM_PARAMETERS, int left_cells, int right_cells,
           int tiles_y, int tiles_x, int segments, int segment_rows) {
    SHARED_FLOATS(shared);
    Work& work = *reinterpret_cast<Work*>(shared);
    Quad<Slid>* const raw_slid = reinterpret_cast<Quad<Slid>*>(shared + WORK_FLOATS);
    Quad<Plain>* const raw_plain = reinterpret_cast<Quad<Plain>*>(shared + WORK_FLOATS + RAW_SLID_FLOATS);
    unsigned* const slid_buffers = reinterpret_cast<unsigned*>(shared + WORK_FLOATS + RAW_SLID_FLOATS + RAW_PLAIN_FLOATS);
    unsigned* const ring = slid_buffers + 2 * SLID_BUFFER;
    const int warp_of_all = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int team = warp_of_all / WARPS, warp = warp_of_all % WARPS;
    {
        const Problem p = PROBLEM_ARGUMENTS;
        const int plane_part = (int)blockIdx.x / segments, tiles = tiles_y * tiles_x;
        if (threadIdx.x == 0)
            describe(work, p, lefts, rights_of_all, left_tables, right_tables, left_cells, right_cells, plane_part % tiles,
                     plane_part / tiles, tiles_x, (int)blockIdx.x % segments, segment_rows);
    }
    __syncthreads();

    WarpSums sum, total;
    clear(sum);
    clear(total);
#pragma unroll 1
    for (int x = work.column_first; x < work.column_last; x += PANEL)
        sum_panel(work, SLIDS, PLAINS, raw_slid, raw_plain, slid_buffers, ring, x, team, warp, lane, sum, total);
#if FLUSH
    WarpSums& result = total;
#else
    WarpSums& result = sum;
#endif

    finish(work, shared + WORK_FLOATS, *reinterpret_cast<float(*)[SUMS]>(&result), team, warp, lane, planes, workspace,
           arrived, shifts_y, shifts_x, segments);
}
