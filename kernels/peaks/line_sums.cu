// What lines of images tell at a glance (xcorr_app/registration/weights/line_offsets.py), in double precision. Of rows first, first
// + 2, ... of two images: sums of slope times difference, and of the slope squared, where each odd row is compared with
// the mean of the two beside it: a block takes one such row, and leaves two numbers. Of a third image: means of GROUPS
// parts of every row, then of every column; a thread of the blocks that follow takes a part of a line. Floor: one read of
// the images.
// Document: Lucas and Kanade 1981, for the displacement of odd rows.
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 128
#define GROUPS 16

extern "C" __global__ void __launch_bounds__(THREADS)
    line_sums(const Right* one, const Right* two, const Right* three, double* sums, double* means, int height, int width,
              int first, int pairs) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [THREADS / WARP][2]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    if ((int)blockIdx.x >= 2 * pairs) {
        const int k = ((int)blockIdx.x - 2 * pairs) * THREADS + (int)threadIdx.x;
        if (k >= GROUPS * (height + width)) return;
        // Neighbouring threads take neighbouring columns, or parts of one row.
        const bool is_row = k < GROUPS * height;
        const int at = is_row ? k : k - GROUPS * height;
        const int line = is_row ? at / GROUPS : at % width, group = is_row ? at % GROUPS : at / width;
        const int count = (is_row ? width : height) / GROUPS;
        const long long next = is_row ? 1 : width;
        const Right* pixels = three + (is_row ? (long long)line * width : line) + group * count * next;
        double sum = 0.0;
        for (int i = 0; i < count; ++i) sum += (double)pixels[i * next];
        means[(is_row ? 0 : GROUPS * height) + line * GROUPS + group] = sum / count;
        return;
    }
    const int pair = (int)blockIdx.x % pairs;
    const Right* odd = ((int)blockIdx.x < pairs ? one : two) + (long long)(first + 2 * pair + 1) * width;
    double shared_sum = 0.0, own = 0.0;
    for (int x = (int)threadIdx.x + 1; x < width - 1; x += THREADS) {
        const double after = ((double)odd[x + 1 - width] + (double)odd[x + 1 + width]) / 2;
        const double before = ((double)odd[x - 1 - width] + (double)odd[x - 1 + width]) / 2;
        const double slope = (after - before) / 2;
        const double differs = ((double)odd[x - width] + (double)odd[x + width]) / 2 - (double)odd[x];
        shared_sum += slope * differs;
        own += slope * slope;
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        shared_sum += __shfl_xor_sync(ALL_LANES, shared_sum, distance);
        own += __shfl_xor_sync(ALL_LANES, own, distance);
    }
    if (lane == 0) {
        of_warps[2 * warp] = shared_sum;
        of_warps[2 * warp + 1] = own;
    }
    __syncthreads();
    if (threadIdx.x >= 2) return;
    double total = 0.0;
    for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[2 * w + threadIdx.x];
    sums[2 * blockIdx.x + threadIdx.x] = total;
}
