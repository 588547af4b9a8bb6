// Filters of any length at a cost that does not depend on it: cosine series whose windowed sums slide down the columns.
//
// A thread owns a column, a warp 32 neighbouring ones: it forms the sums of its segment's first row from all rows of that
// window, with weights of a table into which the boundary is folded, and then steps from row to row with two elements a
// row, the window's ends, loaded CHUNK rows ahead. 32 rows of results pass through a tile in shared memory and are written
// transposed, so that the same kernel, run twice, filters columns, then rows, and ends in the images' own orientation.
// What is not finite would stay in the sums for ever: a warp that meets it goes over its segment again, with zeros in its
// place and a count of it, and results whose window holds some become NaN.
// Documents: Sugimoto and Kamata, "Fast Gaussian filter with second-order shift property of DCT-5" (ICIP 2013,
// doi 10.1109/ICIP.2013.6738106), and "Efficient constant-time Gaussian filtering with sliding DCT/DST-5 and dual-domain
// error minimization" (2015, doi 10.3169/mta.3.12); there the period is the window's, here it is free.
// A row and term: 3 FMA and 1 addition. Floor of a pass: one read and one write at the copy rate. A window much shorter
// than the column is read twice, and its first sums read it once more: 1.5 to 2 floors.
#include "sliding.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 4
#endif
#ifndef CHUNK  // rows whose ends are loaded at once, while those before are worked on: divides 32
#define CHUNK 8
#endif
#ifndef START_CHUNK  // rows that are worked on at once for the first sums: divides START_FLUSH
#define START_CHUNK 2
#endif
#ifndef START_AHEAD  // times as many that are on their way meanwhile
#define START_AHEAD 4
#endif
#ifndef START_FLUSH  // rows whose products are summed in START_TYPE before they are added up in double: divides 32
#define START_FLUSH 16
#endif
#ifndef SHARED_FLOATS
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

#define TILE_PITCH (WARP + 1)

struct Column {
    const Image* top;  // first element
    int height, step;  // of the image; elements from row to row
};

__device__ __forceinline__ Image element(const Column& c, int row) {
    return c.top[(long long)source_index(row, c.height) * c.step];
}

// Neighbouring rows from `first` on, inside the image or not. Only where the boundary turns among them has each its index.
template <int ROWS>
__device__ __forceinline__ void load_rows(Image (&to)[ROWS], const Column& c, int first) {
    const int from = source_index(first, c.height), apart = source_index(first + ROWS - 1, c.height) - from;
    int direction = 2;
    if (apart == ROWS - 1) direction = 1;
    if ((BOUNDARY == BOUNDARY_REFLECT || BOUNDARY == BOUNDARY_MIRROR) && apart == 1 - ROWS) direction = -1;
    if ((BOUNDARY == BOUNDARY_NEAREST || BOUNDARY == BOUNDARY_CONSTANT) && apart == 0) direction = 0;
    if (direction != 2) {
        const Image* at = c.top + (long long)from * c.step;
        const long long stride = direction * c.step;
#pragma unroll
        for (int j = 0; j < ROWS; ++j) to[j] = at[j * stride];
        return;
    }
#pragma unroll
    for (int j = 0; j < ROWS; ++j) to[j] = element(c, first + j);
}

// An element as the sums take it. CAREFUL: zero where it is not finite, which is counted with the given sign.
template <bool CAREFUL>
__device__ __forceinline__ Sum clean(Sum value, int sign, int& bad) {
    if (!CAREFUL || is_finite(value)) return value;
    bad += sign;
    return 0;
}
template <bool CAREFUL>
__device__ __forceinline__ Sum value_of(Image raw, int row, const Column& c, const Series& series, int sign, int& bad) {
    const bool outside = BOUNDARY == BOUNDARY_CONSTANT && !is_inside(row, c.height);
    return clean<CAREFUL>(outside ? series.outside : (Sum)raw, sign, bad);
}

// The sums of a segment's first row. `weights` are those of its window's rows, from image row `first` on; `around` those of
// all that lies outside, for BOUNDARY_CONSTANT. A product's rounding is as good as any; that of many additions is not.
template <bool CAREFUL, int ROWS, int AHEAD>
__device__ __forceinline__ Sums first_sums(const Column& c, const SlidingProblem& p, const Series& series, int first,
                                           const StartVector* weights, const double* around) {
    const int last_row = c.height - 1;
    int unused = 0;
    Image ahead[AHEAD][ROWS];  // the next chunks of rows, on their way
#pragma unroll
    for (int a = 0; a < AHEAD; ++a)
#pragma unroll
        for (int j = 0; j < ROWS; ++j) ahead[a][j] = c.top[(long long)least(first + a * ROWS + j, last_row) * c.step];
    Start part[2 * TERMS];
    double whole[2 * TERMS];
#pragma unroll
    for (int i = 0; i < 2 * TERMS; ++i) whole[i] = part[i] = 0;
#pragma unroll 1
    for (int r = 0; r < p.start_rows; r += ROWS) {
        Image raw[ROWS];
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
            raw[j] = ahead[0][j];
#pragma unroll
            for (int a = 1; a < AHEAD; ++a) ahead[a - 1][j] = ahead[a][j];
            ahead[AHEAD - 1][j] = c.top[(long long)least(first + r + AHEAD * ROWS + j, last_row) * c.step];
        }
#pragma unroll
        for (int j = 0; j < ROWS; ++j) {
            const Start value = (Start)clean<CAREFUL>((Sum)raw[j], 0, unused);
#pragma unroll
            for (int v = 0; v < START_VECTORS; ++v) {
                const StartVector w = weights[(r + j) * START_VECTORS + v];
#pragma unroll
                for (int e = 0; e < START_LANES; ++e) {
                    const int i = v * START_LANES + e;
                    if (i < 2 * TERMS) part[i] = multiply_add(w.at[e], value, part[i]);
                }
            }
        }
        if (sizeof(Start) < sizeof(double) && (r + ROWS) % START_FLUSH == 0) {
#pragma unroll
            for (int i = 0; i < 2 * TERMS; ++i) {
                whole[i] += part[i];
                part[i] = 0;
            }
        }
    }
    const Sum outside = BOUNDARY == BOUNDARY_CONSTANT ? clean<CAREFUL>(series.outside, 0, unused) : (Sum)0;
#pragma unroll
    for (int i = 0; i < 2 * TERMS; ++i) {
        whole[i] += part[i];
        if (BOUNDARY == BOUNDARY_CONSTANT) whole[i] += around[i] * outside;
    }
    Sums sums;
#pragma unroll
    for (int k = 0; k < TERMS; ++k) sums.begin(k, (Sum)whole[k], (Sum)whole[TERMS + k]);
    return sums;
}

// A tile's columns become rows of the result, `pitch` elements apart. Whole tiles go out by four elements a lane, four rows
// of the result at once.
__device__ __forceinline__ void write_tile(const Result* tile, Result* to, int pitch, int rows, int columns, bool aligned) {
    const int lane = threadIdx.x % WARP;
    if (aligned && rows == WARP && columns >= WARP) {
        const int column = lane / (WARP / COLUMNS), row = lane % (WARP / COLUMNS) * COLUMNS;
        to += (long long)column * pitch + row;
#pragma unroll
        for (int i = 0; i < WARP; i += COLUMNS) {
            Quad<Result> quad;
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) quad.at[k] = tile[(column + i) * TILE_PITCH + row + k];
            *reinterpret_cast<Quad<Result>*>(to + (long long)i * pitch) = quad;
        }
    } else if (lane < rows) {
#pragma unroll 4
        for (int column = 0; column < least(WARP, columns); ++column)
            to[(long long)column * pitch + lane] = tile[column * TILE_PITCH + lane];
    }
}

// One warp's 32 columns of one segment. Returns whether all that a lane has met is finite.
template <bool CAREFUL, int ROWS>
__device__ __forceinline__ bool walk(const Column& c, const SlidingProblem& p, const Series& series, int start, int rows,
                                     Sums sums, Result* tile, Result* columns, int columns_left, int& clipped) {
    const int lane = threadIdx.x % WARP, radius = p.radius;
    int bad = 0;
    if (CAREFUL)
        for (int j = -radius; j <= radius; ++j) value_of<true>(element(c, start + j), start + j, c, series, 1, bad);
    int unused = 0;
    const int above = start - radius - 1, below = start + radius;
    Ends ends;
    ends.above = value_of<CAREFUL>(element(c, above), above, c, series, 0, unused);
    ends.below = value_of<CAREFUL>(element(c, below), below, c, series, 0, unused);
    Image next_below[ROWS], leaving[ROWS];
    load_rows(next_below, c, below + 1);
    load_rows(leaving, c, above + 1);
    const bool aligned = is_aligned(columns) && p.height % COLUMNS == 0;
    clipped = 0;

#pragma unroll 1
    for (int done = 0; done < rows; done += WARP) {
#pragma unroll 1
        for (int r = 0; r < WARP; r += ROWS) {
            const int row = start + done + r;
            Image entering[ROWS], left[ROWS];
#pragma unroll
            for (int j = 0; j < ROWS; ++j) {
                entering[j] = next_below[j];
                left[j] = leaving[j];
            }
            load_rows(next_below, c, row + ROWS + radius + 1);
            load_rows(leaving, c, row + ROWS - radius);
#pragma unroll
            for (int j = 0; j < ROWS; ++j) {
                Sum total = total_of(sums);
                if (CAREFUL && bad > 0) total = (Sum)__int_as_float(0x7fc00000);
                const int beyond = put(&tile[lane * TILE_PITCH + r + j], total);
                if (done + r + j < rows && lane < columns_left) clipped += beyond;
                ends.next_below = value_of<CAREFUL>(entering[j], row + j + radius + 1, c, series, 1, bad);
                ends.leaving = value_of<CAREFUL>(left[j], row + j - radius, c, series, -1, bad);
                sums.advance(series, ends);
                ends.below = ends.next_below;
                ends.above = ends.leaving;
            }
        }
        __syncwarp();
        write_tile(tile, columns + start + done, p.height, least(WARP, rows - done), columns_left, aligned);
        __syncwarp();
    }
    return is_finite(total_of(sums));
}

extern "C" __global__ void __launch_bounds__(WARPS* WARP, BLOCKS)
    sliding(const Image* images, Result* results, unsigned long long* clipped, const StartVector* weights,
            const int* first_rows, const double* around, const __grid_constant__ Series series, SLIDING_PARAMETERS) {
    SHARED_FLOATS(shared);
    const SlidingProblem p = SLIDING_ARGUMENTS;
    const int lane = threadIdx.x % WARP, warp = (int)blockIdx.x * WARPS + threadIdx.x / WARP;
    const int strips = ceil_div(p.width, WARP);
    const int strip = warp % strips, segment = warp / strips % p.segments, number = warp / strips / p.segments;
    if (number >= p.count) return;
    const int x = strip * WARP, start = segment * p.segment_rows, rows = least(p.segment_rows, p.height - start);
    if (rows <= 0) return;

    const long long image = (long long)number * p.height * p.width;
    const Column column = {images + image + least(x + lane, p.width - 1), p.height, p.width};
    Result* tile = reinterpret_cast<Result*>(shared) + threadIdx.x / WARP * (WARP * TILE_PITCH);
    Result* to = results + image + (long long)x * p.height;
    const StartVector* table = weights + (long long)segment * p.start_rows * START_VECTORS;
    const double* beyond = around + segment * 2 * TERMS;
    const int first = first_rows[segment], columns_left = p.width - x;
    int mine = 0;
    const Sums sums = first_sums<false, START_CHUNK, START_AHEAD>(column, p, series, first, table, beyond);
    const bool finite = walk<false, CHUNK>(column, p, series, start, rows, sums, tile, to, columns_left, mine);
    if (MAY_BE_NOT_FINITE) {
        int again = !finite;
#pragma unroll
        for (int distance = 1; distance < WARP; distance *= 2) again |= __shfl_xor_sync(ALL_LANES, again, distance);
        if (again) {
            const Sums cleaned = first_sums<true, 1, 1>(column, p, series, first, table, beyond);
            walk<true, 1>(column, p, series, start, rows, cleaned, tile, to, columns_left, mine);
        }
    }
    add_clipped(clipped, mine);
}
