// From the sums of compare_frames.cu the gain of every frame and its offset at every node, so that of a pixel is left
//     r = seen / gain - reference - offset,
// offset being linear between the nodes: the difference of the means, and of each node the mean of what is left under its
// hat. Also the zero-mean normalised correlation and the number of pixels. A block takes one frame.
//
// Of a frame that shows fewer than FEWEST pixels nothing is left: its pixels are zero and its score is NaN.
// Document: none.
#include "field.cuh"

#define SUMS 15
#define FEWEST 64
#define MIN_GAIN 0.02

__device__ __forceinline__ double sum_of_block(double value, double* shared) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int w = 0; w < WARPS; ++w) value += shared[w];
    return value;
}

struct Means {
    double one, seen, reference;
};

// Sums under the hat of a node; `first_parts` is the first part of each cell, and one more.
__device__ __forceinline__ Means under_hat(const float* sums, const int* first_row_parts, const int* first_column_parts,
                                           int parts_across, int row, int column, int rows, int columns) {
    Means mean = {0, 0, 0};
    const int row_stop = first_row_parts[row + 1 < rows ? row + 1 : row], row_middle = first_row_parts[row];
    const int column_stop = first_column_parts[column + 1 < columns ? column + 1 : column];
    const int column_middle = first_column_parts[column];
    for (int i = first_row_parts[row > 0 ? row - 1 : 0]; i < row_stop; ++i) {
        for (int k = first_column_parts[column > 0 ? column - 1 : 0]; k < column_stop; ++k) {
            const float* of = sums + (long long)(i * parts_across + k) * SUMS + (i < row_middle ? 6 : 0) +
                              (k < column_middle ? 3 : 0);
            mean.one += of[0];
            mean.seen += of[1];
            mean.reference += of[2];
        }
    }
    return mean;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    field_levels(const float* sums, const int* first_row_parts, const int* first_column_parts, const int* settled,
                 float* offsets, float* gains, double* scores, double* pixels, int parts_down, int parts_across,
                 int rows, int columns) {
    SHARED_FLOATS(shared);
    double* scratch = reinterpret_cast<double*>(shared);
    const int number = (int)blockIdx.x, tiles = parts_down * parts_across;
    if (settled[number]) return;
    sums += (long long)number * tiles * SUMS;
    offsets += (long long)number * rows * columns;
    double of_all[6] = {0, 0, 0, 0, 0, 0};
    for (int tile = (int)threadIdx.x; tile < tiles; tile += THREADS) {
        const float* of = sums + (long long)tile * SUMS;
#pragma unroll
        for (int kind = 0; kind < 3; ++kind) {
            of_all[kind] += (double)of[kind] + of[3 + kind] + of[6 + kind] + of[9 + kind];
            of_all[3 + kind] += of[12 + kind];
        }
    }
#pragma unroll
    for (int kind = 0; kind < 6; ++kind) of_all[kind] = sum_of_block(of_all[kind], scratch);
    const double count = of_all[0];
    const bool enough = count > FEWEST - 0.5;
    const double seen = enough ? of_all[1] / count : 0, reference = enough ? of_all[2] / count : 0;
    const double own = of_all[3] - count * seen * seen, other = of_all[4] - count * reference * reference;
    const double product = of_all[5] - count * seen * reference;
    double gain = other > 0 ? product / other : 1.0;
    gain = gain > MIN_GAIN ? gain : MIN_GAIN;
    if (threadIdx.x == 0) {
        gains[number] = (float)(1 / gain);
        scores[number] = enough && own > 0 && other > 0 ? product / sqrt(own * other) : (double)not_a_number();
        pixels[number] = enough ? (double)(long long)(count + 0.5) : 0.0;
    }
    const double difference = seen / gain - reference;
    for (int node = (int)threadIdx.x; node < rows * columns; node += THREADS) {
        const int row = node / columns, column = node - row * columns;
        const Means mean =
            under_hat(sums, first_row_parts, first_column_parts, parts_across, row, column, rows, columns);
        const double left = mean.seen / gain - mean.reference - difference * mean.one;
        offsets[node] = (float)(difference + left / (mean.one > 1 ? mean.one : 1.0));
    }
}
