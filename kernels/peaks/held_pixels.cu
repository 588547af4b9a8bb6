// What three images hold in common, to tell whether something may be drawn into them (xcorr_app/registration/weights/weighing.py):
// pixels of one value in all three, and of each image those that differ from its first; five numbers a block, of every
// BLOCKS-th stretch of pixels. The fifth is 1 where the edge that a block looks at, one of four of each image, has one
// value. A value that is no number equals none. A thread takes a pixel at a time. Floor: one read of the images.
// Document: none.
#include "problem.cuh"
#include "warp.cuh"

#define THREADS 256
#define IMAGES 3
#define EDGES 4
#define KINDS (IMAGES + 2)

extern "C" __global__ void __launch_bounds__(THREADS)
    held_pixels(const Right* one, const Right* two, const Right* three, int* counts, int height, int width, int blocks) {
    SHARED_FLOATS(shared);
    int* of_warps = reinterpret_cast<int*>(shared);  // [THREADS / WARP][KINDS]
    const double first_a = (double)one[0], first_b = (double)two[0], first_c = (double)three[0];
    int number[KINDS] = {0, 0, 0, 0, 0};
    for (int k = (int)blockIdx.x * THREADS + (int)threadIdx.x; k < height * width; k += blocks * THREADS) {
        const double a = (double)one[k], b = (double)two[k], c = (double)three[k];
        number[0] += a == b && a == c;
        number[1] += a != first_a;
        number[2] += b != first_b;
        number[3] += c != first_c;
    }
    if ((int)blockIdx.x < IMAGES * EDGES) {
        const int which = (int)blockIdx.x / EDGES;
        const Right* image = which == 0 ? one : which == 1 ? two : three;
        const int edge = (int)blockIdx.x % EDGES;
        const bool is_row = edge < 2;
        const long long begin = edge % 2 == 0 ? 0 : is_row ? (long long)(height - 1) * width : width - 1;
        const long long step = is_row ? 1 : width;
        const double value = (double)image[begin];
        for (int k = (int)threadIdx.x; k < (is_row ? width : height); k += THREADS)
            number[KINDS - 1] += !((double)image[begin + k * step] == value);
    }
    sums_of_warps(number, of_warps);
    if (threadIdx.x >= KINDS) return;
    int total = 0;
    for (int w = 0; w < THREADS / WARP; ++w) total += of_warps[KINDS * w + threadIdx.x];
    if (threadIdx.x == KINDS - 1) total = (int)blockIdx.x < IMAGES * EDGES && total == 0;
    counts[KINDS * blockIdx.x + threadIdx.x] = total;
}
