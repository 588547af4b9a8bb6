// Exact neighbourhoods of peaks: the 5 x 5 sums around every pair's peak in single precision, and their scores, for
// records (peak.cuh) of peaks that were sought in sums of lower precision, as those of hankel.cu are.
//
// Every pair has its own shift, so pairs share nothing but memory. A lane owns four neighbouring columns of the right
// matrix and walks down a strip of its rows. Its last five rows stay in a ring of registers; each row of left meets all
// of them, 100 products for eight elements of left and four of right. Rows are read 16 bytes at a time: one read for
// right, three for left, whose place is aligned for one shift in four only: eight of the twelve elements are selected.
// (Reads of 4 bytes that straddle two lines of 128 bytes were what bound a lane with one column.) Rows are loaded AHEAD
// rows early. LANES lanes share a strip. Matrices whose rows are not all aligned are read element by element.
// Lanes fold their sums (fold.cuh), everything after that is added in double precision, in a fixed order: the warps of a
// block, then the blocks of a pair, by the one that comes last. Every run gives the same bits.
//
// The record gets the exact value and the exact values around; its place and its rival stay. Where a neighbour is the
// better peak, the row becomes -1 - row: ask another engine. A record without a peak stays as it is.
// Document: none; KERNELS.md, "correlation as a Hankel product". Floor: one read of the rights, or 25 FMA an element;
// of the 130 instructions of four columns' row 100 are FMA.
#ifndef WARPS
#define WARPS 4
#endif
#ifndef LANES
#define LANES 32  // that share the rows of a strip, side by side; fewer waste less of a narrow matrix
#endif
#ifndef AHEAD
#define AHEAD 1  // rows on their way to registers, up to 4
#endif
#ifndef PREFETCH
#define PREFETCH 1  // 1: rows are sent for, to the L2 cache, two rounds before that
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif
#ifndef NORMALIZE
#define NORMALIZE 1  // 0: the plain sums
#endif
#include "problem.cuh"
#include "tile.cuh"
#include "quad.cuh"
#include "zncc.cuh"
#include "fold.cuh"
#include "peak.cuh"

#define SIDE 5
#define SHIFTS (SIDE * SIDE)
#define OWN 4                  // columns of a lane
#define SPAN (OWN + SIDE - 1)  // columns of left that they meet
#define READ (3 * OWN)         // columns of left that are read for them
#define ROUND SIDE             // rows after which the ring is where it was

// How rows are read: whole quads that are all inside, quads that may lie outside, single elements that may.
enum Reading { INSIDE, QUADS, ELEMENTS };

// Sends for ROUND rows of a warp's columns, to the L2 cache, two rounds before they are loaded: a lane for the sector of
// its element of every other row.
template <typename Element>
__device__ __forceinline__ void send_for(const Element* at, int width) {
#ifdef __CUDA_ARCH__
    at += (long long)(2 * ROUND + (int)threadIdx.x % 2) * width;
#pragma unroll
    for (int i = 0; i < ROUND; i += 2) {
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
        at += 2 * (long long)width;
    }
#endif
}

// The columns of a lane on their way down.
struct Columns {
    const Left* left_at;  // the first of the elements that are loaded next
    const Right* right_at;
    int left_width, right_width, left_height;
    int row, last_row;  // of right: of the next load, and the end
    int left_down;      // row of left_at in its matrix, less `row`
    int offset;         // of the first element of left that counts, in those that are read
    unsigned columns;   // a bit for every element that is read, left and then right: lies in its matrix
    Quad<Left> left_read[ROUND][3];
    Quad<Right> right_read[ROUND];
    float right[ROUND][OWN];
    Sum sum[SHIFTS];

    // At a matrix's rim what lies outside is zero, and so is what lies below the strip.
    template <Reading READING, typename Element>
    static __device__ __forceinline__ Quad<Element> read(const Element* at, unsigned inside) {
        Quad<Element> quad = {{0, 0, 0, 0}};
        if (READING == ELEMENTS) {
#pragma unroll
            for (int i = 0; i < OWN; ++i)
                if (inside >> i & 1) quad.at[i] = at[i];
        } else if (READING == INSIDE || inside & 1) {
            quad = *reinterpret_cast<const Quad<Element>*>(at);
        }
        return quad;
    }
    template <Reading READING>
    __device__ __forceinline__ void load(int slot) {
        const unsigned left_inside = (unsigned)(row + left_down) < (unsigned)left_height ? columns : 0;
#pragma unroll
        for (int q = 0; q < 3; ++q) left_read[slot][q] = read<READING>(left_at + OWN * q, left_inside >> OWN * q);
        right_read[slot] = read<READING>(right_at, row < last_row ? columns >> READ : 0);
        left_at += left_width;
        right_at += right_width;
        ++row;
    }
    // The products of a row of left with the rows of right that meet it.
    __device__ __forceinline__ void multiply(int slot) {
        float half[SPAN + 1], left[SPAN];
        const Quad<Left>* quad = left_read[slot];
#pragma unroll
        for (int i = 0; i < SPAN + 1; ++i)
            half[i] = (float)(offset & 2 ? quad[(i + 2) / OWN].at[(i + 2) % OWN] : quad[i / OWN].at[i % OWN]);
#pragma unroll
        for (int i = 0; i < SPAN; ++i) left[i] = offset & 1 ? half[i + 1] : half[i];
#pragma unroll
        for (int c = 0; c < OWN; ++c) right[slot][c] = (float)right_read[slot].at[c];
#pragma unroll
        for (int j = 0; j < SIDE; ++j)
#pragma unroll
            for (int c = 0; c < OWN; ++c)
#pragma unroll
                for (int k = 0; k < SIDE; ++k) {
                    Sum& of_shift = sum[j * SIDE + k];
                    of_shift = multiply_add(left[c + k], right[(slot + ROUND - j) % ROUND][c], of_shift);
                }
    }
    // Nothing is above the first row; AHEAD rows are on their way.
    __device__ __forceinline__ void start() {
#pragma unroll
        for (int i = 0; i < SIDE - 1; ++i)
#pragma unroll
            for (int c = 0; c < OWN; ++c) right[ROUND - 1 - i][c] = 0;
#pragma unroll
        for (int i = 0; i < SHIFTS; ++i) sum[i] = 0;
    }
    template <Reading READING>
    __device__ __forceinline__ void round() {
#pragma unroll
        for (int i = 0; i < ROUND; ++i) {
            load<READING>((i + AHEAD) % ROUND);
            multiply(i);
#ifdef __CUDA_ARCH__
            asm volatile("" : "+r"(left_width), "+r"(right_width));  // a row after the other, not a pointer for each
#endif
        }
    }
};

// Of `count` elements from x on, a bit for each that lies in a row of `width`.
__device__ __forceinline__ unsigned inside_row(int x, int count, int width) {
    unsigned bits = 0;
#pragma unroll
    for (int i = 0; i < count; ++i) bits |= (unsigned)((unsigned)(x + i) < (unsigned)width) << i;
    return bits;
}

// Sums of 25 products around shift (dy, dx) over rows [first, last) of right and LANES * OWN columns from x0 on.
template <bool WHOLE>
__device__ __forceinline__ void walk(const Problem& p, const Left* left, const Right* right, int dy, int dx, int first,
                                     int last, int x0, Columns& columns) {
    constexpr Reading GUARDED = WHOLE ? QUADS : ELEMENTS;
    const int offset = WHOLE ? (x0 + dx - SIDE / 2) & (OWN - 1) : 0;
    const int x = x0 + (int)threadIdx.x % LANES * OWN, left_x = x + dx - SIDE / 2 - offset;
    columns.offset = offset;
    columns.columns = inside_row(left_x, READ, p.left_width) | inside_row(x, OWN, p.right_width) << READ;
    columns.left_down = dy - SIDE / 2;
    columns.left_width = p.left_width;
    columns.left_height = p.left_height;
    columns.right_width = p.right_width;
    columns.row = first;
    columns.last_row = last;
    columns.left_at = left + (long long)(first + columns.left_down) * p.left_width + left_x;
    columns.right_at = right + (long long)first * p.right_width + x;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) columns.load<GUARDED>(i);
    // Inside, no load of a whole round leaves a matrix.
    const int left_x0 = x0 + dx - SIDE / 2 - offset;
    const bool inside = left_x0 >= 0 && left_x0 + 31 * OWN + READ <= p.left_width && x0 + 32 * OWN <= p.right_width;
    const int last_whole = inside ? least(last, p.left_height - columns.left_down) - ROUND : -1;
    while (columns.row < last + SIDE - 1 + AHEAD) {
        if (!WHOLE || LANES < 32 || columns.row + columns.left_down < 0 || columns.row > last_whole) {
            columns.round<GUARDED>();
            continue;
        }
        if (PREFETCH && columns.row <= last_whole - 2 * ROUND - 2) {
            send_for(columns.left_at, p.left_width);
            send_for(columns.right_at, p.right_width);
        }
        columns.round<INSIDE>();
    }
}

// Sums of the lane's task: LANES * OWN columns of one strip of rows of right, around the shift of element (iy, ix).
__device__ __forceinline__ void sum_task(const Problem& p, const Left* left, const Right* right, int iy, int ix,
                                         int task, int strip_rows, Columns& columns) {
    const int groups = ceil_div(p.right_width, LANES * OWN), strip = task / groups, x0 = task % groups * (LANES * OWN);
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;
    const Span ys = overlap_of_any(p.left_height, p.right_height, dy - SIDE / 2, SIDE);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx - SIDE / 2, SIDE);
    const int first = most(ys.first, strip * strip_rows), last = least(ys.last, (strip + 1) * strip_rows);
    columns.start();
    if (first >= last || x0 >= xs.last || x0 + LANES * OWN <= xs.first) return;
    const bool whole = (p.left_width | p.right_width) % 4 == 0 && is_aligned(left) && is_aligned(right);
    if (whole)
        walk<true>(p, left, right, dy, dx, first, last, x0, columns);
    else
        walk<false>(p, left, right, dy, dx, first, last, x0, columns);
}

// The warp's sums over its lanes.
__device__ __forceinline__ void fold(Sum* sum, double* partial) {
    typedef Fold<SHIFTS, 16> Folded;
    const int lane = threadIdx.x % 32;
    Folded::run(sum, lane);
#pragma unroll
    for (int i = 0; i < Folded::KEPT; ++i) {
        const int index = Folded::index(i, lane);
        if (index >= 0) partial[threadIdx.x / 32 * SHIFTS + index] = (double)sum[i];
    }
}

// What the warps of the block have in `partial`, added up in their order: for the first SHIFTS threads.
__device__ __forceinline__ double sum_of_warps(const double* partial) {
    __syncthreads();
    double sum = 0;
    for (int warp = 0; threadIdx.x < SHIFTS && warp < WARPS; ++warp) sum += partial[warp * SHIFTS + threadIdx.x];
    __syncthreads();
    return sum;
}

// Scores of the sums that the first SHIFTS threads hold, and the record; `scores` is room for as many.
template <typename Score>
__device__ __forceinline__ void rewrite(const Problem& p, const Score& score, double sum, double* scores,
                                        double* record) {
    if (threadIdx.x < SHIFTS) {
        const int y = (int)record[0] + (int)threadIdx.x / SIDE - SIDE / 2;
        const int x = (int)record[1] + (int)threadIdx.x % SIDE - SIDE / 2;
        const bool inside = y >= 0 && y < p.shifts_y && x >= 0 && x < p.shifts_x;
        scores[threadIdx.x] = inside ? score.line(y).exact(sum, x) : NOT_A_NUMBER;
        record[4 + threadIdx.x] = scores[threadIdx.x];
    }
    __syncthreads();
    if (threadIdx.x > 0) return;
    const double peak = scores[SHIFTS / 2];
    bool better = false;  // is another one; of equal values the first counts
    for (int i = 0; i < SHIFTS; ++i) better |= scores[i] > peak || (scores[i] == peak && i < SHIFTS / 2);
    record[2] = peak;
    if (better) record[0] = -1 - record[0];
}

// What a block keeps in shared memory, as the walk leaves no registers for it.
struct Kept {
    double partial[WARPS * SHIFTS];
    int pair, segment, is_last;
};

extern "C" __global__ void __launch_bounds__(WARPS * 32, MIN_BLOCKS)
    near_peak(const Left* lefts, const Right* rights_of_all, double* workspace, int* arrived, const Moments* left_tables,
              const Moments* right_tables, const int* shift_rows, const int* shift_columns, double* records,
              PROBLEM_PARAMETERS, int segments, int strip_rows, NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(scratch);
    Kept& kept = *reinterpret_cast<Kept*>(scratch);
    if (threadIdx.x == 0) {
        // Neighbouring blocks take the same rows of different pairs: a left that pairs share is read once for many.
        kept.pair = (int)blockIdx.x % p.pairs;
        kept.segment = (int)blockIdx.x / p.pairs;
    }
    __syncthreads();
    {
        const double* record = records + (long long)kept.pair * PEAK_RECORD;
        if (record[2] != record[2]) return;
        Columns columns;
        sum_task(p, left_of(p, lefts, kept.pair), right_of(p, rights_of_all, kept.pair), (int)record[0], (int)record[1],
                 (kept.segment * WARPS * 32 + (int)threadIdx.x) / LANES, strip_rows, columns);
        fold(columns.sum, kept.partial);
    }
    double sum = sum_of_warps(kept.partial);
    const int pair = kept.pair, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (segments > 1) {
        double* of_pair = workspace + (long long)pair * segments * SHIFTS;
        if (threadIdx.x < SHIFTS) of_pair[kept.segment * SHIFTS + (int)threadIdx.x] = sum;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) kept.is_last = atomicAdd(arrived + pair, 1) == segments - 1;
        __syncthreads();
        if (!kept.is_last) return;
        __threadfence();
        if (lane < SHIFTS) {
            sum = 0;
#pragma unroll 4
            for (int s = warp; s < segments; s += WARPS) sum += __ldcg(of_pair + s * SHIFTS + lane);
            kept.partial[warp * SHIFTS + lane] = sum;
        }
        sum = sum_of_warps(kept.partial);
    }
    rewrite(p, SCORE_OF_PAIR(p, pair), sum, kept.partial, records + (long long)pair * PEAK_RECORD);
}
