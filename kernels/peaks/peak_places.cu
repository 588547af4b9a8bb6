// From records of peaks (see plane_peak.cu) to shifts and the nearest scores, as other kernels take them, so that nothing
// waits for the host in between. A row below zero marks a peak that fp16 leaves open: it is -1 less the row. A thread
// takes a frame. Floor: the time of a launch.
// Document: none.
#include "problem.cuh"

#define THREADS 128
#define RECORD 29
#define SIDE 5

extern "C" __global__ void __launch_bounds__(THREADS)
    peak_places(const double* records, int* peaks, double* near, int count, int shift_y0, int shift_x0) {
    const int frame = (int)blockIdx.x * THREADS + (int)threadIdx.x;
    if (frame >= count) return;
    const double* record = records + (long long)RECORD * frame;
    const int row = (int)record[0];
    peaks[2 * frame] = (row < 0 ? -1 - row : row) + shift_y0;
    peaks[2 * frame + 1] = (int)record[1] + shift_x0;
    for (int k = 0; k < 9; ++k) near[9 * frame + k] = record[4 + (k / 3 + 1) * SIDE + k % 3 + 1];
}
