// Plain sums from sums of centred products, in place: planes of hankel.cu become planes as other kernels write them.
//
//     sum of f g = D + cL (Sg - n cR) + cR Sf,  D = sum of (f - cL) (g - cR), over the n elements of the overlap
//
// A thread takes one shift of one pair; the sums Sf and Sg come from the summed-area tables (summed_area.cu), the
// centres from the tables' last cells (scaling.cuh), all in double precision. Shifts without overlap are unchanged; the
// smallest accepted overlap does not matter here.
// Document: none. Floor: one read and one write of the planes.
#define CENTRED 1
#define NORMALIZE 0
#ifndef THREADS
#define THREADS 256
#endif
#include "problem.cuh"
#include "zncc.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    uncentre(Sum* planes, const Moments* left_tables, const Moments* right_tables, const int* shift_rows,
             const int* shift_columns, PROBLEM_PARAMETERS, NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int shifts = p.shifts_y * p.shifts_x, blocks = ceil_div(shifts, THREADS);
    const int pair = (int)blockIdx.x / blocks, shift = (int)blockIdx.x % blocks * THREADS + (int)threadIdx.x;
    if (shift >= shifts) return;
    const auto sums = SCORE_OF_PAIR(p, pair);
    Sum* at = plane_of(p, planes, pair) + shift;
    *at = (Sum)sums.line(shift / p.shifts_x).overlap.uncentred((double)*at, shift % p.shifts_x);
}
