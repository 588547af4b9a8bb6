// Whether any row or column of an image, or two, in any of eight parts of it, may be stuck: its mean over nine pixels lies
// beyond those of the lines beside it by more than LIMIT median steps between lines (xcorr_app/registration/weights/lines.py).
// Without sorting: more than half of the steps are smaller than a LIMIT-th of the most that any lies beyond. A block
// for the rows and one for the columns; each leaves 1 or 0. The means (2, 8, larger side), in double precision, go through
// memory. Lines of the rim are mirrored there; a value that is no number counts as zero. A thread takes a part of a
// line at a time. Floor: one read of 72 pixels a line.
// Document: none.
#include "problem.cuh"
#include "numbers.cuh"
#include "warp.cuh"

#ifndef LIMIT
#define LIMIT 1.0
#endif
#define THREADS 1024
#define PARTS 8
#define OF_PART 9

extern "C" __global__ void __launch_bounds__(THREADS)
    stuck_lines(const Right* image, double* of_axes, int* found, int height, int width) {
    SHARED_FLOATS(shared);
    double* most_of_warps = reinterpret_cast<double*>(shared);            // [THREADS / WARP]
    int* smaller_of_warps = reinterpret_cast<int*>(most_of_warps + THREADS / WARP);  // [THREADS / WARP]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const bool rows = blockIdx.x == 0;
    const int lines = rows ? height : width, along = rows ? width : height;
    const long long next_line = rows ? width : 1, next_pixel = rows ? 1 : width;
    double* means = of_axes + (long long)blockIdx.x * PARTS * (height > width ? height : width);
    for (int k = (int)threadIdx.x; k < PARTS * lines; k += THREADS) {
        const int part = k / lines, line = k - part * lines;
        const int begin = part * along / PARTS, end = (part + 1) * along / PARTS;
        double sum = 0.0;
#pragma unroll
        for (int i = 1; i <= OF_PART; ++i)
            sum += number_of(image[line * next_line + (begin + (end - begin) * i / (OF_PART + 1)) * next_pixel]);
        means[k] = sum / OF_PART;
    }
    __syncthreads();
    double most = 0.0;
    for (int k = (int)threadIdx.x; k < PARTS * lines; k += THREADS) {
        const int line = k % lines;
        const double* of_part = means + (k - line);
        const double left = of_part[mirrored(line - 1, lines)], here = of_part[line];
        const double right = of_part[mirrored(line + 1, lines)], second = of_part[mirrored(line + 2, lines)];
        most = fmax(most, fmax(here - fmax(left, right), fmin(left, right) - here));
        most = fmax(most, fmax(fmin(here, right) - fmax(left, second), fmin(left, second) - fmax(here, right)));
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        most = fmax(most, __shfl_xor_sync(ALL_LANES, most, distance));
    if (lane == 0) most_of_warps[warp] = most;
    __syncthreads();
    for (int w = 0; w < THREADS / WARP; ++w) most = fmax(most, most_of_warps[w]);
    int smaller = 0;
    for (int k = (int)threadIdx.x; k < PARTS * (lines - 1); k += THREADS) {
        const double* at = means + k / (lines - 1) * lines + k % (lines - 1);
        smaller += LIMIT * fabs(at[1] - at[0]) < most;
    }
    smaller = warp_sum(smaller);
    if (lane == 0) smaller_of_warps[warp] = smaller;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < THREADS / WARP; ++w) smaller += smaller_of_warps[w];
    found[blockIdx.x] = 2 * smaller > PARTS * (lines - 1);
}
