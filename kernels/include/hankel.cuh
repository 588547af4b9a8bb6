// Correlation as a product with a Hankel matrix: what the kernels that do it on tensor cores share.
//
// One matrix of a pair slides over the other, plain one:
//     sums[ey][ex] = sum over y, x of slid[y + ey][x + ex] * plain[y][x],  terms outside a matrix being zero.
// For one row of each this is a product of A(ex, x) = slid[y + ey][x + ex] and B(x, ey) = plain[y][x]. A depends on x + ex
// alone: of the fragment of 16 ex x 16 x, the second and the third register hold the same, the next 16 ex begin with the
// last, and so do the next 16 x. So a lane reads two words for 16 more columns, whatever the number of shifts. Lanes that
// begin at an odd column read a copy of the row that is shifted by one element.
//
// A block sums a tile of the window, 16 M_TILES x 8 N_TILES shifts, for MEMBERS slid matrices that share the plain one. Of
// its warps, TEAMS sum other members, FRAMES each, and the WARPS of a team share rows and columns. Elements become
// (value - centre) * factor in half precision on their way (scaling.cuh), so what is summed, and written, is centred:
//     (slid - its centre) * (plain - its centre).
// Rows are cut into segments where pairs are few; the block that comes last adds up what the others left in a workspace, in
// their order, so that every run gives the same bits.
#pragma once
#include "problem.cuh"
#include "tile.cuh"
#include "zncc.cuh"
#include "scaling.cuh"
#define COLUMNS 4
#include "quad.cuh"

#ifndef SLIDES_LEFT
#define SLIDES_LEFT 0  // 1: the left matrices slide over the only right one; 0: rights slide over the left that they meet
#endif
#ifndef M_TILES
#define M_TILES 2
#endif
#ifndef N_TILES
#define N_TILES 4
#endif
#ifndef STEP_ROWS
#define STEP_ROWS 4  // rows of the slid matrices that a block stages at once
#endif
#ifndef PANEL
#define PANEL 256  // columns of the plain matrix that a block works through at once
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

#if SLIDES_LEFT
typedef Left Slid;
typedef Right Plain;
#else
typedef Right Slid;
typedef Left Plain;
#endif

// The stacks among the arguments of a kernel.
#define SLIDS (SLIDES_LEFT ? (const Slid*)lefts : (const Slid*)rights_of_all)
#define PLAINS (SLIDES_LEFT ? (const Plain*)rights_of_all : (const Plain*)lefts)

constexpr int THREADS = 32 * TEAMS * WARPS, MEMBERS = TEAMS * FRAMES;
constexpr int WINDOW = 8 * N_TILES;  // ey of a tile
constexpr int SLID_QUADS = PANEL / 4 + 4 * M_TILES + 1;
// Words of a row: two halves each. The copies of a row are read by even and by odd lanes at once: 16 banks apart.
constexpr int SLID_WORDS = (2 * SLID_QUADS + 15) / 32 * 32 + 16, SLID_ROW = 2 * SLID_WORDS;
constexpr int SUMS = M_TILES * N_TILES * 4;  // of a lane and a member

struct __align__(16) Source {
    long long start;  // element of the stack at which the matrix begins
    Scaling scaling;
};
// What a block does. It lies in shared memory: registers are for sums.
struct Work {
    Source slid[MEMBERS];
    Source plain;
    int slid_height, slid_width, plain_height, plain_width;
    int first_ey, first_ex, first_iy, first_ix;              // of this tile of the window
    int row_first, row_last, column_first, column_last;      // rows of the slid matrices, columns of the plain one
    int first_pair, members, slid_wide, plain_wide;          // wide: rows are whole quads, which can be copied as such
    int plain_index, unused[2];
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

// Which work a block has. One thread calls it.
__device__ __forceinline__ void describe(Work& work, const Problem& p, const Left* lefts, const Right* rights_of_all,
                                         const Moments* left_tables, const Moments* right_tables, int left_cells,
                                         int right_cells, int tile, int bundle, int tiles_x, int segment,
                                         int segment_rows) {
    const int sets = SLIDES_LEFT ? 1 : ceil_div(p.rights_per_left, MEMBERS);  // bundles of one plain matrix
    const int of_plain = SLIDES_LEFT ? 0 : bundle / sets, first_member = (bundle - of_plain * sets) * MEMBERS;
    const int all_members = SLIDES_LEFT ? p.pairs : p.rights_per_left;
    work.first_pair = of_plain * p.rights_per_left + first_member;
    work.nothing = 0;
    work.plain_index = of_plain;
    work.members = least(MEMBERS, all_members - first_member);
    const int slid_height = SLIDES_LEFT ? p.left_height : p.right_height;
    const int slid_width = SLIDES_LEFT ? p.left_width : p.right_width;
    const int plain_height = SLIDES_LEFT ? p.right_height : p.left_height;
    const int plain_width = SLIDES_LEFT ? p.right_width : p.left_width;
    const Moments* plain_tables = SLIDES_LEFT ? right_tables : left_tables;
    const Moments* slid_tables = SLIDES_LEFT ? left_tables : right_tables;
    const int plain_cells = SLIDES_LEFT ? right_cells : left_cells, slid_cells = SLIDES_LEFT ? left_cells : right_cells;
    // The last cell of a table holds the moments of its whole matrix.
    work.plain.start = (long long)of_plain * plain_height * plain_width;
    work.plain.scaling = scaling_of<!IsFloat<Plain>::VALUE>(plain_tables[(long long)(of_plain + 1) * plain_cells - 1],
                                                            (double)plain_height * plain_width);
    for (int i = 0; i < MEMBERS; ++i) {
        const int pair = work.first_pair + least(i, work.members - 1), index = SLIDES_LEFT ? pair : pair % p.rights;
        work.slid[i].start = (long long)index * slid_height * slid_width;
        work.slid[i].scaling = scaling_of<!IsFloat<Slid>::VALUE>(slid_tables[(long long)(index + 1) * slid_cells - 1],
                                                                 (double)slid_height * slid_width);
    }
    work.slid_height = slid_height;
    work.slid_width = slid_width;
    work.plain_height = plain_height;
    work.plain_width = plain_width;
    work.slid_wide = slid_width % 4 == 0 && is_aligned(SLIDS);  // then every matrix of the stack is
    work.plain_wide = plain_width % 4 == 0 && is_aligned(PLAINS);
    work.first_iy = tile / tiles_x * WINDOW;
    work.first_ix = tile % tiles_x * (16 * M_TILES);
    // Shifts of a right over its left have the other sign.
    work.first_ey = (SLIDES_LEFT ? p.shift_y0 : 1 - p.shift_y0 - p.shifts_y) + work.first_iy;
    work.first_ex = (SLIDES_LEFT ? p.shift_x0 : 1 - p.shift_x0 - p.shifts_x) + work.first_ix;
    // Rows of the slid matrices that meet any row of the plain one, and columns of the plain one that meet any column.
    const int last = least(slid_height, plain_height + work.first_ey + WINDOW - 1);
    work.row_first = most(0, work.first_ey) + segment * segment_rows;
    work.row_last = least(last, work.row_first + segment_rows);
    work.column_first = most(0, 1 - work.first_ex - 16 * M_TILES) & ~3;
    work.column_last = work.row_first < work.row_last ? least(plain_width, slid_width - work.first_ex) : 0;
}

constexpr int WORK_FLOATS = sizeof(Work) / 4;

// Adds up what the warps of each team have summed, scales it back and writes it. Every thread of the block calls it, after a
// barrier; `shared` is free but for `work`.
__device__ __forceinline__ void finish(const Work& work, float* shared, float (&sums)[FRAMES * SUMS], int team, int warp,
                                       int lane, float* planes, float* workspace, int* arrived, int shifts_y, int shifts_x,
                                       int segments) {
    constexpr int OWN = FRAMES * SUMS * 32, ALL = TEAMS * OWN;  // of a team, and of the block
    // Half of the warps hand over to the others, until one is left.
#pragma unroll
    for (int count = WARPS; count > 1; count = (count + 1) / 2) {
        const int half = (count + 1) / 2;
        float* place = shared + (team * (WARPS / 2) + warp % half) * OWN + lane;
        if (warp >= half && warp < count)
#pragma unroll
            for (int i = 0; i < FRAMES * SUMS; ++i) place[i * 32] = sums[i];
        __syncthreads();
        if (warp < count - half)
#pragma unroll
            for (int i = 0; i < FRAMES * SUMS; ++i) sums[i] += place[i * 32];
        __syncthreads();
    }
    const int part = (int)blockIdx.x / segments;
    if (warp == 0) {
        float* to = segments > 1 ? workspace + (long long)blockIdx.x * ALL : shared;
#pragma unroll
        for (int i = 0; i < FRAMES * SUMS; ++i) to[team * OWN + i * 32 + lane] = sums[i];
    }
    if (segments > 1) {
        __threadfence();
        __syncthreads();
        int* last = reinterpret_cast<int*>(shared);
        if (threadIdx.x == 0) *last = atomicAdd(arrived + part, 1) == segments - 1;
        __syncthreads();
        if (!*last) return;
        __threadfence();
        __syncthreads();
        const float* from = workspace + (long long)part * segments * ALL;
#pragma unroll 1
        for (int i = threadIdx.x; i < ALL; i += THREADS) {
            float sum = 0.0f;
            for (int s = 0; s < segments; ++s) sum += __ldcg(from + (long long)s * ALL + i);
            shared[i] = sum;
        }
    }
    __syncthreads();
    const float plain_unit = 1.0f / work.plain.scaling.factor;
#pragma unroll 1
    for (int i = threadIdx.x; i < ALL; i += THREADS) {
        const int of_lane = i % 32, at = i / 32 % 4, n = i / 128 % N_TILES, m = i / (128 * N_TILES) % M_TILES;
        const int member = i / (128 * N_TILES * M_TILES);
        const int iy = work.first_iy + n * 8 + of_lane % 4 * 2 + at % 2;
        const int ix = work.first_ix + m * 16 + at / 2 * 8 + of_lane / 4;
        if (member >= work.members || iy >= shifts_y || ix >= shifts_x) continue;
        const int sy = SLIDES_LEFT ? iy : shifts_y - 1 - iy, sx = SLIDES_LEFT ? ix : shifts_x - 1 - ix;
        planes[((long long)(work.first_pair + member) * shifts_y + sy) * shifts_x + sx] =
            shared[i] * (1.0f / work.slid[member].scaling.factor) * plain_unit;
    }
}
