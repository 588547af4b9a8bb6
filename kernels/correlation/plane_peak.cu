// The peak of every plane of a batch, with or without zero-mean normalisation: a block takes one plane of plain sums, keeps
// its scores in shared memory and writes 29 numbers (peak.cuh). For planes that another kernel has made,
// whose window is too wide for one block; combined_peak.cu does without the plane. With CENTRED the planes hold sums of
// centred products (zncc.cuh), as hankel.cu writes them. Floor: one read of the planes.
// Document: "Normalisation", beside the chapter on the definition-based cross-correlation.
#ifndef WARPS
#define WARPS 8
#endif
#ifndef NORMALIZE
#define NORMALIZE 1  // 0: the peak of the plain sums
#endif
#include "problem.cuh"
#include "tile.cuh"
#include "zncc.cuh"
#include "peak.cuh"

extern "C" __global__ void __launch_bounds__(WARPS * 32, 4)
    plane_peak(const Sum* planes, const Moments* left_tables, const Moments* right_tables, const int* shift_rows,
               const int* shift_columns, double* records, PROBLEM_PARAMETERS, NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(scratch);  // [64], then the scores
    const int pair = (int)blockIdx.x;
    const Sum* sums = planes + (long long)pair * p.shifts_y * p.shifts_x;
    find_peak<WARPS>(SCORE_OF_PAIR(p, pair), sums, scratch + 64, p.shifts_y, p.shifts_x, scratch,
                     records + (long long)pair * PEAK_RECORD);
}
