// Windows of shifts on tensor cores, by products of one warp: for any form, from sm_80 on.
//
// The mapping: `hankel.cuh`. A warp sums 16 M_TILES x 8 N_TILES shifts of a moving matrix, over its share of rows and
// columns. Rows are staged in shared memory, STEP_ROWS at a time, PANEL columns of them; those of the fixed matrix stay
// in a ring buffer until the window has passed.
//
//     SPLIT   1: fp16. 2: every value as the sum of two fp16 numbers, three products; near single precision
//     FLUSH   1: sums of a row's share are added to others in single precision, as tensor cores cut sums off; 0: at the end
//
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: the rate of `mma.sync`, 315 TFMA/s on an H200;
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
constexpr int RING = WINDOW + 2 * STEP_ROWS;  // rows of the fixed matrix
constexpr int FIXED_VECTORS = PANEL / 4;
// Eight rows of the fixed matrix are read at once: they begin 4 banks apart.
constexpr int FIXED_WORDS = (PANEL / 2 + 31) / 32 * 32 + 4, FIXED_PART = RING * FIXED_WORDS;
constexpr int MOVING_PART = MEMBERS * STEP_ROWS * MOVING_ROW, MOVING_BUFFER = SPLIT * MOVING_PART;
static_assert(N_TILES % 2 == 0 && WINDOW % STEP_ROWS == 0 && WARPS % STEP_ROWS == 0 && PANEL % (16 * PARTS) == 0,
              "warps share the work evenly");
#include "hankel_warp.cuh"

// Shared memory: the work, rows as they come from memory, two buffers of moving rows, the ring.
constexpr int RAW_MOVING_FLOATS = MEMBERS * STEP_ROWS * MOVING_VECTORS * 4, RAW_FIXED_FLOATS = STEP_ROWS * FIXED_VECTORS * 4;

// Starts the copy of a float4 to where this thread will look for it.
template <typename Element>
__device__ __forceinline__ void start(AlignedVector<Element>* raw, const Element* matrix, const Rows& rows, int row, int column) {
    if (rows.has(row, column)) copy_vector(raw, matrix + rows.at(row, column));
}
// The four scaled elements, zero for those outside.
template <typename Element>
__device__ __forceinline__ Four arrived_quad(const AlignedVector<Element>* raw, const Element* stack, const Source& source,
                                             const Rows& rows, int row, int column) {
    Four four = {{0.0f, 0.0f, 0.0f, 0.0f}};
    const Scaling scaling = source.scaling;
    if (rows.wide) {
        if (!rows.has(row, column)) return four;
        const AlignedVector<Element> vector = *raw;
#pragma unroll
        for (int i = 0; i < 4; ++i) four.at[i] = ((float)vector.at[i] - scaling.centre) * scaling.factor;
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

// A thread's share of STEP_ROWS rows of the moving matrices. Item i: float4 i % MOVING_VECTORS of a row; rows of one matrix
// follow.
constexpr int MOVING_ITEMS = MEMBERS * STEP_ROWS * MOVING_VECTORS, FIXED_ITEMS = STEP_ROWS * FIXED_VECTORS;

__device__ __forceinline__ void start_moving(AlignedVector<Moving>* raw, const Moving* stack, const Source* sources, const Rows& rows) {
    if (!rows.wide) return;
#pragma unroll 1
    for (int i = threadIdx.x; i < MOVING_ITEMS; i += THREADS) {
        const int row = i / MOVING_VECTORS;
        start(raw + i, stack + sources[row / STEP_ROWS].start, rows, row % STEP_ROWS, (i - row * MOVING_VECTORS) * 4);
    }
}
__device__ __forceinline__ void keep_moving(unsigned* buffer, const AlignedVector<Moving>* raw, const Moving* stack,
                                          const Source* sources, const Rows& rows) {
#pragma unroll 1
    for (int i = threadIdx.x; i < MOVING_ITEMS; i += THREADS) {
        const int row = i / MOVING_VECTORS, at = i - row * MOVING_VECTORS;
        Four four = arrived_quad(raw + i, stack, sources[row / STEP_ROWS], rows, row % STEP_ROWS, at * 4);
#pragma unroll
        for (int part = 0; part < SPLIT; ++part) {
            keep_shifted(buffer + part * MOVING_PART + row * MOVING_ROW + 2 * at, four, at > 0);
            if (SPLIT > 1) four = residues(four);
        }
    }
}

// The same of the fixed matrix. `first`: place of the first row in the ring, if that had no end.
__device__ __forceinline__ void start_fixed(AlignedVector<Fixed>* raw, const Fixed* stack, const Source& source, const Rows& rows) {
    if (!rows.wide) return;
#pragma unroll 1
    for (int i = threadIdx.x; i < FIXED_ITEMS; i += THREADS)
        start(raw + i, stack + source.start, rows, i / FIXED_VECTORS, i % FIXED_VECTORS * 4);
}
__device__ __forceinline__ void keep_fixed(unsigned* ring, const AlignedVector<Fixed>* raw, const Fixed* stack,
                                           const Source& source, const Rows& rows, int first) {
#pragma unroll 1
    for (int i = threadIdx.x; i < FIXED_ITEMS; i += THREADS) {
        const int row = i / FIXED_VECTORS, at = i % FIXED_VECTORS;
        Four four = arrived_quad(raw + i, stack, source, rows, row, at * 4);
#pragma unroll
        for (int part = 0; part < SPLIT; ++part) {
            keep(ring + part * FIXED_PART + (first + row) % RING * FIXED_WORDS + 2 * at, four);
            if (SPLIT > 1) four = residues(four);
        }
    }
}

// Sums of one panel of PANEL columns.
__device__ __forceinline__ void sum_panel(const Work& work, const Moving* moving_matrices, const Fixed* fixed_matrices,
                                          AlignedVector<Moving>* raw_moving,
                                          AlignedVector<Fixed>* raw_fixed, unsigned* moving_buffers, unsigned* ring, int x, int team,
                                          int warp, int lane, WarpSums& sum, WarpSums& total) {
    const int moving_x = (x + work.first_ex) & ~3, begin = x + work.first_ex - moving_x + lane / 4 + lane % 4 * 2;
    const int own_row = warp % STEP_ROWS, own_words = warp / STEP_ROWS * (STEPS_K * 8);
    const int moving_word = begin % 2 * MOVING_WORDS + begin / 2 + own_words + (team * STEP_ROWS + own_row) * MOVING_ROW;
    const int fixed_word = lane / 8 % 2 * 4 + own_words, own_ey = lane / 16 * 8 + lane % 8;

    // Counted from the first fixed row of all, the row that ey n pairs with moving row `row_first + r` is r + WINDOW - n.
    Rows moving_rows = {work.row_last, work.moving_width, work.row_first, moving_x, work.moving_wide};
    Rows fixed_rows = {work.fixed_height, work.fixed_width, work.row_first - work.first_ey - WINDOW, x, work.fixed_wide};
    start_moving(raw_moving, moving_matrices, work.moving, moving_rows);
#pragma unroll 1
    for (int r = 0; r < WINDOW + STEP_ROWS; r += STEP_ROWS, fixed_rows.y += STEP_ROWS) {
        start_fixed(raw_fixed, fixed_matrices, work.fixed, fixed_rows);
        staged();
        keep_fixed(ring, raw_fixed, fixed_matrices, work.fixed, fixed_rows, r);
    }
    keep_moving(moving_buffers, raw_moving, moving_matrices, work.moving, moving_rows);
    __syncthreads();
#pragma unroll 1
    for (int done = 0;; done += STEP_ROWS) {
        moving_rows.y += STEP_ROWS;
        const bool more = moving_rows.y < moving_rows.height;
        if (more) {
            start_moving(raw_moving, moving_matrices, work.moving, moving_rows);
            start_fixed(raw_fixed, fixed_matrices, work.fixed, fixed_rows);
        }
        const unsigned* fixed_row[N_TILES / 2];
#pragma unroll
        for (int n = 0; n < N_TILES / 2; ++n)
            fixed_row[n] = ring + (done + own_row + WINDOW - n * 16 - own_ey) % RING * FIXED_WORDS + fixed_word;
        multiply_row(moving_buffers + done / STEP_ROWS % 2 * MOVING_BUFFER + moving_word, fixed_row, sum);
#if FLUSH
#pragma unroll
        for (int i = 0; i < SUMS; ++i) (&total[0][0][0])[i] += (&sum[0][0][0])[i];
        clear(sum);
#endif
        if (!more) break;
        staged();
        keep_moving(moving_buffers + (done / STEP_ROWS + 1) % 2 * MOVING_BUFFER, raw_moving, moving_matrices, work.moving,
                    moving_rows);
        keep_fixed(ring, raw_fixed, fixed_matrices, work.fixed, fixed_rows, WINDOW + done + STEP_ROWS);
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
    AlignedVector<Moving>* const raw_moving = reinterpret_cast<AlignedVector<Moving>*>(shared + WORK_FLOATS);
    AlignedVector<Fixed>* const raw_fixed = reinterpret_cast<AlignedVector<Fixed>*>(shared + WORK_FLOATS + RAW_MOVING_FLOATS);
    unsigned* const moving_buffers = reinterpret_cast<unsigned*>(shared + WORK_FLOATS + RAW_MOVING_FLOATS + RAW_FIXED_FLOATS);
    unsigned* const ring = moving_buffers + 2 * MOVING_BUFFER;
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
        sum_panel(work, MOVING_MATRICES, FIXED_MATRICES, raw_moving, raw_fixed, moving_buffers, ring, x, team, warp, lane, sum,
                  total);
#if FLUSH
    WarpSums& result = total;
#else
    WarpSums& result = sum;
#endif

    finish(work, shared + WORK_FLOATS, *reinterpret_cast<float(*)[SUMS]>(&result), team, warp, lane, planes, workspace,
           arrived, shifts_y, shifts_x, segments);
}
