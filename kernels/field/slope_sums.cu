// What is left of every pixel, r = seen / gain - reference - offset, times both slopes of the reference and the splines of
// a field: of each tile the sums for its four rows of four coefficients, of the slopes along rows, then along columns, and
// last the sum of r^2.
//
// Floor: reading `seen` and, shared by all frames, the reference and its slopes: 512 x 512 on an H200 0.25 us a frame from
// memory, 0.8 us from the cache.
// Document: Baker and Matthews 2004, doi:10.1023/B:VISI.0000011205.11775.fd
#include "field.cuh"

#define SUMS (2 * NODES * NODES + 1)

extern "C" __global__ void __launch_bounds__(THREADS)
    slope_sums(const float* seen, const float* references, const Vector* slopes, const float* offsets,
               const float* gains, const double* pixels, const Part* row_parts, const Weights* row_weights,
               const float* row_behind, const Part* column_parts, const Weights* column_weights,
               const float* column_behind, const int* settled, float* sums, int height, int width, int parts_down,
               int parts_across, int rows, int columns, int own_references) {
    SHARED_FLOATS(shared);
    const Tile tile(row_parts, column_parts, parts_down, parts_across);
    const int number = tile.number;
    if (settled[number]) return;
    const Part &down = tile.down, &across = tile.across;
    const Strip strip = strip_of(down, across);
    const long long before = tile.before(height, width), shared_before = own_references ? before : 0;
    float found[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) found[i] = 0;
    if (strip.first < strip.stop && pixels[number] > 0) {
        const float gain = gains[number], right = column_behind[strip.x];
        const float* offset = offsets + ((long long)number * rows + down.cell) * columns + across.cell;
        const float above = fmaf(right, offset[1] - offset[0], offset[0]);
        const float step = fmaf(right, offset[columns + 1] - offset[columns], offset[columns]) - above;
        Vector of_row[NODES];
#pragma unroll
        for (int i = 0; i < NODES; ++i) of_row[i] = {0, 0};
        float squares = 0;
#pragma unroll 2
        for (int y = strip.first; y < strip.stop; ++y) {
            const long long place = (long long)y * width + strip.x;
            const float value = seen[before + place];
            const Vector slope = slopes[shared_before + place];
            const float level = references[shared_before + place] + fmaf(row_behind[y], step, above);
            const float left = value == value ? fmaf(value, gain, -level) : 0.0f;
            const Weights weights = row_weights[y];
            const float times_y = left * slope.y, times_x = left * slope.x;
            squares = fmaf(left, left, squares);
#pragma unroll
            for (int i = 0; i < NODES; ++i) {
                of_row[i].y = fmaf(times_y, weights.of[i], of_row[i].y);
                of_row[i].x = fmaf(times_x, weights.of[i], of_row[i].x);
            }
        }
        const Weights of_column = column_weights[strip.x];
#pragma unroll
        for (int i = 0; i < NODES; ++i) {
#pragma unroll
            for (int k = 0; k < NODES; ++k) {
                found[NODES * i + k] = of_row[i].y * of_column.of[k];
                found[NODES * (NODES + i) + k] = of_row[i].x * of_column.of[k];
            }
        }
        found[SUMS - 1] = squares;
    }
    sums_of_block<SUMS>(found, shared, sums + (long long)blockIdx.x * SUMS);
}
