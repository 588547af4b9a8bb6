// How much the slope of the correlation scatters among the tiles of a frame, from what frame and reference do not share:
// xcorr_app/registration/standard_error/uncertainty.py defines it. A warp takes a frame; of its tiles it needs the sums that
// tile_products.cu left, and eighteen of the reference alone (one array of doubles a kind) with its variance of `noise`.
// Floor: the time of a launch.
// Document: none; Huber 1967 and White 1980 (doi 10.2307/1912934) for the estimator.
#include "problem.cuh"
#include "tile_scatter.cuh"

#define WARPS 4

extern "C" __global__ void __launch_bounds__(WARPS * WARP)
    tile_scatter(const double* products, const double* of_tiles, const double* noise, const int* peaks,
                 const double* offsets, double* scatters, int count, int height, int width, int references, int tiles,
                 int tile_pixels, int plain) {
    const int lane = (int)threadIdx.x % WARP, frame = (int)blockIdx.x * WARPS + (int)threadIdx.x / WARP;
    if (frame >= count) return;
    const int dy = peaks[2 * frame], dx = peaks[2 * frame + 1];
    const double overlap = (double)max(height - (dy < 0 ? -dy : dy), 0) * max(width - (dx < 0 ? -dx : dx), 0);
    const OfReference reference = {of_tiles, noise, references, references > 1 ? frame : 0, plain != 0};
    const Scatter found = scatter_of(products + (long long)frame * tiles * FROM_FRAME, reference, tiles, tile_pixels, overlap,
                                     offsets[3 * frame], offsets[3 * frame + 1], offsets[3 * frame + 2], lane);
    if (lane != 0) return;
    double* scatter = scatters + 4 * (long long)frame;
    scatter[0] = found.yy;
    scatter[1] = scatter[2] = found.yx;
    scatter[3] = found.xx;
}
