// The peak of every plane of a batch, with or without zero-mean normalisation: a block takes one plane of plain sums,
// keeps its scores in shared memory and writes 29 numbers (peak.cuh). For planes that another kernel wrote, whose
// window is too wide for one block; combined_peak.cu needs no plane. With CENTRED the planes contain sums of centred
// products (zncc.cuh), as hankel.cu writes them. Floor: one read of the planes; for a single plane it is the latency of
// a score (loads of the tables, a division and the rest in double precision, one after the other), so a thread has few
// scores.
// Document: "Normalisation", which accompanies the chapter on definition-based cross-correlation.
#ifndef WARPS
#define WARPS 8
#endif
#ifndef NORMALIZE
#define NORMALIZE 1  // 0: the peak of the plain sums
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS (WARPS > 8 ? 1 : 4)
#endif
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"
#include "peak.cuh"

#define SCORE_BYTES 96

extern "C" __global__ void __launch_bounds__(WARPS * 32, MIN_BLOCKS)
    plane_peak(const Sum* planes, const Moments* left_tables, const Moments* right_tables, const int* shift_rows,
               const int* shift_columns, double* records, PROBLEM_PARAMETERS, NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(scratch);  // [64], then how shifts are scored, and the scores
    const int pair = (int)blockIdx.x;
    // Its divisions in double precision are one thread's, as the block's threads would share the units for them.
    typedef decltype(SCORE_OF_PAIR(p, pair)) Score;
    static_assert(sizeof(Score) <= SCORE_BYTES, "room for it");
    Score& score = *reinterpret_cast<Score*>(scratch + 64);
    if (threadIdx.x == 0) score = SCORE_OF_PAIR(p, pair);
    __syncthreads();
    const Sum* sums = planes + (long long)pair * p.shifts_y * p.shifts_x;
    find_peak<WARPS>(score, sums, scratch + 64 + SCORE_BYTES / 4, p.shifts_y, p.shifts_x, scratch,
                     records + (long long)pair * PEAK_RECORD);
}
