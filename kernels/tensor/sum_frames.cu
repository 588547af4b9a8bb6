// Adds the partial sums that hankel_frames.cu wrote to a workspace, in a fixed order, scales them back and writes
// planes.
// A thread = the sums that a thread of hankel_frames.cu held for one ey: two frames, eight apart, and two neighbouring
// ex.
// Floor: one read of the workspace and one write of the planes.
// Document: none.
#ifndef FRAMES_ARE_LEFT
#define FRAMES_ARE_LEFT 0
#endif
#ifndef N_TILES
#define N_TILES 32
#endif
#ifndef EX_TILES
#define EX_TILES 2
#endif
#define IN_FLIGHT 8  // pieces on their way at once
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"
#include "scaling.cuh"

constexpr int FRAMES = 64, THREADS = 128 * EX_TILES, FOURS = THREADS * N_TILES;

extern "C" __global__ void __launch_bounds__(THREADS)
    sum_frames(const float* workspace, float* planes, const Moments* left_tables, const Moments* right_tables,
               PROBLEM_PARAMETERS, int left_cells, int right_cells, int tiles_y, int tiles_x, int pieces) {
    const int n = (int)blockIdx.x % N_TILES, part = (int)blockIdx.x / N_TILES;
    const int tiles = tiles_y * tiles_x, tile = part % tiles, bundle = part / tiles;
    const int of_one = FRAMES_ARE_LEFT ? pairs : rights_per_left;
    const int bundles = ceil_div(of_one, FRAMES), one = bundle / bundles, first_frame = (bundle - one * bundles) * FRAMES;
    const float4* const from =
        reinterpret_cast<const float4*>(workspace) + (long long)part * pieces * FOURS + n * THREADS + threadIdx.x;
    float sum[4] = {};
#pragma unroll 1
    for (int first = 0; first < pieces; first += IN_FLIGHT) {
        float4 four[IN_FLIGHT];
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i)
            if (first + i < pieces) four[i] = __ldcg(from + (long long)(first + i) * FOURS);
#pragma unroll
        for (int i = 0; i < IN_FLIGHT; ++i) {
            if (first + i >= pieces) break;
            sum[0] += four[i].x;
            sum[1] += four[i].y;
            sum[2] += four[i].z;
            sum[3] += four[i].w;
        }
    }
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int iy = tile / tiles_x * N_TILES + n;
    const Moments of_reference = FRAMES_ARE_LEFT ? right_tables[(long long)(one + 1) * right_cells - 1]
                                                 : left_tables[(long long)(one + 1) * left_cells - 1];
    const double left_elements = (double)left_height * left_width, right_elements = (double)right_height * right_width;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const int member = first_frame + warp % 4 * 16 + 8 * i + lane / 4, pair = one * rights_per_left + member;
        if (member >= of_one || iy >= shifts_y) continue;
        const int frame = FRAMES_ARE_LEFT ? pair : pair % rights;
        const Moments of_frame = FRAMES_ARE_LEFT ? left_tables[(long long)(frame + 1) * left_cells - 1]
                                                 : right_tables[(long long)(frame + 1) * right_cells - 1];
        const Scaling left =
            scaling_of<!IsFloat<Left>::VALUE>(FRAMES_ARE_LEFT ? of_frame : of_reference, left_elements);
        const Scaling right =
            scaling_of<!IsFloat<Right>::VALUE>(FRAMES_ARE_LEFT ? of_reference : of_frame, right_elements);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const int ix = (tile % tiles_x * EX_TILES + warp / 4) * 8 + lane % 4 * 2 + j;
            if (ix >= shifts_x) continue;
            const int sy = FRAMES_ARE_LEFT ? shifts_y - 1 - iy : iy, sx = FRAMES_ARE_LEFT ? shifts_x - 1 - ix : ix;
            planes[((long long)pair * shifts_y + sy) * shifts_x + sx] = unscaled(sum[2 * i + j], left, right);
        }
    }
}
