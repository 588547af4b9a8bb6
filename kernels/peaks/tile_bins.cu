// Bins of 2 x 2 pixels of images moved by whole pixels: their mean, less level and times gain of the image (tile_levels.cu), where a
// pixel beyond the image counts as its level (xcorr_app/registration/parts/tiles.py). A thread makes one bin; a block bins of one
// image. Floor: one read of the pixels and one write of a quarter as many floats.
// Document: none.
#include "problem.cuh"

#define THREADS 256

extern "C" __global__ void __launch_bounds__(THREADS)
    tile_bins(const Right* images, const int* shifts, const double* levels, float* bins, int height, int width,
              int blocks_per_image) {
    const int image = (int)blockIdx.x / blocks_per_image, rows = height / 2, columns = width / 2;
    const int bin = ((int)blockIdx.x - image * blocks_per_image) * THREADS + (int)threadIdx.x;
    if (bin >= rows * columns) return;
    const int row = bin / columns, column = bin - row * columns;
    const int top = 2 * row - shifts[2 * image], first = 2 * column - shifts[2 * image + 1];
    const double level = levels[3 * image], gain = levels[3 * image + 1];
    const Right* pixels = images + (long long)image * height * width;
    double sum = 0.0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int y = top + k / 2, x = first + k % 2;
        if ((unsigned)y < (unsigned)height && (unsigned)x < (unsigned)width)
            sum += (double)pixels[(long long)y * width + x] - level;
    }
    bins[(long long)image * rows * columns + bin] = (float)(sum * gain / 4);
}
