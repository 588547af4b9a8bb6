// Combined: several dx and several dy per thread, the pixels of the overlap spread over the lanes.
//
// A warp computes a tile of TILE_Y x TILE_X shifts. In one step a lane takes four neighbouring columns x of the right
// matrix and one left row y', reads right[y' - dy][x ... x+3] for the TILE_Y values of dy and left[y'][x + dx ...] for
// the TILE_X values of dx by 16-byte loads from shared memory, and forms 4 * TILE_X * TILE_Y products in registers. The
// lanes take the steps of the tile's own overlap in linear order (row by row), so nothing outside the overlap is
// multiplied except at the border of a tile. At the end the lanes reduce their sums (warp_reduce.cuh).
//
// A block stages strips of both matrices for WARPS_Y x WARPS_X tiles, WARPS_K warps per tile. If there are few pairs,
// rows are split into segments: segment s writes plane s of a workspace, and sum_segments.cu adds these planes in
// order, so every run gives the same bits.
//
// Document: "Improving ratio of arithmetic instructions" and "Work distribution"; the shuffles of the document's
// combination (FMA : shuffles = 256 : 60) are replaced by broadcast and vector loads, 4 * TILE_X * TILE_Y FMA for
// TILE_Y + (TILE_X + 3) / 4 loads (8 x 8: 256 : 11).
// Floor: the FMA rate, reduced by the border of the tiles. On an H200: 0.69 of it for 256 frames of 512^2 within +-8
// pixels, 0.66 for full planes of 256^2 in large batches, 0.55 for a single pair (row_product.cu: 0.86 in large
// batches).
#include "combined.cuh"

// Tiles are visited from the middle of the window outwards: the largest overlaps first.
__device__ __forceinline__ int outwards(int rank, int count) {
    const int middle = (count - 1) / 2;
    return rank & 1 ? middle + (rank + 1) / 2 : middle - rank / 2;
}

extern "C" __global__ void __launch_bounds__(BLOCK_WARPS * 32, MIN_BLOCKS)
    combined(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS, int segments,
             int segment_rows) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(staging);
    const int tiles_x = ceil_div(p.shifts_x, BLOCK_X), tiles_y = ceil_div(p.shifts_y, BLOCK_Y);
    int task = (int)blockIdx.x;
    const int segment = task % segments;
    task /= segments;
    const int ix = outwards(task % tiles_x, tiles_x) * BLOCK_X;
    task /= tiles_x;
    const int iy = outwards(task % tiles_y, tiles_y) * BLOCK_Y;
    const int pair = task / tiles_y;
    Sum* plane = plane_of(p, planes, pair) + (long long)segment * p.pairs * p.shifts_y * p.shifts_x;
    sum_tiles(p, left_of(p, lefts, pair), right_of(p, rights_of_all, pair), iy, ix, segment, segment_rows, staging,
              [&](int sy, int sx, Sum sum) { plane[(long long)sy * p.shifts_x + sx] = sum; });
}
