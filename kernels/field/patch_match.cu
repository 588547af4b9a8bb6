// Patches of a reference looked for in frames around offsets of their own: the place, height and significance of every
// peak of the zero-mean normalised correlation. A block takes one patch of one frame; nothing but RECORD numbers leaves
// it. The rules are those of xcorr_app/registration/motion/window_match.py and registration/standard_error/significance.py: the part of
// the frame is larger by MARGIN on every side, edges continued, so that the patch overlaps wholly at each of SHIFTS x
// SHIFTS shifts; the outermost shifts only serve as neighbours. A warp finds a median
// bit by bit, by counting.
//
// A thread sums the products of some rows of the patch at all shifts along columns, for one shift along rows: eight
// pixels of the row and eight plus SHIFTS of the frame's give 8 SHIFTS multiply-adds.
// Floor: 64 patches of 32 x 32 at 9 x 9 shifts are 5.3 M multiply-adds, 0.17 us a frame on an H200.
// Document: Padfield 2012, doi:10.1109/TIP.2011.2181402 (normalisation); Adler 1981, doi:10.1137/1.9780898718980.
#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif
#ifndef SHIFTS  // along an axis, those of the rim included
#define SHIFTS 9
#endif
#ifndef SIDE  // of a patch
#define SIDE 32
#endif
#define THREADS 128
#define ALL 0xffffffffu
#define MARGIN (SHIFTS / 2)
#define REACH (MARGIN - 1)
#define LARGE (SIDE + 2 * MARGIN)
#define PITCH (LARGE | 1)
#define PATCH_PITCH (SIDE | 1)
#define AT_ONCE 8
#define GROUPS (THREADS / SHIFTS)
#define VALUES (SHIFTS * SHIFTS)
#define OF_LANE ((VALUES + 31) / 32)
#define COUNT_BITS 10
#define ROUNDING 1e-6f  // share of the squares below which their variance is nothing but rounding
#define DEVIATION 1.4826f
#define NARROWEST 7.8539816f  // 2.5 pi
#define MIN_LOGARITHM 0.02
#define FLAT 1e-12
#define RECORD 5  // rows, columns by which the frame shows the patch displaced; score; significance; whether it is good
#define NOT_SEARCHED (-(1 << 30))

__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }
__device__ __forceinline__ float transformed(float score) { return (float)atanh((double)score * (1 - 1e-9)); }

// What medians are taken of: the values of a plane but those near its peak, their distances from a value, and steps.
struct Samples {
    const float* plane;
    int row, column, near;  // left out; `near` -1: nothing
    float middle;
    bool distances;
    int step;  // 0: values; 1, SHIFTS: differences of neighbours across, down
    __device__ __forceinline__ float at(int k) const {
        const int y = k / SHIFTS, x = k - y * SHIFTS;
        if (step) {
            const bool last = step == 1 ? x == SHIFTS - 1 : y == SHIFTS - 1;
            return last ? not_a_number() : fabsf(plane[k + step] - plane[k]);
        }
        const int down = y < row ? row - y : y - row, across = x < column ? column - x : x - column;
        if (down <= near && across <= near) return not_a_number();
        return distances ? fabsf(plane[k] - middle) : plane[k];
    }
};

// Numbers that are in the order of floats, those that are none last.
__device__ __forceinline__ unsigned ordered(float value) {
    const unsigned bits = __float_as_uint(value);
    return value != value ? ~0u : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ float from_ordered(unsigned number) {
    return __uint_as_float(number & 0x80000000u ? number & 0x7fffffffu : ~number);
}

__device__ __forceinline__ int sum_of_warp(int value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(ALL, value, distance);
    return value;
}

// Median of what is a number, by a warp: two bits at a time, from the highest, the largest number that not too many are
// below. Counts, at most VALUES, share an int.
__device__ __forceinline__ float median(const Samples& samples) {
    const int lane = (int)threadIdx.x % 32;
    unsigned number[OF_LANE];
    int counted = 0;
#pragma unroll
    for (int i = 0; i < OF_LANE; ++i) {
        const int k = lane + 32 * i;
        number[i] = k < VALUES ? ordered(samples.at(k)) : ~0u;
        counted += number[i] != ~0u;
    }
    counted = sum_of_warp(counted);
    if (counted == 0) return not_a_number();
    const int rank = (counted - 1) / 2;
    unsigned found = 0;
#pragma unroll 1
    for (int shift = 30; shift >= 0; shift -= 2) {
        int below = 0;
#pragma unroll
        for (int i = 0; i < OF_LANE; ++i) {
#pragma unroll
            for (unsigned digit = 1; digit < 4; ++digit)
                below += number[i] < (found | digit << shift) ? 1 << COUNT_BITS * (digit - 1) : 0;
        }
        below = sum_of_warp(below);
        unsigned digit = 0;
#pragma unroll
        for (int d = 0; d < 3; ++d) digit += (below >> COUNT_BITS * d & ((1 << COUNT_BITS) - 1)) <= rank;
        found |= digit << shift;
    }
    // Of an even count, the mean with the next.
    int up_to = 0;
    unsigned next = ~0u;
#pragma unroll
    for (int i = 0; i < OF_LANE; ++i) {
        up_to += number[i] <= found;
        next = number[i] > found && number[i] < next ? number[i] : next;
    }
    up_to = sum_of_warp(up_to);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const unsigned other = __shfl_xor_sync(ALL, next, distance);
        next = other < next ? other : next;
    }
    next = up_to > counted / 2 ? found : next;
    return 0.5f * (from_ordered(found) + from_ordered(next));
}

// Position of the vertex of the parabola through values at -1, 0, 1.
__device__ __forceinline__ double vertex(double before, double middle, double after) {
    const double curvature = before - 2 * middle + after;
    if (!(curvature < -FLAT * fabs(middle))) return 0;
    const double place = -(after - before) / 2 / curvature;
    return place > 1 ? 1 : place < -1 ? -1 : place;
}

// Maximum of the second-order polynomial fitted to 3 x 3 values, of their logarithms where none is too small.
__device__ __forceinline__ void refine(const float* peak, double* down, double* across) {
    bool positive = true, whole = true;
    double largest = 0;
    const double top = peak[0];
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        const double value = peak[(k / 3 - 1) * SHIFTS + k % 3 - 1];
        positive = positive && value > MIN_LOGARITHM * top;
        whole = whole && value == value;
    }
    if (!whole) {
        *down = vertex(peak[-SHIFTS], top, peak[SHIFTS]);
        *across = vertex(peak[-1], top, peak[1]);
        return;
    }
    double row[3] = {0, 0, 0}, column[3] = {0, 0, 0}, mixed = 0;
#pragma unroll
    for (int k = 0; k < 9; ++k) {
        const int y = k / 3, x = k % 3;
        double value = peak[(y - 1) * SHIFTS + x - 1];
        if (positive) value = log(value);
        row[y] += value;
        column[x] += value;
        mixed += (y - 1) * (x - 1) * value;
        largest = fabs(value) > largest ? fabs(value) : largest;
    }
    const double b = (row[2] - row[0]) / 6, c = (column[2] - column[0]) / 6, e = mixed / 4;
    const double d = (row[0] + row[2] - 2 * row[1]) / 6, f = (column[0] + column[2] - 2 * column[1]) / 6;
    const double determinant = 4 * d * f - e * e, flat = FLAT * largest;
    const bool concave = determinant > flat * flat && d < -flat;
    const double y = concave ? (e * c - 2 * f * b) / determinant : 0, x = concave ? (e * b - 2 * d * c) / determinant : 0;
    *down = y > 1 ? 1 : y < -1 ? -1 : y;
    *across = x > 1 ? 1 : x < -1 ? -1 : x;
}

struct Rating {
    float height, cells;  // in deviations of the plane; its area in cells of its slopes
};
__device__ __forceinline__ Rating rated(float value, float middle, float distance, float down, float across, int values) {
    const float deviation = DEVIATION * distance;
    bool known = deviation > 0;
    const float safe = known ? deviation : 1.0f;
    Rating rating = {0, (float)values};
    const float steps[2] = {down, across};
#pragma unroll
    for (int axis = 0; axis < 2; ++axis) {
        const float rate = fminf(known ? DEVIATION * steps[axis] / safe : 0.0f, 1.41421356f);
        known = known && SHIFTS * rate > NARROWEST;
        rating.cells *= rate;
    }
    rating.height = known ? (value - middle) / safe : not_a_number();
    return rating;
}

// `limits`: the score that noise hardly reaches, then for cells 0, 1 / per_cell, 2 / per_cell ... the height that chance
// hardly reaches, `heights` of them.
extern "C" __global__ void __launch_bounds__(THREADS)
    patch_match(const float* frames, const float* patches, const float* powers, const int* flat, const int* firsts,
                const int* offsets, const double* limits, double* records, int height, int width, int count,
                int own_patches, int heights, int per_cell) {
    SHARED_FLOATS(shared);
    float* large = shared;                         // [LARGE][PITCH]
    float* patch = large + LARGE * PITCH;          // [SIDE][PATCH_PITCH]
    float* parts = patch + SIDE * PATCH_PITCH;     // [GROUPS][VALUES]
    float* plane = parts + GROUPS * VALUES;        // [VALUES]
    float* fisher = plane + VALUES;                // [VALUES]
    float* found = fisher + VALUES;                // [8], of warps and medians
    const int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    const int number = (int)blockIdx.x / count, which = (int)blockIdx.x - number * count;
    const int* offset = offsets + 2 * (long long)blockIdx.x;
    if (offset[0] == NOT_SEARCHED) return;
    double* record = records + RECORD * (long long)blockIdx.x;
    const float* frame = frames + (long long)number * height * width;
    const long long of_patch = own_patches ? (long long)blockIdx.x : which;
    const int y0 = firsts[2 * which] + offset[0] - MARGIN, x0 = firsts[2 * which + 1] + offset[1] - MARGIN;
    float total = 0;
    for (int k = thread; k < LARGE * LARGE; k += THREADS) {
        const int i = k / LARGE, j = k - i * LARGE;
        const int y = min(max(y0 + i, 0), height - 1), x = min(max(x0 + j, 0), width - 1);
        const float value = frame[(long long)y * width + x];
        large[i * PITCH + j] = value;
        total += value;
    }
    for (int k = thread; k < SIDE * SIDE; k += THREADS)
        patch[k / SIDE * PATCH_PITCH + k % SIDE] = patches[of_patch * SIDE * SIDE + k];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(ALL, total, distance);
    if (lane == 0) found[warp] = total;
    __syncthreads();
    total = 0;
#pragma unroll
    for (int w = 0; w < THREADS / 32; ++w) total += found[w];
    const float mean = total / (LARGE * LARGE);
    for (int k = thread; k < LARGE * LARGE; k += THREADS) large[k / LARGE * PITCH + k % LARGE] -= mean;
    __syncthreads();

    const int dy = thread / GROUPS, group = thread - dy * GROUPS;
    if (dy < SHIFTS) {
        float sum[SHIFTS];
#pragma unroll
        for (int i = 0; i < SHIFTS; ++i) sum[i] = 0;
        for (int r = group; r < SIDE; r += GROUPS) {
            const float *of_patch_row = patch + r * PATCH_PITCH, *of_frame = large + (r + dy) * PITCH;
#pragma unroll 1
            for (int x = 0; x < SIDE; x += AT_ONCE) {
                float values[AT_ONCE + SHIFTS - 1];
#pragma unroll
                for (int i = 0; i < AT_ONCE + SHIFTS - 1; ++i) values[i] = of_frame[min(x + i, LARGE - 1)];
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    const float factor = SIDE % AT_ONCE == 0 || x + i < SIDE ? of_patch_row[min(x + i, SIDE - 1)] : 0.0f;
#pragma unroll
                    for (int k = 0; k < SHIFTS; ++k) sum[k] = fmaf(factor, values[i + k], sum[k]);
                }
            }
        }
#pragma unroll
        for (int i = 0; i < SHIFTS; ++i) parts[group * VALUES + dy * SHIFTS + i] = sum[i];
    }
    __syncthreads();
    for (int k = thread; k < VALUES; k += THREADS) {
        float sum = 0;
        for (int g = 0; g < GROUPS; ++g) sum += parts[g * VALUES + k];
        plane[k] = sum;
    }
    __syncthreads();
    // Sums and sums of squares of the squares of pixels that the patch is compared with: down the columns, then across.
    float* columns = patch;  // [2][SHIFTS][LARGE], in the room of what is no longer read
    for (int x = thread; x < LARGE; x += THREADS) {
        float sum = 0, square = 0;
        for (int y = 0; y < SIDE; ++y) {
            const float value = large[y * PITCH + x];
            sum += value;
            square = fmaf(value, value, square);
        }
        for (int i = 0; i < SHIFTS; ++i) {
            columns[i * LARGE + x] = sum;
            columns[(SHIFTS + i) * LARGE + x] = square;
            const float gone = large[i * PITCH + x], come = large[min(i + SIDE, LARGE - 1) * PITCH + x];
            sum += come - gone;
            square += come * come - gone * gone;
        }
    }
    __syncthreads();
    const bool is_flat = flat[of_patch] != 0;
    for (int k = thread; k < VALUES; k += THREADS) {
        const int i = k / SHIFTS, j = k - i * SHIFTS;
        double sum = 0, square = 0;
        for (int x = 0; x < SIDE; ++x) {
            sum += columns[i * LARGE + j + x];
            square += columns[(SHIFTS + i) * LARGE + j + x];
        }
        const double variance = square - sum * sum / (SIDE * SIDE), scale = variance * powers[of_patch];
        const bool usable = !is_flat && variance > ROUNDING * square && scale > 0;
        const double score = usable ? plane[k] / sqrt(scale) : (double)not_a_number();
        plane[k] = (float)(score > 1 ? 1.0 : score < -1 ? -1.0 : score);
        fisher[k] = transformed(plane[k]);
    }
    __syncthreads();
    // The highest within the rim, of equal ones the first; every warp finds it for itself.
    float top = -2;
    int place = 0, valid = 0;
    for (int k = lane; k < VALUES; k += 32) {
        const int i = k / SHIFTS, j = k - i * SHIFTS;
        valid += plane[k] == plane[k];
        if (i < 1 || j < 1 || i >= SHIFTS - 1 || j >= SHIFTS - 1) continue;
        if (plane[k] > top) {
            top = plane[k];
            place = k;
        }
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const float other = __shfl_xor_sync(ALL, top, distance);
        const int there = __shfl_xor_sync(ALL, place, distance);
        valid += __shfl_xor_sync(ALL, valid, distance);
        if (other > top || (other == top && there < place)) {
            top = other;
            place = there;
        }
    }
    if (!(top > -2)) {  // of the whole block
        if (thread < RECORD) record[thread] = thread == RECORD - 1 ? 0.0 : (double)not_a_number();
        return;
    }
    // Medians of the plane, then of its inverse hyperbolic tangents: a warp takes two of eight.
    const int row = place / SHIFTS, column = place - row * SHIFTS, near = SHIFTS / 8 > 1 ? SHIFTS / 8 : 1;
    const float* of_warp = warp < 2 ? plane : fisher;
    __syncthreads();
    if (warp % 2 == 0) {
        Samples samples = {of_warp, row, column, near, 0.0f, false, 0};
        samples.middle = median(samples);
        if (lane == 0) found[2 * warp] = samples.middle;
        samples.distances = true;
        const float distance = median(samples);
        if (lane == 0) found[2 * warp + 1] = distance;
    } else {
        const Samples down = {of_warp, row, column, -1, 0.0f, false, SHIFTS};
        const Samples across = {of_warp, row, column, -1, 0.0f, false, 1};
        const float first = median(down), second = median(across);
        if (lane == 0) {
            found[2 * warp] = first;
            found[2 * warp + 1] = second;
        }
    }
    __syncthreads();
    if (thread != 0) return;
    const Rating plain = rated(top, found[0], found[1], found[2], found[3], valid);
    const Rating made_normal = rated(fisher[place], found[4], found[5], found[6], found[7], valid);
    bool higher = false;
    for (int k = 0; k < 9; ++k) higher = higher || plane[place + (k / 3 - 1) * SHIFTS + k % 3 - 1] > top;
    const int down = row - MARGIN, across = column - MARGIN;
    const bool on_edge = REACH > 0 && (max(down, -down) >= REACH || max(across, -across) >= REACH);
    const float at = made_normal.cells * per_cell;
    const int cell = min((int)at, heights - 2);
    const double limit = limits[1 + cell] + (limits[2 + cell] - limits[1 + cell]) * (double)(at - cell);
    const bool stands_out = !(made_normal.height < limit) && top > limits[0];
    double fraction_down, fraction_across;
    refine(plane + place, &fraction_down, &fraction_across);
    record[0] = down + offset[0] + fraction_down;
    record[1] = across + offset[1] + fraction_across;
    record[2] = top;
    record[3] = plain.height;
    record[4] = !on_edge && !higher && stands_out;
}
