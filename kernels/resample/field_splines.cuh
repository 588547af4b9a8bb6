// Displacements as cubic splines over a coarse grid: a pixel depends on four coefficients along each axis, whose weights
// come in tables. A thread that goes down a column sums the coefficients along the columns' axis once, for four of their
// rows, so that a pixel takes eight multiply-adds.
#pragma once

#define NODES 4  // coefficients along an axis that a pixel depends on

struct alignas(8) Vector {
    float y, x;
};
struct alignas(16) Weights {
    float of[NODES];
};

// Coefficients of NODES rows from `field` on, summed along the columns' axis.
__device__ __forceinline__ void summed_across(const Vector* field, int pitch, const Weights& across,
                                              Vector (&summed)[NODES]) {
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        Vector sum = {0, 0};
#pragma unroll
        for (int k = 0; k < NODES; ++k) {
            const Vector value = field[(long long)i * pitch + k];
            sum.y = fmaf(value.y, across.of[k], sum.y);
            sum.x = fmaf(value.x, across.of[k], sum.x);
        }
        summed[i] = sum;
    }
}

// The displacement in a row of that column.
__device__ __forceinline__ Vector summed_down(const Vector (&summed)[NODES], const Weights& down) {
    Vector away = {0, 0};
#pragma unroll
    for (int i = 0; i < NODES; ++i) {
        away.y = fmaf(summed[i].y, down.of[i], away.y);
        away.x = fmaf(summed[i].x, down.of[i], away.x);
    }
    return away;
}
