// Summed-area tables: that of every matrix, in one launch and one pass over the pixels.
//
// The overlap of a shift is a rectangle of the matrix. All rectangles of a window begin and end at a few rows and
// columns (2 S + 2 of each for shifts within +-S pixels), called edges. table[i][j] = moments of all pixels above row
// edge i and left of column edge j; row and column 0 are zero.
//
// Lefts and rights use the same kernel: `Right` is the type of whichever it processes.
// A block processes a strip of up to 32 rows, which row edges divide into bands. A thread adds up four columns; where a
// band ends, a scan along the warp and the sums of the preceding warps give the moments left of every column edge: a
// line of `cells`. The last block of a matrix to finish accumulates these lines downwards. Floats are added in double
// precision, integers in integers. The order is fixed: the same bits every run. Memory latency is hidden by loads in
// flight: two times ROWS_AT_ONCE rows per thread, copied to shared memory without passing through registers, and strips
// short enough that one image keeps every multiprocessor busy.
// `strips` has four numbers per strip: first row, end, first band, and a bit for every row after which a band ends.
// Document: "Normalisation", which accompanies the chapter on definition-based cross-correlation. Floor: one read of
// the pixels.
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"
#define COLUMNS 4
#include "vector_access.cuh"

#ifndef THREADS
#define THREADS 128
#endif
#ifndef ROWS_AT_ONCE
#define ROWS_AT_ONCE 4  // rows whose loads are issued together
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS (THREADS < 128 ? 8 : 768 / THREADS)
#endif

#define MAX_ROWS 32  // of a strip
#define IN_FLIGHT 6   // lines that a thread of the last block loads before the first is used

constexpr int WARPS = THREADS / 32;

__device__ __forceinline__ Moments sum_of(const Moments& a, const Moments& b) {
    Moments m = {a.sum + b.sum, a.squares + b.squares};
    return m;
}

// Moments of one column of a band.
template <bool IS_FLOAT>
struct Column {
    int sum = 0;  // of 32 rows
    long long squares = 0;
    __device__ __forceinline__ void add(int value) {
        sum += value;
        squares += (long long)value * value;
    }
    __device__ __forceinline__ Moments moments() const {
        Moments m = {(double)sum, (double)squares};
        return m;
    }
};
template <>
struct Column<true> {
    Moments m = {0, 0};
    __device__ __forceinline__ void add(double value) { m.add(value); }
    __device__ __forceinline__ Moments moments() const { return m; }
};
typedef Column<IsFloat<Right>::VALUE || sizeof(Right) == sizeof(double)> ColumnOfRight;

struct Kept {
    AlignedVector<Right> rows[2][ROWS_AT_ONCE][THREADS];  // a thread's own four columns
    Moments of_warp[2][WARPS];            // of a line, for two lines in turn
    Moments before[2][MAX_ROWS];         // of every band, what lies left of this pass's columns and of the next one's
    Moments of_group[THREADS];
    int is_last;
};

// Starts the copies of rows [first, last) of a thread's four columns.
__device__ __forceinline__ void start_rows(AlignedVector<Right> (&rows)[ROWS_AT_ONCE][THREADS], const Right* pixels, int width, int x,
                                           bool whole, int first, int last) {
    const Right* at = pixels + (long long)first * width + x;
    if (whole) {
#pragma unroll
        for (int i = 0; i < ROWS_AT_ONCE; ++i, at += width)
            if (first + i < last && x < width) copy_vector(&rows[i][threadIdx.x], at);
    } else {
        AlignedVector<Right> vector[ROWS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < ROWS_AT_ONCE; ++i, at += width)
#pragma unroll
            for (int e = 0; e < 4; ++e) vector[i].at[e] = first + i < last && x + e < width ? at[e] : (Right)0;
#pragma unroll
        for (int i = 0; i < ROWS_AT_ONCE; ++i) rows[i][threadIdx.x] = vector[i];
    }
    commit_copies();
}

// Writes a line of cells: moments of a band left of each column edge. Every thread of the block calls it.
// `edge`: which column edge lies right of each of the thread's columns, or -1; `at`: the band in its strip; `turn`: 0 and 1 by
// turns, also from pass to pass, as slow warps may still read what the line before left.
__device__ __forceinline__ void write_line(Kept& kept, ColumnOfRight (&column)[4], const int (&edge)[4], int at, int pass,
                                           int turn, Moments* line) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Moments upto[4];
    upto[0] = column[0].moments();
#pragma unroll
    for (int e = 1; e < 4; ++e) upto[e] = sum_of(upto[e - 1], column[e].moments());
    Moments along = upto[3], left = {0, 0};
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const Moments other = {__shfl_up_sync(0xffffffffu, along.sum, distance),
                               __shfl_up_sync(0xffffffffu, along.squares, distance)};
        if (lane >= distance) along = sum_of(along, other);
    }
    left.sum = __shfl_up_sync(0xffffffffu, along.sum, 1);
    left.squares = __shfl_up_sync(0xffffffffu, along.squares, 1);
    if (lane == 31) kept.of_warp[turn][warp] = along;
    __syncthreads();
    Moments before = {0, 0};
    if (pass > 0) before = kept.before[pass % 2][at];
#pragma unroll
    for (int w = 0; w < WARPS; ++w)
        if (w < warp) before = sum_of(before, kept.of_warp[turn][w]);
    if (threadIdx.x == THREADS - 1) kept.before[(pass + 1) % 2][at] = sum_of(before, along);
    if (lane > 0) before = sum_of(before, left);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        if (edge[e] > 0) line[edge[e] - 1] = sum_of(before, upto[e]);
        column[e] = ColumnOfRight();
    }
}

// A cell that another block wrote.
__device__ __forceinline__ Moments cell_at(const Moments* at) {
    Moments m = {__ldcg(&at->sum), __ldcg(&at->squares)};
    return m;
}

// Adds lines [first, last) of column j to `down`; with `table`, writes every sum at whose line a row edge lies.
template <typename Write>
__device__ __forceinline__ Moments run_down(Moments down, const Moments* cells, int column_cells, int first, int last, int j,
                                            const Write& write) {
    for (; first < last; first += IN_FLIGHT) {
        Moments cell[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i)
            if (first + i < last) cell[i] = cell_at(cells + (first + i) * column_cells + j);
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i)
            if (first + i < last) {
                down = sum_of(down, cell[i]);
                write(first + i, down);
            }
    }
    return down;
}

// The table of one matrix by one block: groups of threads share the lines, and begin with what the groups above have found.
__device__ __forceinline__ void make_table(Kept& kept, const Moments* cells, const int* edge_of_band, Moments* table,
                                           int bands, int row_edges, int column_cells) {
    const int pitch = column_cells + 1, across = min(column_cells, THREADS), groups = THREADS / across;
    const int group = (int)threadIdx.x / across, own = (int)threadIdx.x % across, share = ceil_div(bands, groups);
    const int first = group * share, last = group < groups ? min(bands, first + share) : 0;
    const Moments zero = {0, 0};
    for (int j = threadIdx.x; j < pitch; j += THREADS) table[j] = zero;
    for (int i = threadIdx.x; i < row_edges; i += THREADS) table[i * pitch] = zero;
    for (int j0 = 0; j0 < column_cells; j0 += across) {
        const int j = j0 + own, end = j < column_cells ? last : 0;
        Moments above = zero;
        if (groups > 1) {
            kept.of_group[threadIdx.x] = run_down(zero, cells, column_cells, first, end, j, [](int, const Moments&) {});
            __syncthreads();
            for (int g = 0; g < group && g < groups; ++g) above = sum_of(above, kept.of_group[g * across + own]);
        }
        run_down(above, cells, column_cells, first, end, j, [&](int band, const Moments& down) {
            const int edge = edge_of_band[band];
            if (edge > 0) table[edge * pitch + j + 1] = down;
        });
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    summed_area(const Right* images, const int* edge_of_column, const int* strips, const int* edge_of_band, Moments* cells,
                 int* arrived, Moments* tables, int height, int width, int strip_count, int bands, int row_edges,
                 int column_cells) {
    SHARED_FLOATS(scratch);
    Kept& kept = *reinterpret_cast<Kept*>(scratch);
    const int image = (int)blockIdx.x / strip_count;
    const int* strip = strips + (int)blockIdx.x % strip_count * 4;
    const int first = strip[0], last = strip[1];
    const Right* pixels = images + (long long)image * height * width;
    Moments* of_image = cells + (long long)image * bands * column_cells;
    const bool whole = width % 4 == 0 && is_aligned(images);
    int turn = 0;
    for (int pass = 0; pass * (4 * THREADS) < width; ++pass) {
        const int x = pass * (4 * THREADS) + (int)threadIdx.x * 4;
        start_rows(kept.rows[0], pixels, width, x, whole, first, last);
        start_rows(kept.rows[1], pixels, width, x, whole, first + ROWS_AT_ONCE, last);
        int edge[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) edge[e] = x + e < width ? edge_of_column[x + e + 1] : -1;
        ColumnOfRight column[4];
        unsigned ends = (unsigned)strip[3];
        Moments* line = of_image + strip[2] * column_cells;
        int band = 0;
        for (int y = first, batch = 0; y < last; y += ROWS_AT_ONCE, batch ^= 1) {
            staged_but<1>();
#pragma unroll 1
            for (int i = 0; i < ROWS_AT_ONCE && y + i < last; ++i) {
                if (x < width) {
                    const AlignedVector<Right> vector = kept.rows[batch][i][threadIdx.x];
#pragma unroll
                    for (int e = 0; e < 4; ++e) column[e].add(vector.at[e]);
                }
                if (ends & 1) {
                    write_line(kept, column, edge, band++, pass, turn, line);
                    turn ^= 1;
                    line += column_cells;
                }
                ends >>= 1;
            }
            start_rows(kept.rows[batch], pixels, width, x, whole, y + 2 * ROWS_AT_ONCE, last);
        }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        kept.is_last = atomicAdd(arrived + image, 1) == strip_count - 1;
        if (kept.is_last) arrived[image] = 0;  // for the next launch
    }
    __syncthreads();
    if (!kept.is_last) return;
    __threadfence();
    make_table(kept, of_image, edge_of_band, tables + (long long)image * row_edges * (column_cells + 1), bands, row_edges,
               column_cells);
}
