// Frames looked at through their fields, beside a reference: seen[y, x] = frame[(y, x) + d(y, x)], linearly interpolated,
// and NaN where that lies less than RIM pixels from the frame's edge; and the sums from which the gain and the offset of
// every place follow (field_levels.cu). Of each tile SUMS numbers: of the four nodes around it (above left, above right,
// below left, below right) the sums of one, seen and reference under the hat of the node, over what is inside; then
// the sums of seen^2, reference^2 and seen * reference. Frames that are settled are passed over.
//
// Floor: reading frame and reference and writing `seen`: 512 x 512 on an H200 (4.1 TB/s) 0.5 us a frame, the reference
// being shared. Instructions: about 60 a pixel, 0.55 us.
// Document: Baker and Matthews 2004, doi:10.1023/B:VISI.0000011205.11775.fd
#include "field.cuh"

#define SUMS 15
#define RIM 2.0f

extern "C" __global__ void __launch_bounds__(THREADS)
    compare_frames(const float* frames, const float* references, const Vector* fields, const Part* row_parts,
                   const Weights* row_weights, const float* row_behind, const Part* column_parts,
                   const Weights* column_weights, const float* column_behind, const int* settled, float* seen,
                   float* sums, int height, int width, int parts_down, int parts_across, int grid_rows,
                   int grid_columns, int own_references) {
    SHARED_FLOATS(shared);
    const Tile tile(row_parts, column_parts, parts_down, parts_across);
    const int number = tile.number;
    if (settled[number]) return;
    const Part &down = tile.down, &across = tile.across;
    const Strip strip = strip_of(down, across);
    const long long before = tile.before(height, width);
    const float* frame = frames + before;
    const float* reference = references + (own_references ? before : 0);
    float found[SUMS];
#pragma unroll
    for (int i = 0; i < SUMS; ++i) found[i] = 0;
    if (strip.first < strip.stop) {
        const Weights of_column = column_weights[strip.x];
        const Vector* field = fields + ((long long)number * grid_rows + down.start) * grid_columns + across.start;
        Vector summed[NODES];
        summed_across(field, grid_columns, of_column, summed);
        const float last_y = (float)(height - 1) - RIM, last_x = (float)(width - 1) - RIM;
        float all[3] = {0, 0, 0}, below[3] = {0, 0, 0};  // of one, seen and reference
#pragma unroll 2
        for (int y = strip.first; y < strip.stop; ++y) {
            const Vector away = summed_down(summed, row_weights[y]);
            const float py = (float)y + away.y, px = (float)strip.x + away.x;
            const long long place = (long long)y * width + strip.x;
            float value = not_a_number();
            if (py >= RIM && py <= last_y && px >= RIM && px <= last_x) {
                const float whole_y = floorf(away.y), whole_x = floorf(away.x);
                const float v = away.y - whole_y, u = away.x - whole_x;
                const float* at = frame + (long long)(y + (int)whole_y) * width + strip.x + (int)whole_x;
                const float upper = fmaf(u, at[1] - at[0], at[0]), lower = fmaf(u, at[width + 1] - at[width], at[width]);
                value = fmaf(v, lower - upper, upper);
                const float other = reference[place], weight = row_behind[y];
                all[0] += 1;
                all[1] += value;
                all[2] += other;
                below[0] += weight;
                below[1] = fmaf(value, weight, below[1]);
                below[2] = fmaf(other, weight, below[2]);
                found[12] = fmaf(value, value, found[12]);
                found[13] = fmaf(other, other, found[13]);
                found[14] = fmaf(value, other, found[14]);
            }
            seen[before + place] = value;
        }
        const float right = column_behind[strip.x];
#pragma unroll
        for (int kind = 0; kind < 3; ++kind) {
            const float above = all[kind] - below[kind];
            found[kind] = above * (1 - right);
            found[3 + kind] = above * right;
            found[6 + kind] = below[kind] * (1 - right);
            found[9 + kind] = below[kind] * right;
        }
    }
    sums_of_block<SUMS>(found, shared, sums + (long long)blockIdx.x * SUMS);
}
