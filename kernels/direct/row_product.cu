// Row product: a thread multiplies whole row segments, every element of one with every element of the other.
//
// A piece of BLOCK left elements times a piece of BLOCK right elements contributes to 2 * BLOCK - 1 shifts dx and each
// of its BLOCK^2 products is needed exactly once: no border of zeros, unlike a tile of shifts. A thread computes one dy
// of one pair, holds the 2 * BLOCK - 1 sums and the left piece in registers and streams the right piece: BLOCK^2 FMA
// for BLOCK / 2 16-byte loads (32: 1024 : 16).
//
// Rows wrap around: with period = the larger height, thread d runs over the left rows y', first for dy = d - period
// (those y' < d) and, from y' = d on, for dy = d. Every thread has the same number of rows, so no lane is ever idle. A
// block holds PAIRS pairs x SHIFT_ROWS values of d (pairs fastest, so that few lanes of a warp wrap around at different
// times) and one offset (left piece number - right piece number), and stages one column of pieces of each matrix at a
// time.
//
// Sums of neighbouring offsets are added to the same plane elements, so even and odd offsets use two launches: within
// one, only one thread adds to an element, in program order, and every run gives the same bits.
// STORE = 1: both matrices fit one piece, so each element is written once, and the plane need not be zeroed first. For
// full planes: all shifts of a pair of pieces are computed, and those outside the window are discarded.
// Document: goes beyond it ("Improving ratio of arithmetic instructions" taken to the limit: the row is the register
// tile).
// Floor: the FMA rate. On an H200: 0.86 of it for 256 pairs of 256^2, 0.75 for 4096 pairs of 64^2, 0.60 for 16384 pairs of
// 32^2.
#include "problem.cuh"
#include "shared_tile.cuh"

#ifndef BLOCK
#define BLOCK 32  // elements of a piece; a multiple of 4
#endif
#ifndef PAIRS
#define PAIRS 4  // pairs a block
#endif
#ifndef SHIFT_ROWS
#define SHIFT_ROWS 64  // values of d a block
#endif
#ifndef CHUNK_ROWS
#define CHUNK_ROWS 32  // left rows staged at a time
#endif
#ifndef WHOLE
#define WHOLE 0  // 1: all rows of both matrices fit CHUNK_ROWS, so the right rows are staged once, without a halo
#endif
#ifndef STORE
#define STORE 0
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

#define THREADS (PAIRS * SHIFT_ROWS)
#define PITCH (BLOCK + 4)  // rows of neighbouring d fall into different banks
#define RIGHT_ROWS (WHOLE ? CHUNK_ROWS : CHUNK_ROWS + SHIFT_ROWS - 1)
// 8 neighbouring lanes (a 16-byte access of a warp goes by eights) then fall into different banks: rounded up, and on.
#define PAIR_FLOATS (((CHUNK_ROWS + RIGHT_ROWS) * PITCH + 31) / 32 * 32 + 32 / (PAIRS < 8 ? PAIRS : 8))
#define SUMS (2 * BLOCK - 1)

__device__ __forceinline__ void emit(Sum* plane, const Problem& p, int dy, int first_dx, const Sum* sum) {
    const int iy = dy - p.shift_y0;
    if ((unsigned)iy >= (unsigned)p.shifts_y) return;
    int ix = first_dx - p.shift_x0;
    asm volatile("" : "+r"(ix));  // or the compiler computes all the comparisons ahead of the row loop, and spills
    Sum* row = plane + (long long)iy * p.shifts_x + ix;
    if (ix >= 0 && ix + SUMS <= p.shifts_x) {  // the usual case, in as few instructions as it takes
#pragma unroll
        for (int i = 0; i < SUMS; ++i) {
            if (STORE)
                row[i] = sum[i];
            else
                atomicAdd(row + i, sum[i]);
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < SUMS; ++i) {
        if ((unsigned)(ix + i) < (unsigned)p.shifts_x) {
            if (STORE)
                row[i] = sum[i];
            else
                atomicAdd(row + i, sum[i]);
        }
    }
}

// Offsets of one parity, the smallest (most pieces, most work) first: 0, 2, -2, ... or 1, -1, 3, ...
__device__ __forceinline__ int offset_of(int rank, int parity) {
    const int size = parity ? rank / 2 * 2 + 1 : (rank + 1) / 2 * 2;
    return (rank + parity) & 1 ? size : -size;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    row_product(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS, int parity) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(tiles);  // PAIRS times: [CHUNK_ROWS][PITCH] left, [RIGHT_ROWS][PITCH] right
    const int period = max(p.left_height, p.right_height);
    const int groups = ceil_div(period, SHIFT_ROWS), pair_groups = ceil_div(p.pairs, PAIRS);
    const int d_first = (int)blockIdx.x % groups * SHIFT_ROWS;
    const int pair_first = (int)blockIdx.x / groups % pair_groups * PAIRS;
    const int offset = offset_of((int)blockIdx.x / groups / pair_groups, parity);
    const int nth = threadIdx.x % PAIRS, d_local = threadIdx.x / PAIRS, d = d_first + d_local;
    const int pair = pair_first + nth;
    const bool active = pair < p.pairs && d < period;
    Sum* plane = plane_of(p, planes, min(pair, p.pairs - 1));
    const int left_pieces = ceil_div(p.left_width, BLOCK), right_pieces = ceil_div(p.right_width, BLOCK);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* own_left = tiles + nth * PAIR_FLOATS;
    const float* own_right = own_left + CHUNK_ROWS * PITCH;

    Sum sum[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) sum[i] = 0;
    const int first_dx = offset * BLOCK - (BLOCK - 1);
    // An offset that no pieces have, or none of whose shifts the window asks for.
    if (first_dx >= p.shift_x0 + p.shifts_x || first_dx + SUMS <= p.shift_x0) return;
    const int piece_last = min(right_pieces, left_pieces - offset);
    for (int right_piece = max(0, -offset); right_piece < piece_last; ++right_piece) {
        const int left_piece = right_piece + offset;
        for (int y = 0; y < p.left_height; y += CHUNK_ROWS) {
            const int rows = min(CHUNK_ROWS, p.left_height - y);
            __syncthreads();
#pragma unroll 1
            for (int k = 0; k < PAIRS && pair_first + k < p.pairs; ++k) {
                float* tile = tiles + k * PAIR_FLOATS;
                stage<BLOCK, PITCH, THREADS / 32>(tile, left_of(p, lefts, pair_first + k), p.left_width, p.left_height,
                                                  y, left_piece * BLOCK, rows, 0, warp, lane);
                stage<BLOCK, PITCH, THREADS / 32>(tile + CHUNK_ROWS * PITCH, right_of(p, rights_of_all, pair_first + k),
                                                  p.right_width, p.right_height,
                                                  WHOLE ? 0 : y - d_first - (SHIFT_ROWS - 1), right_piece * BLOCK,
                                                  WHOLE ? period : rows + SHIFT_ROWS - 1, period, warp, lane);
            }
            staged();
            __syncthreads();
            if (!active) continue;
            // Right row of the first left row: y' - d, wrapped around.
            const float* right_at = own_right + (WHOLE ? (d > 0 ? period - d : 0) : SHIFT_ROWS - 1 - d_local) * PITCH;
#pragma unroll 1
            for (int row = 0; row < rows; ++row) {
                Four left[BLOCK / 4];
#pragma unroll
                for (int i = 0; i < BLOCK / 4; ++i) left[i] = load_four(own_left + row * PITCH + 4 * i);
#pragma unroll
                for (int j = 0; j < BLOCK / 4; ++j) {
                    const Four right = load_four(right_at + 4 * j);
#pragma unroll
                    for (int k = 0; k < 4; ++k)
#pragma unroll
                        for (int i = 0; i < BLOCK; ++i) {
                            const int at = i - (4 * j + k) + BLOCK - 1;  // dx of the product, from first_dx
                            sum[at] = multiply_add(left[i / 4].at[i % 4], right.at[k], sum[at]);
                        }
                }
                right_at += PITCH;
                const int next = y + row + 1;
                if (next == d || next == p.left_height) {
                    emit(plane, p, next > d ? d : d - period, first_dx, sum);
                    // A literal zero would be created in other registers, and moving them back costs every row 10 %.
                    int keep = 0;
                    asm volatile("" : "+r"(keep));
#pragma unroll
                    for (int i = 0; i < SUMS; ++i) sum[i] = keep ? sum[i] : (Sum)0;
                    if (WHOLE) right_at = own_right;
                }
            }
        }
    }
}
