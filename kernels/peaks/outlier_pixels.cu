// By how much the pixel that stands out most lies beyond all eight around it, above the highest or below the lowest
// (xcorr_app/registration/weights/filling.py): one number a block, in double precision, of every BLOCKS-th stretch of pixels;
// zero where none does. Neighbours of the rim are mirrored there; a value that is no number counts as zero for its
// neighbours, and does not stand out itself. A thread takes a pixel at a time. Floor: one read of the image.
// Document: none.
#include "problem.cuh"
#include "numbers.cuh"
#include "warp.cuh"

#define THREADS 256

__device__ __forceinline__ bool is_number(double value) { return value - value == 0.0; }

extern "C" __global__ void __launch_bounds__(THREADS)
    outlier_pixels(const Right* image, double* max_of_blocks, int height, int width, int blocks) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [THREADS / WARP]
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int pixels = height * width;
    double out = 0.0;
    for (int k = (int)blockIdx.x * THREADS + (int)threadIdx.x; k < pixels; k += blocks * THREADS) {
        const int y = k / width, x = k - y * width;
        const double middle = (double)image[k];
        if (!is_number(middle)) continue;
        double above = -1.0, below = -1.0;  // the smallest distance to the eight, on either side
#pragma unroll
        for (int i = -1; i <= 1; ++i) {
            const Right* row = image + (long long)mirrored(y + i, height) * width;
#pragma unroll
            for (int j = -1; j <= 1; ++j) {
                if (i == 0 && j == 0) continue;
                const double value = (double)row[mirrored(x + j, width)];
                const double step = middle - (is_number(value) ? value : 0.0);
                const bool first = i == -1 && j == -1;
                above = first || step < above ? step : above;
                below = first || -step < below ? -step : below;
            }
        }
        out = fmax(out, fmax(above, below));
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        out = fmax(out, __shfl_xor_sync(ALL_LANES, out, distance));
    if (lane == 0) of_warps[warp] = out;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int w = 1; w < THREADS / WARP; ++w) out = fmax(out, of_warps[w]);
    max_of_blocks[blockIdx.x] = out;
}
