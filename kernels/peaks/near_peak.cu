// Exact neighbourhoods of peaks: the SIDE x SIDE sums around every pair's peak in single precision, and their scores,
// for records (peak.cuh) of peaks that were found in sums of lower precision, such as those of hankel.cu.
//
// Sub-pixel positions need the nine nearest values (SIDE 3). The ring around these, 16 values two shifts from the peak,
// is needed only where one of its values in lower precision comes within RING_MARGIN of the peak, and may be the higher
// one (SIDE 5). So with RING_MARGIN defined a launch skips the records of the other kind: a launch with SIDE 3 comes
// first, then one with SIDE 5 for the records that the first skipped. The records themselves contain the choice; in one
// of the two launches most blocks exit immediately.
//
// Every pair has its own shift, so pairs share nothing but memory. A lane processes four neighbouring columns of the
// right matrix, down a strip of its rows. Its last SIDE rows stay in a ring of registers; each row of left is
// multiplied with all of them, 36 or 100 products for six or eight elements of left and four of right. Rows are read as
// float4s: one for right, two or three for left. The needed elements begin at one of four offsets within those that are
// read, the same for the whole pair: for SIDE 3 each offset has its own instructions, for SIDE 5 the elements are
// selected. (With one column per lane, 4-byte reads that straddle two lines of 128 bytes were the limit.) Rows are
// loaded AHEAD rows early; the ring of registers has room for them.
// LANES lanes share a strip. Matrices whose rows are not all aligned are read element by element.
// Lanes reduce their sums (warp_reduce.cuh); everything after that is added in double precision, in a fixed order: the
// warps of a block, then the blocks of a pair, by the last block to finish. Every run gives the same bits.
//
// The record receives the exact value and the exact values around it, NaN for the ring where it was not needed; its
// position and its rival are kept. Where a neighbour is higher, the row becomes -1 - row, which means: use another
// engine. A record without a peak stays unchanged.
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: one read of the rights, or 9 (25) FMA
// per element; of the 43 to 46 (129) instructions for a row of four columns 36 (100) are FMA; for two integer types it
// has 66 (152).
// On an H200 0.28 us (0.47) per frame of 512 x 512 float32, of which reading takes 0.22; 0.25 (0.51) for uint16.
#ifndef SIDE
#define SIDE 5  // or 3
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef LANES
#define LANES 32  // that share the rows of a strip, side by side; fewer waste less of a narrow matrix
#endif
#ifndef AHEAD
#define AHEAD 1  // rows on their way to registers
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif
#ifndef NORMALIZE
#define NORMALIZE 1  // 0: the plain sums
#endif
#include "problem.cuh"
#include "shared_tile.cuh"
#include "vector_access.cuh"
#include "magic_number.cuh"
#define CENTRED 1
#include "zncc.cuh"
#include "warp_reduce.cuh"
#include "peak.cuh"

#define SHIFTS (SIDE * SIDE)
#define OWN 4                  // columns of a lane
#define SPAN (OWN + SIDE - 1)  // columns of left that they need
#define READ (3 * OWN)         // columns of left that are read for them, at most
#define ROUND (SIDE + AHEAD)   // rows after which the ring is where it was: those in use and those on their way
#define AROUND (PEAK_SIDE * PEAK_SIDE)  // values around a record's peak
#define IN_FLIGHT 16           // sums of other blocks that a thread of the last one loads before it uses the first

// How rows are read: whole float4s that are all inside, float4s that may lie outside, single elements that may.
enum Reading { INSIDE, VECTORS, ELEMENTS };

// Number of the first element that counts of those that are read of left, where only the run tells.
constexpr int ANY = -1;
// The instructions of four places fit the cache for instructions with nine products an element, not with 25.
constexpr bool SELECTS = SIDE > 3;

// Quads of left that are read where the first element that counts is number `offset`.
__device__ constexpr int quads_from(int offset) { return offset == ANY ? READ / OWN : (offset + SPAN + OWN - 1) / OWN; }

// Four neighbouring elements as the words that they are read as.
template <typename T>
struct alignas(4 * sizeof(T)) Packed {
    unsigned word[sizeof(T)];

    // One of them, less the centre of all, which is a whole number, and zero for floats.
    __device__ __forceinline__ float value(int e, float centre) const {
        const float value = magic_float<T>(word, e);
        return IsFloat<T>::VALUE ? value : value - (magic<T>() + centre);
    }
    __device__ __forceinline__ void set(int e, T value) {
        if constexpr (IsFloat<T>::VALUE) {
            word[e] = __float_as_uint(value);
        } else {
            constexpr int IN_WORD = 4 / sizeof(T), BITS = 8 * sizeof(T);
            const int at = e % IN_WORD * BITS;
            const unsigned all = (1u << BITS) - 1;
            word[e / IN_WORD] = (word[e / IN_WORD] & ~(all << at)) | ((unsigned)value & all) << at;
        }
    }
};

// The columns of a lane on their way down. OFFSET: see quads_from.
struct Columns {
    const Left* left_at;  // the first of the elements that are loaded next
    const Right* right_at;
    int left_width, right_width, left_height;
    int left_row;      // of the next load
    int offset;        // for ANY
    float left_centre, right_centre;
    int right_rows;    // that are still to be loaded; less than zero after those that follow them
    unsigned columns;  // a bit for every element that is read, left and then right: lies in its matrix
    Packed<Left> left_read[ROUND][3];
    Packed<Right> right_read[ROUND];
    float right[ROUND][OWN];
    Sum sum[SHIFTS];

    // At a matrix's edge and below the strip, elements outside have the value that adds nothing.
    template <Reading READING, typename Element>
    static __device__ __forceinline__ Packed<Element> read(const Element* at, unsigned inside, Element outside) {
        Packed<Element> vector = {};
#pragma unroll
        for (int i = 0; i < OWN; ++i) vector.set(i, outside);
        if (READING == ELEMENTS) {
#pragma unroll
            for (int i = 0; i < OWN; ++i)
                if (inside >> i & 1) vector.set(i, at[i]);
        } else if (READING == INSIDE || inside & 1) {
            vector = *reinterpret_cast<const Packed<Element>*>(at);
        }
        return vector;
    }
    template <Reading READING, int OFFSET>
    __device__ __forceinline__ void load(int slot) {
        const unsigned left_inside = (unsigned)left_row < (unsigned)left_height ? columns : 0;
#pragma unroll
        for (int q = 0; q < quads_from(OFFSET); ++q)
            left_read[slot][q] = read<READING>(left_at + OWN * q, left_inside >> OWN * q, (Left)left_centre);
        right_read[slot] = read<READING>(right_at, right_rows > 0 ? columns >> READ : 0, (Right)right_centre);
        left_at += left_width;
        right_at += right_width;
        ++left_row;
        --right_rows;
    }
    __device__ __forceinline__ float left_value(int slot, int i) const {
        return left_read[slot][i / OWN].value(i % OWN, left_centre);
    }
    // The products of a row of left with the rows of right that overlap with it.
    template <int OFFSET>
    __device__ __forceinline__ void multiply(int slot) {
        float left[SPAN];
        if (OFFSET == ANY) {
            float half[SPAN + 1];
#pragma unroll
            for (int i = 0; i < SPAN + 1; ++i)
                half[i] = offset & 2 ? left_value(slot, i + 2) : left_value(slot, i);
#pragma unroll
            for (int i = 0; i < SPAN; ++i) left[i] = offset & 1 ? half[i + 1] : half[i];
        } else {
#pragma unroll
            for (int i = 0; i < SPAN; ++i) left[i] = left_value(slot, OFFSET + i);
        }
#pragma unroll
        for (int c = 0; c < OWN; ++c) right[slot][c] = right_read[slot].value(c, right_centre);
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
    template <Reading READING, int OFFSET>
    __device__ __forceinline__ void round() {
#pragma unroll
        for (int i = 0; i < ROUND; ++i) {
            load<READING, OFFSET>((i + AHEAD) % ROUND);
            multiply<OFFSET>(i);
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

// Sums of products at the shifts around (dy, dx), over rows [first, last) of right and LANES * OWN columns from x0 on.
template <bool WHOLE, int OFFSET>
__device__ __forceinline__ void walk(const Problem& p, const Left* left, const Right* right, int dy, int dx, int first,
                                     int last, int x0, Columns& columns) {
    constexpr Reading GUARDED = WHOLE ? VECTORS : ELEMENTS;
    const int left_x0 = WHOLE ? (x0 + dx - SIDE / 2) & ~(OWN - 1) : x0 + dx - SIDE / 2;
    const int lane_x = (int)threadIdx.x % LANES * OWN, x = x0 + lane_x, left_x = left_x0 + lane_x;
    columns.offset = x0 + dx - SIDE / 2 - left_x0;
    columns.columns = inside_row(left_x, READ, p.left_width) | inside_row(x, OWN, p.right_width) << READ;
    columns.left_width = p.left_width;
    columns.left_height = p.left_height;
    columns.right_width = p.right_width;
    columns.left_row = first + dy - SIDE / 2;
    columns.right_rows = last - first;
    columns.left_at = left + (long long)columns.left_row * p.left_width + left_x;
    columns.right_at = right + (long long)first * p.right_width + x;
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) columns.load<GUARDED, OFFSET>(i);
    // Inside, no load of a whole round leaves a matrix.
    const int left_last = left_x0 + (31 + quads_from(OFFSET)) * OWN;
    const bool inside = left_x0 >= 0 && left_last <= p.left_width && x0 + 32 * OWN <= p.right_width;
    for (; columns.right_rows > 1 - SIDE - AHEAD; columns.round<GUARDED, OFFSET>()) {
        if constexpr (WHOLE && LANES == 32) {
            if (!inside || columns.left_row < 0) continue;
            for (int rows; (rows = min(columns.right_rows, p.left_height - columns.left_row)) >= ROUND;) {
                columns.round<INSIDE, OFFSET>();
            }
        }
    }
}

// Sums of the lane's task: LANES * OWN columns of one strip of rows of right, around the shift of element (iy, ix).
__device__ __forceinline__ void sum_task(const Problem& p, const Left* left, const Right* right, int iy, int ix,
                                         int task, int strip_rows, Columns& columns) {
    const int groups = ceil_div(p.right_width, LANES * OWN), strip = task / groups, x0 = task % groups * (LANES * OWN);
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;
    const Span ys = overlap_of_any(p.left_height, p.right_height, dy - SIDE / 2, SIDE);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx - SIDE / 2, SIDE);
    const int first = max(ys.first, strip * strip_rows), last = min(ys.last, (strip + 1) * strip_rows);
    columns.start();
    if (first >= last || x0 >= xs.last || x0 + LANES * OWN <= xs.first) return;
    const bool whole = (p.left_width | p.right_width) % 4 == 0 && is_aligned(left) && is_aligned(right);
    if (!whole) {
        walk<false, 0>(p, left, right, dy, dx, first, last, x0, columns);
        return;
    }
    if (SELECTS) {
        walk<true, ANY>(p, left, right, dy, dx, first, last, x0, columns);
        return;
    }
    switch ((x0 + dx - SIDE / 2) & (OWN - 1)) {
        case 0: walk<true, 0>(p, left, right, dy, dx, first, last, x0, columns); break;
        case 1: walk<true, 1>(p, left, right, dy, dx, first, last, x0, columns); break;
        case 2: walk<true, 2>(p, left, right, dy, dx, first, last, x0, columns); break;
        default: walk<true, 3>(p, left, right, dy, dx, first, last, x0, columns);
    }
}

// What is taken from elements before they are multiplied. A float sums up to 128 rows of four columns: whole numbers far from
// zero would leave it too few digits for their covariance. Floats are taken as they are: lefts that are scored have zero mean,
// and one factor around zero is enough.
template <typename Element>
__device__ __forceinline__ float centre_of(const Moments* tables, int cells, int index, double elements) {
    return IsFloat<Element>::VALUE ? 0 : scaling_of<true>(tables[(index + 1LL) * cells - 1], elements).centre;
}

// The warp's sums over its lanes.
__device__ __forceinline__ void reduce_lanes(Sum* sum, double* partial) {
    typedef WarpReduce<SHIFTS, 16> Reduced;
    const int lane = threadIdx.x % 32;
    Reduced::run(sum, lane);
#pragma unroll
    for (int i = 0; i < Reduced::KEPT; ++i) {
        const int index = Reduced::index(i, lane);
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

// Whether value i around a record's peak lies two shifts from it.
__device__ __forceinline__ bool is_in_ring(int i) { return i / PEAK_SIDE % 4 == 0 || i % PEAK_SIDE % 4 == 0; }

// Whether this launch recomputes the values around, if there is a peak: for all lanes of a warp the same.
__device__ __forceinline__ bool is_wanted(const double* record) {
    if (record[2] != record[2]) return false;
#ifdef RING_MARGIN
    const int lane = threadIdx.x % 32;
    const bool near = lane < AROUND && is_in_ring(lane) && record[4 + lane] > record[2] - RING_MARGIN;
    return __any_sync(0xffffffffu, near) == (SIDE == PEAK_SIDE);
#else
    return true;
#endif
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
    }
    __syncthreads();
    if (threadIdx.x < AROUND) {
        const int out = (PEAK_SIDE - SIDE) / 2, at = (int)threadIdx.x;
        const int place = (at / PEAK_SIDE - out) * SIDE + at % PEAK_SIDE - out;
        record[4 + at] = SIDE < PEAK_SIDE && is_in_ring(at) ? NOT_A_NUMBER : scores[place];
    }
    if (threadIdx.x > 0) return;
    const double peak = scores[SHIFTS / 2];
    bool better = false;  // is another one; of equal values the first counts
    for (int i = 0; i < SHIFTS; ++i) better |= scores[i] > peak || (scores[i] == peak && i < SHIFTS / 2);
    record[2] = peak;
    if (better) record[0] = -1 - record[0];
}

// What a block keeps in shared memory, as the loop leaves no registers for it.
struct Kept {
    double partial[WARPS * SHIFTS];
    int pair, segment, is_last;
    float left_centre, right_centre;
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
        kept.left_centre = centre_of<Left>(left_tables, left_rows * left_columns, kept.pair / p.rights_per_left,
                                           (double)p.left_height * p.left_width);
        kept.right_centre = centre_of<Right>(right_tables, right_rows * right_columns, kept.pair % p.rights,
                                             (double)p.right_height * p.right_width);
    }
    __syncthreads();
    {
        const double* record = records + (long long)kept.pair * PEAK_RECORD;
        if (!is_wanted(record)) return;
        Columns columns;
        columns.left_centre = kept.left_centre;
        columns.right_centre = kept.right_centre;
        sum_task(p, left_of(p, lefts, kept.pair), right_of(p, rights_of_all, kept.pair), (int)record[0], (int)record[1],
                 (kept.segment * WARPS * 32 + (int)threadIdx.x) / LANES, strip_rows, columns);
        reduce_lanes(columns.sum, kept.partial);
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
        if (threadIdx.x == 0) arrived[pair] = 0;  // for the next launch
        __threadfence();
        if (lane < SHIFTS) {
            sum = 0;
#pragma unroll 1
            for (int first = warp; first < segments; first += WARPS * IN_FLIGHT) {
                double part[IN_FLIGHT];
#pragma unroll
                for (int i = 0; i < IN_FLIGHT; ++i) {
                    const int s = first + i * WARPS;
                    part[i] = s < segments ? __ldcg(of_pair + s * SHIFTS + lane) : 0;
                }
#pragma unroll
                for (int i = 0; i < IN_FLIGHT; ++i) sum += part[i];
            }
            kept.partial[warp * SHIFTS + lane] = sum;
        }
        sum = sum_of_warps(kept.partial);
    }
    auto score = SCORE_OF_PAIR(p, pair);
    score.left.centre = kept.left_centre;
    score.right.centre = kept.right_centre;
    rewrite(p, score, sum, kept.partial, records + (long long)pair * PEAK_RECORD);
}
