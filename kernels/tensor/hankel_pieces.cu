// Windows of shifts on tensor cores, for so few pairs that the latency of one block dominates: from sm_80 on.
//
// The mapping: `hankel.cuh`; the products: `hankel_warp.cuh`. As hankel.cu, but a block processes one piece of a pair,
// PIECE_ROWS rows of the moving matrix and PANEL columns of the fixed one, and issues all loads before it uses the
// first element: it waits for memory once, where a loop over rows waits at every step. Elements pass through registers,
// so that loads need not wait for the moments by which they are scaled. A warp processes every WARPS-th row, against
// the fixed rows of all ey. A piece of 64 x 128 for 32 x 32 shifts reads 95 x 128 elements of the fixed matrix and 64 x
// 164 of the moving one, 1.4 times its share, mostly from the L2 cache; 1024^2 elements make 128 pieces, which all run
// concurrently, one per multiprocessor. The sums of the pieces are added up by 16 blocks, then by one of these
// (hankel.cuh).
//
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: as hankel.cu, 3.4 us for 1024^2 and 32 x
// 32 shifts on an H200; it takes 15.8, mostly latency: of the first elements, and of the sums of other blocks.
#define TEAMS 1
#define SPLIT 1
#ifndef WARPS
#define WARPS 8
#endif
#ifndef PIECE_ROWS
#define PIECE_ROWS 32  // of the moving matrix; a multiple of WARPS
#endif
#ifndef PANEL
#define PANEL 128
#endif
#define IN_FLIGHT 16  // sums that are added up: all of a group
#include "hankel.cuh"

constexpr int STEPS_K = PANEL / 16, FIXED_ROWS = PIECE_ROWS + WINDOW - 1, FIXED_VECTORS = PANEL / 4;
// Eight rows of the fixed matrix are read at once: they begin 4 banks apart.
constexpr int FIXED_WORDS = (PANEL / 2 + 31) / 32 * 32 + 4;
constexpr int MOVING_PART = PIECE_ROWS * MOVING_ROW, FIXED_PART = FIXED_ROWS * FIXED_WORDS;
// Lanes that share what a moving row has more than a fixed one.
constexpr int MORE = MOVING_VECTORS - FIXED_VECTORS, MORE_LANES = MORE > 16 ? 32 : MORE > 8 ? 16 : 8;
static_assert(N_TILES % 2 == 0 && WARPS > 1 && PIECE_ROWS % WARPS == 0 && PANEL % 16 == 0, "warps share the work evenly");
#include "hankel_warp.cuh"

// A thread's share of ROWS rows: of every STEP-th row the same four columns, float4 `at`.
template <typename Element, int ROWS, int LANES>
struct Share {
    static constexpr int STEP = THREADS / LANES, COUNT = (ROWS + STEP - 1) / STEP;
    static_assert(THREADS % LANES == 0 && COUNT <= 32, "a bit for every row");
    AlignedVector<Element> vector[COUNT];
    int row, at;
    unsigned rows_inside, columns_inside;  // a bit for each

    // Zero where there is nothing; float4s from `first` to `end` are shared by the lanes.
    __device__ __forceinline__ void read(const Element* matrix, const Rows& rows, int first, int end) {
        row = (int)threadIdx.x / LANES;
        at = first + (int)threadIdx.x % LANES;
        rows_inside = columns_inside = 0;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            columns_inside |= (unsigned)(at < end && (unsigned)(rows.x + 4 * at + e) < (unsigned)rows.width) << e;
        const Element* from = matrix + rows.at(row, 4 * at);
#pragma unroll
        for (int i = 0; i < COUNT; ++i, from += (long long)STEP * rows.width) {
            const bool inside = row + i * STEP < ROWS && (unsigned)(rows.y + row + i * STEP) < (unsigned)rows.height;
            rows_inside |= (unsigned)inside << i;
            vector[i] = {{0, 0, 0, 0}};
            if (rows.wide) {
                if (inside && columns_inside) vector[i] = *reinterpret_cast<const AlignedVector<Element>*>(from);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (inside && columns_inside >> e & 1) vector[i].at[e] = from[e];
            }
        }
    }
    // Calls `keep` with every row of the share and its four scaled elements.
    template <typename Keep>
    __device__ __forceinline__ void scaled(const Scaling scaling, int end, const Keep& keep) const {
        float factor[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) factor[e] = columns_inside >> e & 1 ? scaling.factor : 0.0f;
        if (at >= end) return;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const float centre = rows_inside >> i & 1 ? scaling.centre : 0.0f;
            Four four;
#pragma unroll
            for (int e = 0; e < 4; ++e) four.at[e] = ((float)vector[i].at[e] - centre) * factor[e];
            if (ROWS % STEP == 0 || row + i * STEP < ROWS) keep(row + i * STEP, four);
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    hankel_pieces(const Left* lefts, const Right* rights_of_all, float* planes, float* workspace, int* arrived,
                  const Moments* left_tables, const Moments* right_tables, PROBLEM_PARAMETERS, int left_cells, int right_cells,
                  int tiles_y, int tiles_x, int pieces, int panels) {
    SHARED_FLOATS(shared);
    Work& work = *reinterpret_cast<Work*>(shared);
    unsigned* const moving = reinterpret_cast<unsigned*>(shared + WORK_FLOATS);
    unsigned* const fixed = moving + MOVING_PART;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int piece = (int)blockIdx.x % pieces;
    const Problem p = PROBLEM_ARGUMENTS;
    if (threadIdx.x == 0) {
        const int part = (int)blockIdx.x / pieces, tiles = tiles_y * tiles_x;
        place(work, p, lefts, rights_of_all, part % tiles, part / tiles, tiles_x, piece / panels, PIECE_ROWS);
    }
    __syncthreads();
    const int x = work.column_first + piece % panels * PANEL, moving_x = (x + work.first_ex) & ~3;
    const bool nothing = x >= work.column_last;
    // Counted from the first fixed row of all, the row that ey n pairs with moving row `row_first + r` is r + WINDOW - 1 - n.
    const Rows moving_rows = {work.row_last, work.moving_width, work.row_first, moving_x, work.moving_wide};
    const Rows fixed_rows = {work.fixed_height, work.fixed_width, work.row_first - work.first_ey - (WINDOW - 1), x,
                             work.fixed_wide};
    Share<Moving, PIECE_ROWS, FIXED_VECTORS> of_moving;
    Share<Moving, PIECE_ROWS, MORE_LANES> more_of_moving;
    Share<Fixed, FIXED_ROWS, FIXED_VECTORS> of_fixed;
    if (!nothing) {
        of_moving.read(MOVING_MATRICES + work.moving[0].start, moving_rows, 0, FIXED_VECTORS);
        more_of_moving.read(MOVING_MATRICES + work.moving[0].start, moving_rows, FIXED_VECTORS, MOVING_VECTORS);
        of_fixed.read(FIXED_MATRICES + work.fixed.start, fixed_rows, 0, FIXED_VECTORS);
    }
    if (lane == 0 && warp < 2) scale(work, p, left_tables, right_tables, left_cells, right_cells, warp);
    __syncthreads();
    if (!nothing) {
        of_moving.scaled(work.moving[0].scaling, FIXED_VECTORS, [&](int row, const Four& four) {
            keep_shifted(moving + row * MOVING_ROW + 2 * of_moving.at, four, of_moving.at > 0);
        });
        more_of_moving.scaled(work.moving[0].scaling, MOVING_VECTORS, [&](int row, const Four& four) {
            keep_shifted(moving + row * MOVING_ROW + 2 * more_of_moving.at, four, true);
        });
        of_fixed.scaled(work.fixed.scaling, FIXED_VECTORS, [&](int row, const Four& four) {
            keep(fixed + row * FIXED_WORDS + 2 * of_fixed.at, four);
        });
    }
    __syncthreads();
    WarpSums sum;
    clear(sum);
    const int begin = x + work.first_ex - moving_x + lane / 4 + lane % 4 * 2;
    const unsigned* const own = moving + begin % 2 * MOVING_WORDS + begin / 2;
    const int own_ey = lane / 16 * 8 + lane % 8, rows = nothing ? 0 : work.row_last - work.row_first;
#pragma unroll 1
    for (int r = warp; r < rows; r += WARPS) {
        const unsigned* fixed_row[N_TILES / 2];
#pragma unroll
        for (int n = 0; n < N_TILES / 2; ++n)
            fixed_row[n] = fixed + (r + WINDOW - 1 - n * 16 - own_ey) * FIXED_WORDS + lane / 8 % 2 * 4;
        multiply_row(own + r * MOVING_ROW, fixed_row, sum);
    }
    __syncthreads();
    finish(work, shared + WORK_FLOATS, *reinterpret_cast<float(*)[SUMS]>(&sum), 0, warp, lane, planes, workspace, arrived,
           shifts_y, shifts_x, pieces);
}
