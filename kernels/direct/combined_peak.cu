// Combined, peak only: the sums of combined.cu for a window that one block covers, normalised and searched in shared
// memory. No plane is written, only 29 numbers per pair (peak.cuh).
//
// A block sums the whole window of one pair. If there are few pairs, the rows are split into segments, one block each:
// every block writes its sums to a workspace, and the last block to finish adds them in the order of the segments, so
// every run gives the same bits, and completes the pair alone.
// Document: as combined.cu, and "Fused peak". Floor: the FMA rate. On an H200: 0.66 of it for 256 frames of 512^2 within
// +-8 pixels, normalisation and peak included.
#ifndef NORMALIZE
#define NORMALIZE 1  // 0: the peak of the plain sums
#endif
#include "combined.cuh"
#include "zncc.cuh"
#include "peak.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_WARPS * 32, MIN_BLOCKS)
    combined_peak(const Left* lefts, const Right* rights_of_all, Sum* workspace, int* arrived, const Moments* left_tables,
                  const Moments* right_tables, const int* shift_rows, const int* shift_columns, double* records,
                  PROBLEM_PARAMETERS, int segments, int segment_rows, NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(scratch);  // [64], the plane's sums, their scores, the staged strips
    const int pair = (int)blockIdx.x / segments, segment = (int)blockIdx.x % segments;
    const int shifts = p.shifts_y * p.shifts_x, room = ceil_div(shifts, 4) * 4;
    Sum* sums = reinterpret_cast<Sum*>(scratch + 64);
    float* scores = reinterpret_cast<float*>(sums + room);
    const bool summed =
        sum_tiles(p, left_of(p, lefts, pair), right_of(p, rights_of_all, pair), 0, 0, segment, segment_rows, scores + room,
                  [&](int sy, int sx, Sum sum) { sums[sy * p.shifts_x + sx] = sum; });
    __syncthreads();
    if (segments > 1) {
        Sum* of_pair = workspace + (long long)pair * segments * shifts;
        for (int i = threadIdx.x; i < shifts; i += BLOCK_WARPS * 32)
            of_pair[(long long)segment * shifts + i] = summed ? sums[i] : (Sum)0;
        __threadfence();
        __syncthreads();
        int* last = reinterpret_cast<int*>(scratch);
        if (threadIdx.x == 0) *last = atomicAdd(arrived + pair, 1) == segments - 1;
        __syncthreads();
        if (!*last) return;
        __threadfence();
        for (int i = threadIdx.x; i < shifts; i += BLOCK_WARPS * 32) {
            Sum sum = 0;
            for (int s = 0; s < segments; ++s) sum += __ldcg(of_pair + (long long)s * shifts + i);
            sums[i] = sum;
        }
        __syncthreads();
    }
    find_peak<BLOCK_WARPS>(SCORE_OF_PAIR(p, pair), sums, scores, p.shifts_y, p.shifts_x, scratch,
                           records + (long long)pair * PEAK_RECORD);
}
