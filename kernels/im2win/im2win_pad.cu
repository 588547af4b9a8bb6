// Images padded with their boundary, as float32: a filter bank reads them in place of a window tensor.
//
//     padded[plane][y][x] = image[plane][y - top][x - left],  of rows x columns elements; outside the image by BOUNDARY.
// A thread writes VECTOR neighbouring elements of the padded images, which are written once, front to back. A
// non-finite value becomes NaN, which stays NaN whatever the filter's weight, even zero. `outside` holds the bits of
// the float with which BOUNDARY_CONSTANT surrounds the images. A negative `top` skips rows: a band begins further down.
// Document: none; it replaces Im2win's data transformation, and copies every element once instead of FILTER_HEIGHT
// times.
// Floor: the copy rate, images read once and padded images written once.
#include "filter.cuh"

#ifndef VECTOR
#define VECTOR 4  // elements that a thread writes at once: 4 or 1
#endif
#ifndef THREADS
#define THREADS 256
#endif

__device__ __forceinline__ float finite_or_nan(float value) {
    return value - value == 0.0f ? value : __int_as_float(0x7fffffff);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    im2win_pad(const Image* images, float* padded, int planes, int height, int width, int rows, int columns, int top, int left,
               int outside) {
    const int total = planes * rows * columns;
    const int first = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * VECTOR;
    if (first >= total) return;
    const int line = first / columns;
    int plane = line / rows, y = line - plane * rows, x = first - line * columns;
    float value[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        value[i] = 0.0f;
        if (first + i < total) {
            const bool inside = is_inside(y - top, height) && is_inside(x - left, width);
            const long long row = (long long)plane * height + source_index(y - top, height);
            value[i] = BOUNDARY == BOUNDARY_CONSTANT && !inside
                           ? __int_as_float(outside)
                           : finite_or_nan((float)images[row * width + source_index(x - left, width)]);
        }
        if (++x == columns) {
            x = 0;
            if (++y == rows) {
                y = 0;
                ++plane;
            }
        }
    }
    if (VECTOR == 4 && first + VECTOR <= total) {
        const float4 four = {value[0], value[VECTOR > 1], value[VECTOR > 2 ? 2 : 0], value[VECTOR > 3 ? 3 : 0]};
        *reinterpret_cast<float4*>(padded + first) = four;
    } else {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (first + i < total) padded[first + i] = value[i];
    }
}
