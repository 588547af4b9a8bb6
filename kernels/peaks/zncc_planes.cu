// Zero-mean normalised scores of all shifts, in double precision, from planes of plain sums and summed-area tables: NaN
// where the overlap is too small or has no variance (zncc.cuh). A block takes a part of one plane, a thread every
// THREADS-th of its shifts. Floor: one read of the sums and one write of the scores; the tables come from the cache.
// Document: "Normalisation", which accompanies the chapter on definition-based cross-correlation.
#define NORMALIZE 1
#ifndef THREADS
#define THREADS 128
#endif
#ifndef SHIFTS_A_THREAD
#define SHIFTS_A_THREAD 4
#endif
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    zncc_planes(const Sum* sums, const Moments* left_tables, const Moments* right_tables, const int* shift_rows,
                const int* shift_columns, double* scores, PROBLEM_PARAMETERS, int blocks_a_plane,
                NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(scratch);
    const int pair = (int)blockIdx.x / blocks_a_plane, part = (int)blockIdx.x % blocks_a_plane;
    typedef decltype(SCORE_OF_PAIR(p, pair)) Score;
    Score& score = *reinterpret_cast<Score*>(scratch);
    if (threadIdx.x == 0) score = SCORE_OF_PAIR(p, pair);
    __syncthreads();
    const int count = p.shifts_y * p.shifts_x;
    const long long plane = (long long)pair * count;
    const int first = part * THREADS * SHIFTS_A_THREAD + (int)threadIdx.x;
    for (int i = 0; i < SHIFTS_A_THREAD; ++i) {
        const int index = first + i * THREADS;
        if (index >= count) return;
        const int y = index / p.shifts_x, x = index - y * p.shifts_x;
        scores[plane + index] = score.line(y).exact(sums[plane + index], x);
    }
}
