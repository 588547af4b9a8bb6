// Frames looked at through linear motions: where a pixel of the reference lies in the frame, and whether it is compared.
//
// Coordinates in sums are counted from the middle of the reference, half its longer side being one.
#pragma once

#include "field.cuh"
#include "problem.cuh"

#define RIM 3  // pixels along the edges of both images that are not compared

struct Middle {
    float y, x, unit;
    __device__ __forceinline__ Middle(int height, int width)
        : y(0.5f * (float)(height - 1)), x(0.5f * (float)(width - 1)), unit(2.0f / (float)max(height, width)) {}
    __device__ __forceinline__ float down(int row) const { return ((float)row - y) * unit; }
    __device__ __forceinline__ float across(int column) const { return ((float)column - x) * unit; }
};

// A place on an axis of the frame: the whole pixel at or before it, and the rest.
struct Place {
    int at;
    float rest;
};

__device__ __forceinline__ bool is_compared(int pixel, int size) { return pixel >= RIM && pixel <= size - 1 - RIM; }
__device__ __forceinline__ bool is_compared(const Place& place, int size) {
    const int last = size - 1 - RIM;
    return place.at >= RIM && (place.at < last || (place.at == last && place.rest == 0));
}

// Where the pixels of one column lie along one axis of the frame, from a row of the reference on. The first place is
// float64, which the rows after it need not be.
struct Line {
    int at;
    float rest, step;
    __device__ __forceinline__ Line(const double* motion, int row, int column) {
        const double first = fma(motion[0], (double)row, fma(motion[1], (double)column, motion[2]));
        const double whole = floor(fmin(fmax(first, -1e9), 1e9));
        at = (int)whole, rest = (float)(first - whole), step = (float)motion[0];
    }
    __device__ __forceinline__ Place after(int rows) const {
        const float away = fmaf((float)rows, step, rest), whole = floorf(away);
        return {at + (int)whole, away - whole};
    }
};
