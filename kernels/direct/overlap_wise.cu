// Overlap-wise correlation: one thread = one shift, simple loops over the overlap.
// Document: "Implementation", parallelization of two matrices (each shift is an independent task).
// FMA : shuffles = 1 : 0, two loads per FMA. Floor: the rate of loads. Baseline of every test and of the ablation.
// On an H200, 256^2, full plane, 16 pairs: 0.084 of the FMA rate.
#include "problem.cuh"

#ifndef THREADS
#define THREADS 128
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    overlap_wise(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int shifts = p.shifts_y * p.shifts_x;
    const int index = (int)blockIdx.x * THREADS + threadIdx.x;
    if (index >= p.pairs * shifts) return;
    const int pair = index / shifts;
    const int shift = index % shifts;
    const int dy = p.shift_y0 + shift / p.shifts_x, dx = p.shift_x0 + shift % p.shifts_x;
    const Left* left = left_of(p, lefts, pair);
    const Right* right = right_of(p, rights_of_all, pair);
    const Span ys = overlap(p.left_height, p.right_height, dy), xs = overlap(p.left_width, p.right_width, dx);
    Sum sum = 0;
    for (int y = ys.first; y < ys.last; ++y) {
        const Left* left_row = left + (long long)(y + dy) * p.left_width + dx;
        const Right* right_row = right + (long long)y * p.right_width;
        for (int x = xs.first; x < xs.last; ++x) sum += (Sum)left_row[x] * (Sum)right_row[x];
    }
    planes[index] = sum;
}
