// The peak of every plane, what lies around it, and how far it stands above the rest: a block takes one plane of doubles
// (NaN: a shift that does not count) and writes RECORD numbers. The rules are those of xcorr_app/correlation/peaks.py
// and xcorr_app/registration/standard_error/significance.py:
//   - the peak is the highest value of the box, of equal ones the first; `tied`, a shift of its own for every plane,
//     takes its place where the plane is as high there up to TIE (ties 1), or of the elements of the box as high as the
//     peak that nearest to (zero_row, zero_column) does (ties 2);
//   - a rival is the highest other local maximum of the box, RIVAL_DISTANCE away along an axis and not on the box's rim;
//   - of the box without what is near the peak, and on every stride_y-th row and stride_x-th column alone, the median and
//     the median deviation from it; and the median steps between neighbours along both axes. With FISHER all of it once
//     more of the inverse hyperbolic tangents.
// A median is found by halving the range of the values' bit patterns: a warp each, so that a block finds all at once and
// no value is moved. `scores` are another plane of the same shifts, `margin` larger on every side, whose 5 x 5 values
// around the peak are written too; `workspace` takes the transformed planes. Floor: one read of the planes; the medians take 64 reads of the samples from the cache.
// Document: none.
#include "lanes.cuh"

#ifndef FISHER
#define FISHER 0
#endif
#ifndef RATE  // 0: medians are left out, NaN, of no samples
#define RATE 1
#endif

#define THREADS 256
#define LANES 32
#define RIVAL_DISTANCE 3
#define TIE 1e-6
#define RECORD 49  // row, column, value, rival, climbs, samples; 25 scores; 9 values; 4 medians, 4 and value of FISHER
#define SAMPLES 5
#define AROUND 6
#define NEAR 31
#define MEDIANS 40
#define FISHER_VALUE 48

typedef unsigned long long Bits;

__device__ __forceinline__ double not_a_number() { return (double)__int_as_float(0x7fffffff); }
__device__ __forceinline__ double minus_infinity() { return (double)__int_as_float(0xff800000); }
__device__ __forceinline__ bool is_number(double value) { return value == value; }

struct Best {
    double value;
    int index;
};
__device__ __forceinline__ Best better(Best a, Best b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// Best of the block, known to all its threads.
__device__ __forceinline__ Best best_of_block(Best own, Best* of_warps) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) {
        const Best other = {__shfl_xor_sync(ALL_LANES, own.value, distance), __shfl_xor_sync(ALL_LANES, own.index, distance)};
        own = better(own, other);
    }
    __syncthreads();
    if (threadIdx.x % LANES == 0) of_warps[threadIdx.x / LANES] = own;
    __syncthreads();
    own = of_warps[0];
    for (int i = 1; i < THREADS / LANES; ++i) own = better(own, of_warps[i]);
    return own;
}

// A plane, the box in which peaks are searched, and what of it is sampled.
struct Plane {
    const double* values;
    int height, width, top, left, rows, columns, stride_y, stride_x;

    __device__ __forceinline__ double at(int y, int x) const { return values[y * width + x]; }
    __device__ __forceinline__ double of_box(int y, int x) const { return values[(top + y) * width + left + x]; }
};

__device__ __forceinline__ double transformed(double score) { return atanh(score * (1 - 1e-9)); }

// What a median is taken of; `at` is NaN for what does not count. `sample` counts rows and columns of the samples.
struct Rest {  // values, or their distances from `middle`
    const Plane& plane;
    int peak_row, peak_column, near_rows, near_columns;
    bool distances;
    double middle;
    __device__ __forceinline__ int rows() const { return (plane.rows + plane.stride_y - 1) / plane.stride_y; }
    __device__ __forceinline__ int columns() const { return (plane.columns + plane.stride_x - 1) / plane.stride_x; }
    __device__ __forceinline__ double at(int i, int j) const {
        const int y = i * plane.stride_y, x = j * plane.stride_x;
        if (abs(y - peak_row) <= near_rows && abs(x - peak_column) <= near_columns) return not_a_number();
        const double value = plane.of_box(y, x);
        return distances ? fabs(value - middle) : value;
    }
};
struct Steps {  // moduli of differences between neighbours along an axis
    const Plane& plane;
    bool down;
    __device__ __forceinline__ int rows() const {
        return (plane.rows - (down ? 1 : 0) + plane.stride_y - 1) / plane.stride_y;
    }
    __device__ __forceinline__ int columns() const {
        return (plane.columns - (down ? 0 : 1) + plane.stride_x - 1) / plane.stride_x;
    }
    __device__ __forceinline__ double at(int i, int j) const {
        const int y = i * plane.stride_y, x = j * plane.stride_x;
        return fabs(plane.of_box(y + (down ? 1 : 0), x + (down ? 0 : 1)) - plane.of_box(y, x));
    }
};

// Bit patterns in the order of the values.
__device__ __forceinline__ Bits ordered(double value) {
    const Bits bits = (Bits)__double_as_longlong(value);
    return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ double number_of(Bits key) {
    return __longlong_as_double((long long)(key >> 63 ? key & 0x7fffffffffffffffull : ~key));
}

__device__ __forceinline__ int sum_of_warp(int own) {
#pragma unroll
    for (int distance = LANES / 2; distance > 0; distance /= 2) own += __shfl_xor_sync(ALL_LANES, own, distance);
    return own;
}

// How many values there are with a pattern of at most `key`, and the lowest pattern above it.
template <typename Values>
__device__ __forceinline__ int up_to(const Values& values, Bits key, Bits* next) {
    const int columns = values.columns(), count = values.rows() * columns;
    int found = 0;
    Bits above = ~0ull;
    for (int k = (int)threadIdx.x % LANES; k < count; k += LANES) {
        const double value = values.at(k / columns, k % columns);
        if (!is_number(value)) continue;
        const Bits here = ordered(value);
        if (here <= key)
            ++found;
        else if (here < above)
            above = here;
    }
    if (next) {
#pragma unroll
        for (int distance = LANES / 2; distance > 0; distance /= 2) {
            const Bits other = __shfl_xor_sync(ALL_LANES, above, distance);
            above = other < above ? other : above;
        }
        *next = above;
    }
    return sum_of_warp(found);
}

// The median of the values that count, by one warp; NaN where there is none.
template <typename Values>
__device__ __forceinline__ double median(const Values& values, int* samples) {
    const int count = up_to(values, ~0ull, (Bits*)0);
    *samples = count;
    if (count == 0) return not_a_number();
    const int lower = (count - 1) / 2 + 1, upper = count / 2 + 1;  // how many are up to either
    Bits first = 0, last = ~0ull;
    while (first < last) {
        const Bits middle = first + (last - first) / 2;
        if (up_to(values, middle, (Bits*)0) >= lower)
            last = middle;
        else
            first = middle + 1;
    }
    Bits next;
    const int found = up_to(values, first, &next);
    const double low = number_of(first);
    return (low + (found >= upper ? low : number_of(next))) / 2;
}

extern "C" __global__ void __launch_bounds__(THREADS, 4)
    rated_peak(const double* planes, const double* scores, const int* tied, double* workspace, double* records, int height, int width,
               int margin, int top, int left, int rows, int columns, int stride_y, int stride_x, int ties, int zero_row,
               int zero_column) {
    SHARED_FLOATS(shared);
    Best* of_warps = reinterpret_cast<Best*>(shared);
    const int plane_index = (int)blockIdx.x, thread = (int)threadIdx.x;
    const Plane plane = {planes + (long long)plane_index * height * width, height, width, top, left, rows, columns,
                         stride_y, stride_x};
    double* record = records + (long long)plane_index * RECORD;

    Best highest = {minus_infinity(), 0x7fffffff}, largest = {0.0, 0};
    double* of_fisher = workspace + (FISHER ? (long long)plane_index * height * width : 0);
    for (int k = thread; k < height * width; k += THREADS) {
        const double value = plane.values[k];
        if (FISHER) of_fisher[k] = transformed(value);
        if (!is_number(value)) continue;
        largest.value = fmax(largest.value, fabs(value));
        const int y = k / width - top, x = k % width - left;
        if (y < 0 || y >= rows || x < 0 || x >= columns) continue;
        const Best here = {value, k};
        highest = better(highest, here);
    }
    highest = best_of_block(highest, of_warps);
    largest = best_of_block(largest, of_warps);
    const bool found = highest.index != 0x7fffffff && highest.value > minus_infinity();
    const int first = found ? highest.index : 0;

    Best rival = {minus_infinity(), 0x7fffffff};
    for (int k = thread; k < rows * columns; k += THREADS) {
        const int i = k / columns, j = k % columns, y = top + i, x = left + j;
        if ((rows > 1 && (i == 0 || i == rows - 1)) || (columns > 1 && (j == 0 || j == columns - 1))) continue;
        if (abs(y - first / width) < RIVAL_DISTANCE && abs(x - first % width) < RIVAL_DISTANCE) continue;
        const double value = plane.at(y, x);
        if (!is_number(value)) continue;
        bool is_maximum = true;
        for (int v = y > 0 ? -1 : 0; v <= (y < height - 1 ? 1 : 0); ++v)
            for (int u = x > 0 ? -1 : 0; u <= (x < width - 1 ? 1 : 0); ++u) is_maximum &= !(plane.at(y + v, x + u) > value);
        const Best here = {value, k};
        if (is_maximum) rival = better(rival, here);
    }
    rival = best_of_block(rival, of_warps);

    int row = first / width, column = first % width;
    double value = found ? highest.value : not_a_number();
    if (ties == 2 && found) {
        Best nearest = {minus_infinity(), 0x7fffffff};
        for (int k = thread; k < rows * columns; k += THREADS) {
            const int y = top + k / columns, x = left + k % columns;
            if (!(plane.at(y, x) >= highest.value - TIE * fabs(highest.value))) continue;
            const double down = y - zero_row, across = x - zero_column;
            const Best here = {-(down * down + across * across), y * width + x};
            nearest = better(nearest, here);
        }
        nearest = best_of_block(nearest, of_warps);
        row = nearest.index / width;
        column = nearest.index % width;
        value = plane.at(row, column);
    }
    if (ties == 1) {
        const int y = tied[2 * plane_index], x = tied[2 * plane_index + 1];
        const double there = plane.at(y, x);
        if (value - there <= TIE * largest.value) {
            row = y;
            column = x;
            value = there;
        }
    }
    if (thread < 25) {
        const int y = row + thread / 5 - 2, x = column + thread % 5 - 2;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        const int pitch = width + 2 * margin;
        const double* of_scores = scores + (long long)plane_index * (height + 2 * margin) * pitch;
        record[AROUND + thread] = inside ? of_scores[(y + margin) * pitch + x + margin] : not_a_number();
    }
    if (thread >= 32 && thread < 41) {
        const int k = thread - 32, y = row + k / 3 - 1, x = column + k % 3 - 1;
        const bool inside = y >= 0 && y < height && x >= 0 && x < width;
        record[NEAR + k] = inside ? plane.at(y, x) : not_a_number();
    }
    if (thread == 0) {
        record[0] = row;
        record[1] = column;
        record[2] = value;
        record[3] = rival.value;
        bool climbs = false;
        for (int k = 0; k < 9; ++k) {
            const int y = row + k / 3 - 1, x = column + k % 3 - 1;
            if (y >= 0 && y < height && x >= 0 && x < width) climbs |= plane.at(y, x) > value;
        }
        record[4] = climbs;
        record[FISHER_VALUE] = FISHER ? transformed(value) : not_a_number();
    }

    if (!RATE) {
        if (thread == 0) record[SAMPLES] = 0.0;
        if (thread < FISHER_VALUE - MEDIANS) record[MEDIANS + thread] = not_a_number();
        return;
    }
    // A warp a median; that of the distances follows that of the values.
    const int warp = thread / LANES, kind = warp % 4;
    const bool fisher = warp >= 4;
    if (fisher && !FISHER) {
        if (thread % LANES == 0) record[MEDIANS + warp] = not_a_number();
        return;
    }
    int samples;
    double middle = 0.0, answer = 0.0;
    Plane looked_at = plane;  // written before the last barrier
    if (fisher) looked_at.values = of_fisher;
    if (kind == 0) {
        const int near_rows = rows / 8 > 1 ? rows / 8 : 1, near_columns = columns / 8 > 1 ? columns / 8 : 1;
        Rest rest = {looked_at, row - top, column - left, near_rows, near_columns, false, 0.0};
        middle = median(rest, &samples);
        rest.distances = true;
        rest.middle = middle;
        answer = median(rest, &samples);
        const Rest all = {looked_at, -rows - columns, -rows - columns, 0, 0, false, 0.0};
        samples = up_to(all, ~0ull, (Bits*)0);
    } else if (kind < 3) {
        const Steps steps = {looked_at, kind == 1};
        answer = median(steps, &samples);
    } else {
        return;  // its place holds the median that another warp finds
    }
    if (thread % LANES != 0) return;
    record[MEDIANS + 4 * (int)fisher + (kind == 0 ? 1 : kind + 1)] = answer;
    if (kind == 0) record[MEDIANS + 4 * (int)fisher] = middle;
    if (kind == 0 && !fisher) record[SAMPLES] = samples;
}
