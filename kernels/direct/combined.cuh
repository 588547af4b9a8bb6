// The tile of shifts of combined.cu and combined_peak.cu: what a block sums, and how; the header of combined.cu says why.
#pragma once

#include "problem.cuh"
#include "shared_tile.cuh"
#include "warp_reduce.cuh"

#ifndef TILE_X
#define TILE_X 8  // dx a thread; a multiple of 4 unless WARPS_X is 1
#endif
#ifndef TILE_Y
#define TILE_Y 8  // dy a thread
#endif
#ifndef WARPS_X
#define WARPS_X 4
#endif
#ifndef WARPS_Y
#define WARPS_Y 2
#endif
#ifndef WARPS_K
#define WARPS_K 1  // warps that share the steps of one tile
#endif
#ifndef CHUNK_ROWS
#define CHUNK_ROWS 32  // left rows staged at a time
#endif
#ifndef CHUNK_COLUMNS
#define CHUNK_COLUMNS 128  // right columns staged at a time; a multiple of 4
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2  // blocks an SM that the register count must allow
#endif

#define BLOCK_WARPS (WARPS_X * WARPS_Y * WARPS_K)
#define TILE (TILE_X * TILE_Y)
#define BLOCK_X (TILE_X * WARPS_X)
#define BLOCK_Y (TILE_Y * WARPS_Y)
#define LEFT_FOURS ((TILE_X + 6) / 4)
#define LEFT_COLUMNS ((CHUNK_COLUMNS + BLOCK_X + 3 + 3) / 4 * 4)
#define RIGHT_ROWS (CHUNK_ROWS + BLOCK_Y - 1)

// Staged strips of both matrices: [CHUNK_ROWS][LEFT_COLUMNS], then [RIGHT_ROWS][CHUNK_COLUMNS].
#define STAGED_FLOATS (CHUNK_ROWS * LEFT_COLUMNS + RIGHT_ROWS * CHUNK_COLUMNS)

// Sums the BLOCK_Y x BLOCK_X shifts from window element (iy, ix) on over one segment of the rows, and hands every finished
// sum inside the window to store(window row, window column, sum), each from one thread. False: the segment has no rows, and
// nothing was stored.
template <typename Store>
__device__ __forceinline__ bool sum_tiles(const Problem& p, const Left* left, const Right* right, int iy, int ix,
                                          int segment, int segment_rows, float* left_tile, const Store& store) {
    float* right_tile = left_tile + CHUNK_ROWS * LEFT_COLUMNS;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_k = warp % WARPS_K, tile = warp / WARPS_K;
    const int warp_x = tile % WARPS_X * TILE_X, warp_y = tile / WARPS_X * TILE_Y;
    const int dy = p.shift_y0 + iy, dx = p.shift_x0 + ix;  // first shift of the block

    // Left rows that overlap with a right row at a shift of the block, then this segment's part of them.
    const int y_first = max(0, dy) + segment * segment_rows;
    const int y_last = min(min(p.left_height, p.right_height + dy + BLOCK_Y - 1), y_first + segment_rows);
    if (segment > 0 && y_first >= y_last) return false;  // surplus worker
    const Span block_xs = overlap_of_any(p.left_width, p.right_width, dx, BLOCK_X);
    const Span xs = overlap_of_any(p.left_width, p.right_width, dx + warp_x, TILE_X);
    const int own_first = max(y_first, dy + warp_y);
    const bool surplus = iy + warp_y >= p.shifts_y || ix + warp_x >= p.shifts_x;  // a tile wholly outside the window
    const int own_last = surplus ? y_first : min(y_last, p.right_height + dy + warp_y + TILE_Y - 1);

    Sum sum[TILE];
#pragma unroll
    for (int i = 0; i < TILE; ++i) sum[i] = 0;

    for (int y = y_first; y < y_last; y += CHUNK_ROWS) {
        const int chunk_rows = min(CHUNK_ROWS, y_last - y);
        for (int x = block_xs.first / 4 * 4; x < block_xs.last; x += CHUNK_COLUMNS) {
            __syncthreads();
            stage<LEFT_COLUMNS, LEFT_COLUMNS, BLOCK_WARPS>(left_tile, left, p.left_width, y_last, y, x + dx,
                                                           chunk_rows, 0, warp, lane);
            stage<CHUNK_COLUMNS, CHUNK_COLUMNS, BLOCK_WARPS>(
                right_tile, right, p.right_width, p.right_height, y - dy - (BLOCK_Y - 1), x,
                chunk_rows + BLOCK_Y - 1, 0, warp, lane);
            staged();
            __syncthreads();
            // The warp's own steps in this chunk: rows x groups of four columns.
            const int row_first = max(0, own_first - y), rows = min(CHUNK_ROWS, own_last - y) - row_first;
            const int group_first = max(0, xs.first - x) / 4;
            const int groups = ceil_div(min(CHUNK_COLUMNS, xs.last - x), 4) - group_first;
            if (rows <= 0 || groups <= 0) continue;
            const int down = 32 * WARPS_K / groups, along = 32 * WARPS_K % groups;
            int row = (warp_k * 32 + lane) / groups, group = (warp_k * 32 + lane) % groups;
            const float* left_start = left_tile + row_first * LEFT_COLUMNS + group_first * 4 + warp_x;
            const float* right_start =
                right_tile + (row_first + BLOCK_Y - 1 - warp_y) * CHUNK_COLUMNS + group_first * 4;
            while (row < rows) {
                const float* left_at = left_start + row * LEFT_COLUMNS + group * 4;
                const float* right_at = right_start + row * CHUNK_COLUMNS + group * 4;
                Four window[LEFT_FOURS];
#pragma unroll
                for (int i = 0; i < LEFT_FOURS; ++i) window[i] = load_four(left_at + 4 * i);
#pragma unroll
                for (int j = 0; j < TILE_Y; ++j) {
                    const Four four = load_four(right_at - j * CHUNK_COLUMNS);
#pragma unroll
                    for (int k = 0; k < 4; ++k)
#pragma unroll
                        for (int i = 0; i < TILE_X; ++i)
                            sum[j * TILE_X + i] = multiply_add(window[(k + i) / 4].at[(k + i) % 4], four.at[k],
                                                               sum[j * TILE_X + i]);
                }
                row += down;
                group += along;
                if (group >= groups) {
                    group -= groups;
                    ++row;
                }
            }
        }
    }

    typedef WarpReduce<TILE, 16> Reduced;
    Reduced::run(sum, lane);
    if (WARPS_K == 1) {
#pragma unroll
        for (int i = 0; i < Reduced::KEPT; ++i) {
            const int index = Reduced::index(i, lane);
            const int sy = iy + warp_y + index / TILE_X, sx = ix + warp_x + index % TILE_X;
            if (index >= 0 && sy < p.shifts_y && sx < p.shifts_x) store(sy, sx, sum[i]);
        }
        return true;
    }
    // The warps of a tile add up through shared memory, in their order.
    Sum* partial = reinterpret_cast<Sum*>(left_tile);  // [tiles][WARPS_K][TILE]
    __syncthreads();
#pragma unroll
    for (int i = 0; i < Reduced::KEPT; ++i) {
        const int index = Reduced::index(i, lane);
        if (index >= 0) partial[warp * TILE + index] = sum[i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < WARPS_X * WARPS_Y * TILE; i += BLOCK_WARPS * 32) {
        const int of_tile = i / TILE, index = i % TILE;
        Sum total = 0;
#pragma unroll
        for (int k = 0; k < WARPS_K; ++k) total += partial[(of_tile * WARPS_K + k) * TILE + index];
        const int sy = iy + of_tile / WARPS_X * TILE_Y + index / TILE_X;
        const int sx = ix + of_tile % WARPS_X * TILE_X + index % TILE_X;
        if (sy < p.shifts_y && sx < p.shifts_x) store(sy, sx, total);
    }
    return true;
}
