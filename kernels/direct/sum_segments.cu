// Adds the planes that the segments of combined.cu wrote to the workspace, in segment order: same bits every run. A
// thread = one element of one pair's plane. A segment whose first row is beyond the overlap of its tile wrote nothing.
// Document: "Work distribution", the sum without atomics. Floor: one read of the workspace and one write of the planes.
#include "problem.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 16  // dy a block of combined.cu: decides how many segments wrote
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    sum_segments(const Sum* workspace, Sum* planes, PROBLEM_PARAMETERS, int segments, int segment_rows) {
    const Problem p = PROBLEM_ARGUMENTS;
    const long long shifts = (long long)p.shifts_y * p.shifts_x;
    const int blocks = (int)((shifts + THREADS - 1) / THREADS);
    const int pair = (int)blockIdx.x / blocks;
    const long long shift = (long long)((int)blockIdx.x % blocks) * THREADS + threadIdx.x;
    if (shift >= shifts) return;
    const int iy = (int)((unsigned)shift / (unsigned)p.shifts_x);
    const int dy = p.shift_y0 + iy / BLOCK_Y * BLOCK_Y;
    const int rows = min(p.left_height, p.right_height + dy + BLOCK_Y - 1) - max(0, dy);
    const int written = min(segments, max(1, ceil_div(rows, segment_rows)));
    const long long at = pair * shifts + shift;
    Sum sum = workspace[at];
    for (int segment = 1; segment < written; ++segment) sum += workspace[at + segment * p.pairs * shifts];
    planes[at] = sum;
}
