// Correlation as a product with a Hankel matrix: the parts shared by the kernels that compute it on tensor cores.
//
// One matrix of a pair moves over the other, the fixed one:
//     sums[ey][ex] = sum over y, x of moving[y + ey][x + ex] * fixed[y][x],  terms outside a matrix being zero.
// For one row of each this is a product of A(ex, x) = moving[y + ey][x + ex] and B(x, ey) = fixed[y][x]. A depends on x
// + ex alone: in the fragment of 16 ex x 16 x, the second and the third register are equal, the fragment of the next 16
// ex begins with the last register, and so does that of the next 16 x. So a lane reads two words for 16 more columns,
// whatever the number of shifts. Lanes that begin at an odd column read a copy of the row that is shifted by one
// element.
//
// A block sums a tile of the window, 16 M_TILES x 8 N_TILES shifts, for MEMBERS moving matrices that share the fixed
// one. Its warps form TEAMS, one for each member, and the WARPS of a team share rows and columns. Elements are
// converted to (value - centre) * factor in fp16 as they are staged (scaling.cuh), so the sums that are written are
// centred:
//     (moving - its centre) * (fixed - its centre).
// Matrices are split into segments where there are few pairs; the last block to finish adds what the others wrote to a
// workspace, in a fixed order, so that every run gives the same bits. Where there are many segments, each GROUP of them
// is added first, and then the groups.
#pragma once
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"
#include "scaling.cuh"
#define COLUMNS 4
#include "vector_access.cuh"

#ifndef MOVING_IS_LEFT
#define MOVING_IS_LEFT 0  // 1: lefts move over the only right; 0: rights move over the left that they are paired with
#endif
#ifndef M_TILES
#define M_TILES 2
#endif
#ifndef N_TILES
#define N_TILES 4
#endif
#ifndef STEP_ROWS
#define STEP_ROWS 4  // rows of the moving matrices that a block stages at once
#endif
#ifndef PANEL
#define PANEL 256  // columns of the fixed matrix that a block works through at once
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
#define GROUP 16  // segments that one block adds up
#define IN_FLIGHT 8  // of these on their way at once

#if MOVING_IS_LEFT
typedef Left Moving;
typedef Right Fixed;
#else
typedef Right Moving;
typedef Left Fixed;
#endif

// The stacks among the arguments of a kernel.
#define MOVING_MATRICES (MOVING_IS_LEFT ? (const Moving*)lefts : (const Moving*)rights_of_all)
#define FIXED_MATRICES (MOVING_IS_LEFT ? (const Fixed*)rights_of_all : (const Fixed*)lefts)

constexpr int THREADS = 32 * TEAMS * WARPS, MEMBERS = TEAMS;
constexpr int WINDOW = 8 * N_TILES;  // ey of a tile
constexpr int MOVING_VECTORS = PANEL / 4 + 4 * M_TILES + 1;
// Words of a row: two fp16 each. The copies of a row are read by even and by odd lanes at once: 16 banks apart.
constexpr int MOVING_WORDS = (2 * MOVING_VECTORS + 15) / 32 * 32 + 16, MOVING_ROW = 2 * MOVING_WORDS;
constexpr int SUMS = M_TILES * N_TILES * 4;  // of a lane and a member

struct __align__(16) Source {
    long long start;  // element of the stack at which the matrix begins
    Scaling scaling;
};
// What a block does. It lies in shared memory: registers are for sums.
struct Work {
    Source moving[MEMBERS];
    Source fixed;
    int moving_height, moving_width, fixed_height, fixed_width;
    int first_ey, first_ex, first_iy, first_ix;              // of this tile of the window
    int row_first, row_last, column_first, column_last;      // rows of the moving matrices, columns of the fixed one
    int first_pair, members, moving_wide, fixed_wide;          // wide: rows are whole float4s, which can be copied as such
    int fixed_index, unused[2];
    unsigned nothing;  // zero
};
// Rows of matrices on their way.
struct Rows {
    int height, width, y, x, wide;
    __device__ __forceinline__ bool has(int row, int column) const {
        return (unsigned)(y + row) < (unsigned)height && (unsigned)(x + column) < (unsigned)width;
    }
    __device__ __forceinline__ long long at(int row, int column) const {
        return (long long)(y + row) * width + x + column;
    }
};

// Of a bundle's member, among the moving matrices; those that are missing are the last one.
__device__ __forceinline__ int moving_index(const Work& work, const Problem& p, int member) {
    const int pair = work.first_pair + min(member, work.members - 1);
    return MOVING_IS_LEFT ? pair : pair % p.rights;
}

// Where a block's work lies. One thread calls it.
__device__ __forceinline__ void place(Work& work, const Problem& p, const Left* lefts, const Right* rights_of_all, int tile,
                                      int bundle, int tiles_x, int segment, int segment_rows) {
    const int sets = MOVING_IS_LEFT ? 1 : ceil_div(p.rights_per_left, MEMBERS);  // bundles of one fixed matrix
    const int of_fixed = MOVING_IS_LEFT ? 0 : bundle / sets, first_member = (bundle - of_fixed * sets) * MEMBERS;
    const int all_members = MOVING_IS_LEFT ? p.pairs : p.rights_per_left;
    work.first_pair = of_fixed * p.rights_per_left + first_member;
    work.nothing = 0;
    work.fixed_index = of_fixed;
    work.members = min(MEMBERS, all_members - first_member);
    const int moving_height = MOVING_IS_LEFT ? p.left_height : p.right_height;
    const int moving_width = MOVING_IS_LEFT ? p.left_width : p.right_width;
    const int fixed_height = MOVING_IS_LEFT ? p.right_height : p.left_height;
    const int fixed_width = MOVING_IS_LEFT ? p.right_width : p.left_width;
    work.fixed.start = (long long)of_fixed * fixed_height * fixed_width;
    for (int i = 0; i < MEMBERS; ++i)
        work.moving[i].start = (long long)moving_index(work, p, i) * moving_height * moving_width;
    work.moving_height = moving_height;
    work.moving_width = moving_width;
    work.fixed_height = fixed_height;
    work.fixed_width = fixed_width;
    work.moving_wide = moving_width % 4 == 0 && is_aligned(MOVING_MATRICES);  // then every matrix of the stack is
    work.fixed_wide = fixed_width % 4 == 0 && is_aligned(FIXED_MATRICES);
    work.first_iy = tile / tiles_x * WINDOW;
    work.first_ix = tile % tiles_x * (16 * M_TILES);
    // Shifts of a right over its left have the other sign.
    work.first_ey = (MOVING_IS_LEFT ? p.shift_y0 : 1 - p.shift_y0 - p.shifts_y) + work.first_iy;
    work.first_ex = (MOVING_IS_LEFT ? p.shift_x0 : 1 - p.shift_x0 - p.shifts_x) + work.first_ix;
    // Rows of the moving matrices that overlap with any row of the fixed one, and columns of the fixed one that overlap
    // with any column.
    const int last = min(moving_height, fixed_height + work.first_ey + WINDOW - 1);
    work.row_first = max(0, work.first_ey) + segment * segment_rows;
    work.row_last = min(last, work.row_first + segment_rows);
    work.column_first = max(0, 1 - work.first_ex - 16 * M_TILES) & ~3;
    work.column_last = work.row_first < work.row_last ? min(fixed_width, moving_width - work.first_ex) : 0;
}

// How one of its matrices is scaled, the fixed one (0) or a member (from 1 on): the last cell of a table holds the moments of
// its whole matrix.
__device__ __forceinline__ void scale(Work& work, const Problem& p, const Moments* left_tables, const Moments* right_tables,
                                      int left_cells, int right_cells, int which) {
    const bool of_left = which > 0 ? MOVING_IS_LEFT : !MOVING_IS_LEFT;
    const Moments* tables = of_left ? left_tables : right_tables;
    const long long index = which > 0 ? moving_index(work, p, which - 1) : work.fixed_index;
    const Moments whole = tables[(index + 1) * (of_left ? left_cells : right_cells) - 1];
    if (which > 0)
        work.moving[which - 1].scaling =
            scaling_of<!IsFloat<Moving>::VALUE>(whole, (double)work.moving_height * work.moving_width);
    else
        work.fixed.scaling = scaling_of<!IsFloat<Fixed>::VALUE>(whole, (double)work.fixed_height * work.fixed_width);
}

// Which work a block has. One thread calls it.
__device__ __forceinline__ void describe(Work& work, const Problem& p, const Left* lefts, const Right* rights_of_all,
                                         const Moments* left_tables, const Moments* right_tables, int left_cells,
                                         int right_cells, int tile, int bundle, int tiles_x, int segment,
                                         int segment_rows) {
    place(work, p, lefts, rights_of_all, tile, bundle, tiles_x, segment, segment_rows);
    for (int which = 0; which <= MEMBERS; ++which)
        scale(work, p, left_tables, right_tables, left_cells, right_cells, which);
}

constexpr int WORK_FLOATS = sizeof(Work) / 4;

constexpr int OWN = SUMS * 32, ALL = TEAMS * OWN;  // sums of a team, and of a block

// Whether this block is the last of `count` to arrive here; it sees what the others wrote, and resets the counter to
// zero.
__device__ __forceinline__ bool comes_last(int* scratch, int* counter, int count) {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        *scratch = atomicAdd(counter, 1) == count - 1;
        if (*scratch) *counter = 0;
    }
    __syncthreads();
    const bool last = *scratch;
    __threadfence();
    __syncthreads();
    return last;
}

// Adds up `count` blocks' sums, in their order, every load of IN_FLIGHT on its way before the first is used.
__device__ __forceinline__ void add_in_order(const float* from, int count, float* to) {
#pragma unroll 1
    for (int i = 4 * threadIdx.x; i < ALL; i += 4 * THREADS) {
        float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 1
        for (int first = 0; first < count; first += IN_FLIGHT) {
            float4 four[IN_FLIGHT];
#pragma unroll
            for (int s = 0; s < IN_FLIGHT; ++s)
                if (first + s < count) four[s] = __ldcg(reinterpret_cast<const float4*>(from + (first + s) * ALL + i));
#pragma unroll
            for (int s = 0; s < IN_FLIGHT; ++s) {
                if (first + s >= count) break;
                sum.x += four[s].x;
                sum.y += four[s].y;
                sum.z += four[s].z;
                sum.w += four[s].w;
            }
        }
        *reinterpret_cast<float4*>(to + i) = sum;
    }
}

// What all segments of a part have left in the workspace, into `shared`; false for the blocks that do not come last.
// One block would take long to read many segments, so blocks share this too: the sums of groups follow the segments'.
__device__ __forceinline__ bool add_segments(float* shared, float* workspace, int* arrived, int segment, int segments) {
    const int groups = ceil_div(segments, GROUP), group = segment / GROUP, first = group * GROUP;
    const int members = min(GROUP, segments - first);
    float* const of_groups = workspace + (long long)segments * ALL;
    int* const scratch = reinterpret_cast<int*>(shared);
    if (!comes_last(scratch, arrived + group, members)) return false;
    add_in_order(workspace + (long long)first * ALL, members, groups > 1 ? of_groups + (long long)group * ALL : shared);
    if (groups == 1) return true;
    if (!comes_last(scratch, arrived + groups, groups)) return false;
    add_in_order(of_groups, groups, shared);
    return true;
}

// Adds up what the warps of each team have summed, scales it back and writes it. Every thread of the block calls it, after a
// barrier; `shared` is free but for `work`.
__device__ __forceinline__ void finish(const Work& work, float* shared, float (&sums)[SUMS], int team, int warp,
                                       int lane, float* planes, float* workspace, int* arrived, int shifts_y, int shifts_x,
                                       int segments) {
    // Half of the warps pass their sums to the others, until one is left.
#pragma unroll
    for (int count = WARPS; count > 1; count = (count + 1) / 2) {
        const int half = (count + 1) / 2;
        float* place = shared + (team * (WARPS / 2) + warp % half) * OWN + lane;
        if (warp >= half && warp < count)
#pragma unroll
            for (int i = 0; i < SUMS; ++i) place[i * 32] = sums[i];
        __syncthreads();
        if (warp < count - half)
#pragma unroll
            for (int i = 0; i < SUMS; ++i) sums[i] += place[i * 32];
        __syncthreads();
    }
    const int part = (int)blockIdx.x / segments, segment = (int)blockIdx.x % segments;
    if (segments > 1) workspace += (long long)part * (segments + ceil_div(segments, GROUP)) * ALL;
    if (warp == 0) {
        float* to = segments > 1 ? workspace + (long long)segment * ALL : shared;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) to[team * OWN + i * 32 + lane] = sums[i];
    }
    if (segments > 1) {
        arrived += part * (ceil_div(segments, GROUP) + 1);
        if (!add_segments(shared, workspace, arrived, segment, segments)) return;
    }
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < ALL; i += THREADS) {
        const int of_lane = i % 32, at = i / 32 % 4, n = i / 128 % N_TILES, m = i / (128 * N_TILES) % M_TILES;
        const int member = i / (128 * N_TILES * M_TILES);
        const int iy = work.first_iy + n * 8 + of_lane % 4 * 2 + at % 2;
        const int ix = work.first_ix + m * 16 + at / 2 * 8 + of_lane / 4;
        if (member >= work.members || iy >= shifts_y || ix >= shifts_x) continue;
        const int sy = MOVING_IS_LEFT ? iy : shifts_y - 1 - iy, sx = MOVING_IS_LEFT ? ix : shifts_x - 1 - ix;
        planes[((long long)(work.first_pair + member) * shifts_y + sy) * shifts_x + sx] =
            unscaled(shared[i], work.moving[member].scaling, work.fixed.scaling);
    }
}
