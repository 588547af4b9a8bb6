// The parameters of Im2win: sizes, and where an output element's values are in the window tensor.
//
// No padding, stride s, images [images][channels][height][width]:
//     output[i][j][m][n] = sum over r, v, u of image[i][r][m * s + u][n * s + v] * filter[j][r][v][u].
// The window tensor
//     window[i][r][m][k * FILTER_HEIGHT + u] = image[i][r][m * s + u][k]
// holds the values of one output element and one channel in TAPS adjacent elements, one filter column after another.
//
// As a matrix product: output[M x N] = filters[M x K] * window[K x N] with M = filters, N = images * out_height * out_width,
// K = channels * TAPS. The elements of K follow that order in all forms: channel, filter column, filter row.
// Filters come stored [K][pitch], the pitch being M
// rounded up to a multiple of 4, so that a tile of filters is copied 16 bytes at a time; zeros fill them up, and rows of zeros
// follow the last one (as many as a tile can reach beyond K).
// IMPLICIT: the product reads its window elements from the images; no window tensor is stored.
// Offsets into the window tensor or the images and into the filters are 32 bits wide: a launcher divides larger batches
// into parts. Planes of the output may be further apart than their size (`plane_pitch`), as a part may be a band of
// rows.
#pragma once

#ifndef FILTER_HEIGHT
#define FILTER_HEIGHT 3
#endif
#ifndef FILTER_WIDTH
#define FILTER_WIDTH 3
#endif
#ifndef IMPLICIT
#define IMPLICIT 0
#endif
#define TAPS (FILTER_HEIGHT * FILTER_WIDTH)

struct Im2win {
    int images, channels, height, width, filters, out_height, out_width, stride, plane_pitch;
    __device__ __forceinline__ int plane() const { return out_height * out_width; }           // outputs of one filter
    __device__ __forceinline__ int depth() const { return channels * TAPS; }                  // K
    __device__ __forceinline__ int columns() const { return images * plane(); }               // N
    __device__ __forceinline__ int filter_pitch() const { return (filters + 3) / 4 * 4; }     // M, stored
    __device__ __forceinline__ int window_row() const { return width * FILTER_HEIGHT; }       // elements
    __device__ __forceinline__ int window_channel() const { return out_height * window_row(); }
};

// Kernels take the fields one by one (a launcher needs no struct layout) and gather them again.
#define IM2WIN_PARAMETERS \
    int images, int channels, int height, int width, int filters, int out_height, int out_width, int stride, int plane_pitch
#define IM2WIN_ARGUMENTS {images, channels, height, width, filters, out_height, out_width, stride, plane_pitch}

// Where the values of output column `n` (image, row and column of the output) begin in the window tensor or the images.
__device__ __forceinline__ int column_start(const Im2win& p, int n) {
    const int image = n / p.plane(), pixel = n - image * p.plane();
    const int row = pixel / p.out_width, column = pixel - row * p.out_width;
#if IMPLICIT
    return (image * p.channels * p.height + row * p.stride) * p.width + column * p.stride;
#else
    return image * p.channels * p.window_channel() + row * p.window_row() + column * p.stride * FILTER_HEIGHT;
#endif
}

// The further offset of the value that is multiplied with the filter's element `k`.
__device__ __forceinline__ int depth_offset(const Im2win& p, int k) {
    const int channel = k / TAPS, tap = k - channel * TAPS;
#if IMPLICIT
    return (channel * p.height + tap % FILTER_HEIGHT) * p.width + tap / FILTER_HEIGHT;
#else
    return channel * p.window_channel() + tap;
#endif
}
