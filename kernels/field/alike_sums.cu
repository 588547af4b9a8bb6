// By how much neighbouring residuals are alike: of each tile the sum over its pixels of r times the sum of r over the
// square of SIDE pixels around, r = seen / gain - reference - offset as of slope_sums.cu, zero beyond the frame. Once for
// each size of the frames.
//
// Floor: reading `seen` and the reference: 512 x 512 on an H200 0.25 us a frame from memory.
// Document: none.
#include "field.cuh"

#define SIDE 5
#define RIM (SIDE / 2)
#define BLOCKS 8  // of a multiprocessor at once: bounds the registers, so that none is spilled
#define PITCH (COLUMNS + 2 * RIM)

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    alike_sums(const float* seen, const float* references, const float* offsets, const float* gains,
               const double* pixels, const Part* row_parts, const int* row_cells, const float* row_behind,
               const Part* column_parts, const int* column_cells, const float* column_behind, float* sums, int height,
               int width, int parts_down, int parts_across, int rows, int columns, int own_references) {
    SHARED_FLOATS(shared);
    const Tile tile(row_parts, column_parts, parts_down, parts_across);
    const int number = tile.number;
    const Part &down = tile.down, &across = tile.across;
    const long long before = tile.before(height, width);
    const float* reference = references + (own_references ? before : 0);
    const float* offset = offsets + (long long)number * rows * columns;
    const float gain = gains[number];
    const bool any = pixels[number] > 0;
    const int tall = down.stop - down.first + 2 * RIM, wide = across.stop - across.first + 2 * RIM;
    for (int k = (int)threadIdx.x; k < tall * PITCH; k += THREADS) {
        const int i = k / PITCH, j = k - i * PITCH, y = down.first - RIM + i, x = across.first - RIM + j;
        float left = 0;
        if (any && j < wide && y >= 0 && y < height && x >= 0 && x < width) {
            const float value = seen[before + (long long)y * width + x];
            const float* corner = offset + row_cells[y] * columns + column_cells[x];
            const float right = column_behind[x];
            const float above = fmaf(right, corner[1] - corner[0], corner[0]);
            const float below = fmaf(right, corner[columns + 1] - corner[columns], corner[columns]);
            const float level = reference[(long long)y * width + x] + fmaf(row_behind[y], below - above, above);
            left = value == value ? fmaf(value, gain, -level) : 0.0f;
        }
        shared[k] = left;
    }
    __syncthreads();
    const Strip strip = strip_of(down, across);
    float found[1] = {0};
    if (strip.first < strip.stop) {
        const float* middle = shared + (strip.first - down.first) * PITCH + (int)threadIdx.x % COLUMNS + RIM;
        float across_rows[SIDE];  // sums along SIDE pixels of the last rows, the newest last
#pragma unroll
        for (int i = 0; i < SIDE; ++i) across_rows[i] = 0;
        for (int i = 0; i < strip.stop - strip.first + 2 * RIM; ++i, middle += PITCH) {
#pragma unroll
            for (int k = 0; k < SIDE - 1; ++k) across_rows[k] = across_rows[k + 1];
            float sum = 0, square = 0;
#pragma unroll
            for (int k = -RIM; k <= RIM; ++k) sum += middle[k];
            across_rows[SIDE - 1] = sum;
            if (i < 2 * RIM) continue;
#pragma unroll
            for (int k = 0; k < SIDE; ++k) square += across_rows[k];
            found[0] = fmaf(middle[-RIM * PITCH], square, found[0]);
        }
    }
    sums_of_block<1>(found, shared + (TILE_ROWS + 2 * RIM) * PITCH, sums + blockIdx.x);
}
