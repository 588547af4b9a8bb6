// Frames of a stack seen through a motion of their own: result[y, x] = frame[source(y, x)], one launch for all of them.
//
// FIELD 0: source(y, x) = M (y, x, 1), a matrix of 2 x 3 for each frame. FIELD 1: source(y, x) = (y, x) + d(y, x), d a
// spline over a coarse grid: four coefficients along each axis, whose weights depend on the row and the column alone and
// come in tables, the same for all frames. A thread goes down a strip of one column: it sums the coefficients along the
// columns' axis for four of their rows and keeps that until the row needs others, so that a pixel takes eight
// multiply-adds for its displacement. Neighbouring threads have neighbouring columns, which read and write together.
//
// TAPS 1 copies the nearest pixel's bits, 2 interpolates linearly, 4 sums a cubic B-spline whose coefficients, in the type
// of the sums, take the place of the frames. Positions by a matrix are in float64; a displacement is a float, whose whole
// and remaining parts are exact without. What lies outside by more than EDGE_TOLERANCE is filled, or sees the edge; pixels
// under taps beyond the edge are the edge's (linear) or mirrored about it (cubic). NaN under a weight of zero does not
// count.
//
// Document: Unser, IEEE Signal Process. Mag. 1999, doi:10.1109/79.799930 (B-splines).
// Floor: one read and one write of every pixel, of which the reads of a bent frame are shared by the cache, and 800 bytes
// of coefficients for 8 x 8 patches: 512 x 512 of uint16 on an H200 (4.1 TB/s) 0.255 us a frame; cubic reads float32,
// 0.38 us. Instructions are the nearer bound: about 140 a pixel of a field (linear; sm_90, without those of a row that needs
// new coefficients), which 132 multiprocessors of four schedulers at 1.755 GHz issue in 1.24 us a frame.
#include "cubic_spline.cuh"
#include "field_splines.cuh"
#include "pixel.cuh"

#ifndef TAPS  // along an axis: 1, 2 or 4
#define TAPS 2
#endif
#ifndef FIELD  // 1: a field of displacements, 0: a matrix
#define FIELD 0
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers, so that none is spilled
#define BLOCKS (sizeof(SUM_TYPE) == 8 ? 4 : 6)
#endif
#define BEFORE (TAPS == 4 ? 1 : 0)  // pixels under taps before a place
#define EDGE_TOLERANCE 1e-3  // pixels beyond an edge that still count as inside, as of translations

#if TAPS == 4
typedef Sum Source;
#else
typedef Pixel Source;
#endif

struct Sizes {
    unsigned long long outside;  // bits of what lies outside, where it is filled
    int height, width;           // of a frame
    int rows;                    // of a strip
    int blocks;                  // of a frame
    int grid_rows, grid_columns; // of coefficients
    int fills_outside;           // 0: what lies outside sees the edge
};

__device__ __forceinline__ Sum value_at(const Pixel* place) {
    Word word = 0;
    memcpy(&word, place, sizeof(Pixel));
    return value_of(word, 0);
}

// Where an axis is looked at: the index at or before a place, what is left, and whether it is inside.
struct Place {
    int at;
    Sum rest;
    bool inside;
};

__device__ __forceinline__ Place place_on(double position, int length) {
    const double last = length - 1;
    Place place;
    place.inside = position >= -EDGE_TOLERANCE && position <= last + EDGE_TOLERANCE;
    const double held = position > 0 ? (position < last ? position : last) : 0.0;
    const double whole = TAPS == 1 ? floor(held + 0.5) : floor(held);
    place.at = (int)whole;
    place.rest = (Sum)(held - whole);
    return place;
}

// The same for a place given by a pixel and how far from it: no float64, of which many devices do little and all convert
// slowly; what is left of a float beyond its whole part is exact.
__device__ __forceinline__ Place place_near(int pixel, float away, int length) {
    const float whole = fminf(fmaxf(floorf(away), -1e9f), 1e9f);  // no frame is as large: the sum stays an int
    const int at = pixel + (int)whole, last = length - 1;
    const Sum rest = (Sum)away - (Sum)whole;
    const Sum tolerance = (Sum)EDGE_TOLERANCE;
    Place place;
    place.inside = (at >= 0 || (at == -1 && rest >= 1 - tolerance)) && (at < last || (at == last && rest <= tolerance));
    const bool before = at < 0, beyond = at >= last;
    place.at = before ? 0 : beyond ? last : TAPS == 1 ? at + (rest >= (Sum)0.5) : at;
    place.rest = before || beyond ? (Sum)0 : rest;
    return place;
}

// The pixel under tap k of a place; `within` where no tap reaches beyond the edge.
__device__ __forceinline__ int under_tap(int at, int k, int length, bool within) {
    const int i = at + k - BEFORE;
    if (within) return i;
    if (TAPS < 4) return min(i, length - 1);
    const int mirrored = i < 0 ? -i : i > length - 1 ? 2 * (length - 1) - i : i;
    return min(max(mirrored, 0), length - 1);
}

__device__ __forceinline__ bool is_within(const Place& place, int length) {
    return place.at >= BEFORE && place.at + TAPS - BEFORE <= length;
}

__device__ __forceinline__ void weights_of(const Place& place, Sum (&weight)[TAPS]) {
#if TAPS == 4
    cubic_weights(place.rest, weight);
#elif TAPS == 2
    weight[0] = 1 - place.rest;
    weight[1] = place.rest;
#endif
}

// WITHIN is known when compiling: neighbouring pixels then need one address.
template <bool WITHIN>
__device__ __forceinline__ Pixel sampled(const Source* frame, const Place& down, const Place& across, const Sizes& p) {
#if TAPS == 1
    return frame[(long long)down.at * p.width + across.at];
#else
    Sum along_rows[TAPS], along_columns[TAPS], sum = 0;
    weights_of(down, along_rows);
    weights_of(across, along_columns);
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        const Source* line = frame + (long long)under_tap(down.at, i, p.height, WITHIN) * p.width;
        Sum part = 0;
#pragma unroll
        for (int k = 0; k < TAPS; ++k) {
            const Source* place = line + under_tap(across.at, k, p.width, WITHIN);
#if TAPS == 4
            const Sum value = *place;
#else
            const Sum value = value_at(place);
#endif
            part = Is<Pixel>::INTEGER || along_columns[k] != 0 ? fused(value, along_columns[k], part) : part;
        }
        sum = Is<Pixel>::INTEGER || along_rows[i] != 0 ? fused(part, along_rows[i], sum) : sum;
    }
    return stored(sum);
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    warp_frames(const Source* frames, Pixel* results, const double* matrices, const Vector* fields,
                const Weights* row_weights, const int* row_starts, const Weights* column_weights,
                const int* column_starts, const __grid_constant__ Sizes p) {
    const int number = (int)blockIdx.x / p.blocks;
    const int thread = ((int)blockIdx.x - number * p.blocks) * THREADS + (int)threadIdx.x;
    const int strip = thread / p.width, x = thread - strip * p.width;
    const int first = min(strip * p.rows, p.height), stop = min(first + p.rows, p.height);
    const long long before = (long long)number * p.height * p.width;
    const Source* frame = frames + before;
    Pixel* to = results + before + x;
#if FIELD
    const Weights across = column_weights[x];
    const Vector* field = fields + (long long)number * p.grid_rows * p.grid_columns + column_starts[x];
    Vector summed[NODES];  // along the columns' axis, of the coefficients' rows from `held` on
    int held = -1;
#else
    const double* m = matrices + 6 * (long long)number;
    const double down_at = m[1] * x + m[2], across_at = m[4] * x + m[5], down_step = m[0], across_step = m[3];
#endif
#pragma unroll 1  // several rows at once would take the registers of many warps
    for (int y = first; y < stop; ++y) {
#if FIELD
        if (row_starts[y] != held) {
            held = row_starts[y];
            summed_across(field + (long long)held * p.grid_columns, p.grid_columns, across, summed);
        }
        const Vector away = summed_down(summed, row_weights[y]);
        const Place row = place_near(y, away.y, p.height), column = place_near(x, away.x, p.width);
#else
        const Place row = place_on(fma(down_step, (double)y, down_at), p.height);
        const Place column = place_on(fma(across_step, (double)y, across_at), p.width);
#endif
        Pixel pixel = same_bits<Pixel>(p.outside);
        if (!p.fills_outside || (row.inside && column.inside)) {
            const bool within = is_within(row, p.height) && is_within(column, p.width);
            pixel = within ? sampled<true>(frame, row, column, p) : sampled<false>(frame, row, column, p);
        }
        to[(long long)y * p.width] = pixel;
    }
}
