// Window transform: images to the window tensor of `im2win.cuh`.
//
// A thread writes VECTOR neighbouring elements of the tensor, which is written once, front to back, whatever rows,
// channels and images they belong to. A group that crosses the end of a window column, of a row or of an image
// continues in the next one. The reads of a warp come from FILTER_HEIGHT rows of an image, neighbouring columns of
// each.
// Document: Im2win, "The im2win data transformation algorithm".
// Floor: the copy rate, images read once and the window tensor written once.
#include "im2win.cuh"

#define VECTOR 4  // elements that a thread writes at once
#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    im2win_transform(const float* image, float* window, IM2WIN_PARAMETERS) {
    const Im2win p = IM2WIN_ARGUMENTS;
    const int total = p.images * p.channels * p.window_channel();
    const int first = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * VECTOR;
    if (first >= total) return;
    const int window_row = first / p.window_row(), position = first - window_row * p.window_row();
    int plane = window_row / p.out_height, out_row = window_row - plane * p.out_height;
    int column = position / FILTER_HEIGHT, tap = position - column * FILTER_HEIGHT;
    float value[VECTOR];
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
        const bool inside = first + i < total;
        const long long row = (long long)plane * p.height + out_row * p.stride + tap;
        value[i] = inside ? image[row * p.width + column] : 0.0f;
        if (++tap == FILTER_HEIGHT) {
            tap = 0;
            if (++column == p.width) {
                column = 0;
                if (++out_row == p.out_height) {
                    out_row = 0;
                    ++plane;
                }
            }
        }
    }
    if (first + VECTOR <= total) {
        *reinterpret_cast<float4*>(window + first) = {value[0], value[1], value[2], value[3]};
    } else {
#pragma unroll
        for (int i = 0; i < VECTOR; ++i)
            if (first + i < total) window[first + i] = value[i];
    }
}
