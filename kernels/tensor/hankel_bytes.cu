// Windows of shifts of bytes on tensor cores, exact: plain sums of uint8 matrices in whole numbers; any form, sm_80 on.
//
// The mapping is that of `hankel.cuh` with products of 16 x 32 by 32 x 8 bytes. A lane's registers of A are words of
// four neighbouring elements of the moving row, from g + 4 t on and 8, 16 and 24 further: the next 16 ex begin with the
// third, the next 32 columns with the fifth, so a lane reads four words for 32 more columns, whatever the number of
// shifts. A word may begin at any byte, so shared memory contains each row four times, each copy shifted by one element
// more, the copies 8 banks apart. (One copy would suffice with two loads and a byte permutation per word; but elements
// are copied once and read 16 times.) A column of B is an unmodified row of the fixed matrix; these rows stay in a ring
// buffer until the window has passed.
//
// A block sums a tile of the window, 16 M_TILES x 8 N_TILES shifts, for FRAMES moving matrices that share the fixed
// one, over one panel of PANEL columns and few enough rows that no sum of a warp exceeds 2^31: 33025 products of 255 x
// 255. Then it adds them in 64 bits to the planes, which must be zeroed first. Integer sums do not depend on the order.
//
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: the rate of `mma.sync` for bytes, nominally
// twice that for fp16, which is 315 T multiply-adds a second on an H200; 350 of it at 32 x 32 shifts of 512 x 512 (0.77 us a
// frame).
#ifndef MOVING_IS_LEFT
#define MOVING_IS_LEFT 0  // 1: lefts move over the only right; 0: rights move over the left that they are paired with
#endif
#ifndef FRAMES
#define FRAMES 2
#endif
#ifndef M_TILES
#define M_TILES 2
#endif
#ifndef N_TILES
#define N_TILES 4
#endif
#ifndef WARPS
#define WARPS 8  // a multiple of STEP_ROWS
#endif
#ifndef STEP_ROWS
#define STEP_ROWS 4  // rows of the moving matrices that a block stages at once
#endif
#ifndef PANEL
#define PANEL 512
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif
#include "problem.cuh"
#include "shared_tile.cuh"
#include "mma_fp16.cuh"
#include "mma_int8.cuh"

typedef unsigned char Byte;
constexpr int THREADS = 32 * WARPS, WINDOW = 8 * N_TILES;
constexpr int PARTS = WARPS / STEP_ROWS, STEPS_K = PANEL / 32 / PARTS;  // warps of a row, steps of 32 columns of each
constexpr int SUMS = M_TILES * N_TILES * 4;                             // of a lane and a moving matrix
static_assert(N_TILES % 2 == 0 && WARPS % STEP_ROWS == 0 && PANEL % (32 * PARTS) == 0, "warps share the work evenly");

// Chunks are 16 bytes, words four.
constexpr int MOVING_CHUNKS = PANEL / 16 + M_TILES + 1, FIXED_CHUNKS = PANEL / 16;
constexpr int COPY_WORDS = (4 * MOVING_CHUNKS + 23) / 32 * 32 + 8, MOVING_ROW = 4 * COPY_WORDS;
constexpr int MOVING_ROWS = FRAMES * STEP_ROWS;
constexpr int RING = WINDOW + 2 * STEP_ROWS;                 // rows of the fixed matrix
constexpr int FIXED_WORDS = (PANEL / 4 + 31) / 32 * 32 + 4;  // eight rows are read at once: they begin 4 banks apart

struct __align__(16) Chunk {
    unsigned word[4];
};
// Rows of matrices on their way to shared memory, counted from the first that a block stages.
struct Rows {
    int bottom, width, y, x;  // rows from `bottom` on count as zeros
    bool wide;                // rows are whole chunks, which can be copied as such

    __device__ __forceinline__ void fetch(unsigned* to, const Byte* matrix, int row, int chunk) const {
        const int from = x + 16 * chunk;
        const bool has_row = (unsigned)(y + row) < (unsigned)bottom;
        const Byte* source = matrix + (long long)(has_row ? y + row : 0) * width;
        if (wide) {
            const bool inside = has_row && (unsigned)from < (unsigned)width;
            copy_four_words(to, reinterpret_cast<const unsigned*>(source + (inside ? from : 0)), inside);
            return;
        }
        Chunk read;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            read.word[i] = 0;
#pragma unroll
            for (int b = 0; b < 4; ++b)
                if (has_row && (unsigned)(from + 4 * i + b) < (unsigned)width)
                    read.word[i] |= (unsigned)source[from + 4 * i + b] << 8 * b;
        }
        *reinterpret_cast<Chunk*>(to) = read;
    }
};

// What a block does. It lies in shared memory: registers are for sums.
struct __align__(16) Work {
    const Byte *moving[FRAMES], *fixed;
    Rows moving_rows;
    Rows fixed_rows;  // counted so, the fixed row that ey n pairs with moving row r is r + WINDOW - n
    int rows, lead;   // moving rows to be worked through; elements staged before the first that overlaps with fixed column 0
    int first_iy, first_ix, first_pair, members;
};
constexpr int WORK_WORDS = sizeof(Work) / 4;

// Which work a block has; no rows where none overlap. One thread calls it.
__device__ __forceinline__ void describe(Work& work, const Problem& p, const Byte* lefts, const Byte* rights_of_all,
                                         int tiles_y, int tiles_x, int segments, int segment_rows, int panels) {
    const int block = (int)blockIdx.x, panel = block % panels, segment = block / panels % segments;
    const int part = block / panels / segments, tile = part % (tiles_y * tiles_x), bundle = part / (tiles_y * tiles_x);
    const int sets = MOVING_IS_LEFT ? 1 : ceil_div(p.rights_per_left, FRAMES);  // bundles of one fixed matrix
    const int of_fixed = MOVING_IS_LEFT ? 0 : bundle / sets, first_member = (bundle - of_fixed * sets) * FRAMES;
    const int moving_height = MOVING_IS_LEFT ? p.left_height : p.right_height;
    const int moving_width = MOVING_IS_LEFT ? p.left_width : p.right_width;
    const int fixed_height = MOVING_IS_LEFT ? p.right_height : p.left_height;
    const int fixed_width = MOVING_IS_LEFT ? p.right_width : p.left_width;
    const Byte* moving_matrices = MOVING_IS_LEFT ? lefts : rights_of_all;
    const Byte* fixed_matrices = MOVING_IS_LEFT ? rights_of_all : lefts;
    const bool moving_wide = moving_width % 16 == 0 && ((unsigned long long)moving_matrices & 15) == 0;
    const bool fixed_wide = fixed_width % 16 == 0 && ((unsigned long long)fixed_matrices & 15) == 0;

    work.members = min(FRAMES, (MOVING_IS_LEFT ? p.pairs : p.rights_per_left) - first_member);
    work.first_pair = of_fixed * p.rights_per_left + first_member;
    work.first_iy = tile / tiles_x * WINDOW;
    work.first_ix = tile % tiles_x * (16 * M_TILES);
    // Shifts of a right over its left have the other sign.
    const int first_ey = (MOVING_IS_LEFT ? p.shift_y0 : 1 - p.shift_y0 - p.shifts_y) + work.first_iy;
    const int first_ex = (MOVING_IS_LEFT ? p.shift_x0 : 1 - p.shift_x0 - p.shifts_x) + work.first_ix;
    const int row_first = max(0, first_ey) + segment * segment_rows, x = panel * PANEL, moving_x = (x + first_ex) & ~15;
    const int row_last = min(min(moving_height, fixed_height + first_ey + WINDOW - 1), row_first + segment_rows);
    const bool meet = x + first_ex < moving_width && x + first_ex + PANEL + 16 * M_TILES - 1 > 0;
    work.rows = meet ? row_last - row_first : 0;
    work.lead = x + first_ex - moving_x;
    work.moving_rows = {row_last, moving_width, row_first, moving_x, moving_wide};
    work.fixed_rows = {fixed_height, fixed_width, row_first - first_ey - WINDOW, x, fixed_wide};
    for (int f = 0; f < FRAMES; ++f) {
        const int pair = work.first_pair + min(f, work.members - 1);
        work.moving[f] = moving_matrices + (long long)(MOVING_IS_LEFT ? pair : pair % p.rights) * moving_height * moving_width;
    }
    work.fixed = fixed_matrices + (long long)of_fixed * fixed_height * fixed_width;
}

__device__ __forceinline__ void fetch_moving(unsigned* raw, const Work& work, int first) {
#pragma unroll 1
    for (int i = threadIdx.x; i < MOVING_ROWS * MOVING_CHUNKS; i += THREADS) {
        const int row = i / MOVING_CHUNKS;
        work.moving_rows.fetch(raw + 4 * i, work.moving[row / STEP_ROWS], first + row % STEP_ROWS, i - row * MOVING_CHUNKS);
    }
}
__device__ __forceinline__ void fetch_fixed(unsigned* ring, const Work& work, int first) {
#pragma unroll 1
    for (int i = threadIdx.x; i < STEP_ROWS * FIXED_CHUNKS; i += THREADS) {
        const int row = first + i / FIXED_CHUNKS, chunk = i % FIXED_CHUNKS;
        work.fixed_rows.fetch(ring + row % RING * FIXED_WORDS + 4 * chunk, work.fixed, row, chunk);
    }
}
// The four copies of the moving rows that have arrived.
__device__ __forceinline__ void copy_moving(unsigned* moving, const unsigned* raw) {
#pragma unroll 1
    for (int i = threadIdx.x; i < MOVING_ROWS * MOVING_CHUNKS; i += THREADS) {
        const int row = i / MOVING_CHUNKS, chunk = i - row * MOVING_CHUNKS;
        const Chunk own = *reinterpret_cast<const Chunk*>(raw + 4 * i);
        const unsigned next = chunk + 1 < MOVING_CHUNKS ? raw[4 * i + 4] : 0;
#pragma unroll
        for (int copy = 0; copy < 4; ++copy) {
            Chunk shifted;
#pragma unroll
            for (int w = 0; w < 4; ++w) shifted.word[w] = bytes_from(own.word[w], w < 3 ? own.word[(w + 1) % 4] : next, copy);
            *reinterpret_cast<Chunk*>(moving + row * MOVING_ROW + copy * COPY_WORDS + 4 * chunk) = shifted;
        }
    }
}

typedef int WarpSums[FRAMES][M_TILES][N_TILES][4];

// One row of the moving matrices against the fixed rows of all ey, over a warp's share of the columns.
// `moving`: this lane's first word; `fixed`: its row of each four 8 x 16 matrices; both at the first column.
__device__ __forceinline__ void multiply_row(const unsigned* moving, const unsigned* const (&fixed)[N_TILES / 2],
                                             WarpSums& sum) {
    constexpr int WORDS = 2 * M_TILES + 2, KEPT = WORDS - 4;  // of the fragments of all ex, and what the next step begins with
    unsigned hankel[FRAMES][WORDS];
#pragma unroll
    for (int f = 0; f < FRAMES; ++f)
#pragma unroll
        for (int i = 0; i < KEPT; ++i) hankel[f][i] = moving[f * (STEP_ROWS * MOVING_ROW) + 2 * i];
#pragma unroll 2
    for (int step = 0; step < STEPS_K; ++step) {
        unsigned b[N_TILES / 2][4];
#pragma unroll
        for (int n = 0; n < N_TILES / 2; ++n) load_matrices(fixed[n] + step * 8, b[n]);
#pragma unroll
        for (int f = 0; f < FRAMES; ++f) {
            unsigned(&h)[WORDS] = hankel[f];
#pragma unroll
            for (int i = KEPT; i < WORDS; ++i) h[i] = moving[f * (STEP_ROWS * MOVING_ROW) + step * 8 + 2 * i];
#pragma unroll
            for (int n = 0; n < N_TILES; ++n)
#pragma unroll
                for (int m = 0; m < M_TILES; ++m)
                    multiply_add_bytes(sum[f][m][n], h[2 * m], h[2 * m + 1], h[2 * m + 2], h[2 * m + 3],
                                       b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
#pragma unroll
            for (int i = 0; i < KEPT; ++i) h[i] = h[i + 4];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    hankel_bytes(const Byte* lefts, const Byte* rights_of_all, unsigned long long* planes, PROBLEM_PARAMETERS, int tiles_y,
                 int tiles_x, int segments, int segment_rows, int panels) {
    SHARED_FLOATS(shared);
    Work& work = *reinterpret_cast<Work*>(shared);
    unsigned* const raw = reinterpret_cast<unsigned*>(shared) + WORK_WORDS;
    unsigned* const moving = raw + MOVING_ROWS * MOVING_CHUNKS * 4;
    unsigned* const ring = moving + MOVING_ROWS * MOVING_ROW;
    if (threadIdx.x == 0) {
        const Problem p = PROBLEM_ARGUMENTS;
        describe(work, p, lefts, rights_of_all, tiles_y, tiles_x, segments, segment_rows, panels);
    }
    __syncthreads();
    if (work.rows <= 0) return;

    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32, own_row = warp % STEP_ROWS;
    const int own_words = warp / STEP_ROWS * (STEPS_K * 8), begin = work.lead + lane / 4 + lane % 4 * 4;
    const unsigned* const own_moving = moving + own_row * MOVING_ROW + begin % 4 * COPY_WORDS + begin / 4 + own_words;
    const int fixed_word = lane / 8 % 2 * 4 + own_words, own_ey = lane / 16 * 8 + lane % 8;
    WarpSums sum;
#pragma unroll
    for (int i = 0; i < FRAMES * SUMS; ++i) (&sum[0][0][0][0])[i] = 0;
    fetch_moving(raw, work, 0);
#pragma unroll 1
    for (int row = 0; row < WINDOW + STEP_ROWS; row += STEP_ROWS) fetch_fixed(ring, work, row);
#pragma unroll 1
    for (int row = 0; row < work.rows; row += STEP_ROWS) {
        staged();
        __syncthreads();
        copy_moving(moving, raw);
        __syncthreads();
        // The next rows are on their way while these are multiplied; what lies below the last row is zero.
        fetch_moving(raw, work, row + STEP_ROWS);
        fetch_fixed(ring, work, row + WINDOW + STEP_ROWS);
        const unsigned* fixed_row[N_TILES / 2];
#pragma unroll
        for (int n = 0; n < N_TILES / 2; ++n)
            fixed_row[n] = ring + (row + own_row + WINDOW - n * 16 - own_ey) % RING * FIXED_WORDS + fixed_word;
        multiply_row(own_moving, fixed_row, sum);
    }
    staged();

    // All warps' sums of one moving matrix after the other, added up and to its plane.
    int* const exchange = reinterpret_cast<int*>(raw);
#pragma unroll
    for (int f = 0; f < FRAMES; ++f) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SUMS; ++i) exchange[(warp * SUMS + i) * 32 + lane] = (&sum[f][0][0][0])[i];
        __syncthreads();
        if (f >= work.members) break;
#pragma unroll 1
        for (int i = threadIdx.x; i < SUMS * 32; i += THREADS) {
            const int of_lane = i % 32, at = i / 32 % 4, n = i / 128 % N_TILES, m = i / (128 * N_TILES);
            const int iy = work.first_iy + n * 8 + of_lane % 4 * 2 + at % 2;
            const int ix = work.first_ix + m * 16 + at / 2 * 8 + of_lane / 4;
            if (iy >= shifts_y || ix >= shifts_x) continue;
            unsigned long long total = 0;
            for (int w = 0; w < WARPS; ++w) total += (unsigned long long)exchange[w * SUMS * 32 + i];
            const int sy = MOVING_IS_LEFT ? iy : shifts_y - 1 - iy, sx = MOVING_IS_LEFT ? ix : shifts_x - 1 - ix;
            atomicAdd(planes + ((long long)(work.first_pair + f) * shifts_y + sy) * shifts_x + sx, total);
        }
    }
}
