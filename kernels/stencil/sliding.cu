// Filters of any length at a cost that does not depend on it: cosine series whose windowed sums slide down the columns.
//
// A thread processes a column, a warp 32 neighbouring ones: it computes the sums of its segment's first row from all
// rows of that window, with weights from a table that includes the boundary, and then advances row by row with two
// elements per row, the window's ends, loaded CHUNK rows ahead. 32 rows of results pass through a tile in shared memory
// and are written transposed, so that the same kernel, run twice, filters columns, then rows, and restores the images'
// orientation. A non-finite value would stay in the sums indefinitely: a warp that reads one recomputes its segment,
// with such values replaced by zeros and counted, and results whose window contains any become NaN.
// Documents: Sugimoto and Kamata, "Fast Gaussian filter with second-order shift property of DCT-5" (ICIP 2013, doi
// 10.1109/ICIP.2013.6738106), and "Efficient constant-time Gaussian filtering with sliding DCT/DST-5 and dual-domain
// error minimization" (2015, doi 10.3169/mta.3.12); there the angles are multiples of one angle, here they are free.
// Per row and term: 3 FMA and 1 addition; for the first sums, per row and term: 2 FMA, and a quarter of a load of the
// weights. Floor of a pass: one read and one write at the copy rate. A window much shorter than the column is read
// twice, and its first sums read it once more: 1.5 to 2 floors.
#include "sliding.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 4
#endif
#ifndef CHUNK  // rows whose ends are loaded at once, while those before are worked on: divides 32
#define CHUNK 16
#endif
// loads of a lane for the first sums that are on their way: divides 8
#define START_CHUNK 2
#ifndef START_FLUSH  // rows whose products are summed in float before they are added up in double: a multiple of 32
#define START_FLUSH 128
#endif

#define TILE_PITCH (WARP + 1)
#define START_COLUMNS START_WEIGHTS         // neighbouring columns that a lane works on for the first sums: 4, 2 of double
#define START_LANES (WARP / START_COLUMNS)  // lanes of a row there
static_assert(WARP % (START_CHUNK * START_COLUMNS) == 0 && START_FLUSH % WARP == 0, "rows are shared out evenly");

struct alignas(sizeof(Image) * START_COLUMNS > 16 ? 16 : sizeof(Image) * START_COLUMNS) Neighbours {
    Image at[START_COLUMNS];
};

struct Column {
    const Image* top;   // first element
    int height, pitch;  // of the image; bytes from row to row

    __device__ __forceinline__ const Image* at(int row) const {
        return reinterpret_cast<const Image*>(reinterpret_cast<const char*>(top) + (long long)row * pitch);
    }
    __device__ __forceinline__ Image element(int row) const { return *at(source_index(row, height)); }
};

// The columns and rows of a warp.
struct Part {
    Column strip;              // the first of its columns
    int columns;               // that the image has from there on
    int segment, start, rows;  // number of its segment, first row and number of rows
    Result* results;           // of the first column
};
__device__ __forceinline__ Part part_of(const SlidingProblem& p, const Image* images, Result* results, int warp) {
    const int strips = ceil_div(p.width, WARP);
    const int x = warp % strips * WARP, segment = warp / strips % p.segments, number = warp / strips / p.segments;
    const int start = segment * p.segment_rows;
    const long long image = (long long)number * p.height * p.width;
    const int rows = number < p.count ? min(p.segment_rows, p.height - start) : 0;
    const Column strip = {images + image + x, p.height, p.width * (int)sizeof(Image)};
    const Part part = {strip, p.width - x, segment, start, rows, results + image + (long long)x * p.height};
    return part;
}

// Rows one after the other, inside the image or not. Between two turns of the boundary they are equally far apart, and only
// the few rows around a turn have each its index.
struct Rows {
    const Image* next;   // element of the next row
    int row, run, step;  // its number; rows from there on that are `step` bytes apart

    __device__ __forceinline__ void find_run(const Column& c) {
        const int from = source_index(row, c.height), direction = source_index(row + 1, c.height) - from;
        next = c.at(from);
        step = direction * c.pitch;
        run = direction > 0 ? c.height - from : from + 1;
        if (direction == 0) run = BOUNDARY == BOUNDARY_REFLECT ? 1 : row < 0 ? -row : c.height;
        if (direction > 1 || direction < -1) run = 1;
    }
    template <int ROWS>
    __device__ __forceinline__ void load(Image (&to)[ROWS], const Column& c) {
        if (run < ROWS) find_run(c);
        const char* at = reinterpret_cast<const char*>(next);
        if (run >= ROWS) {
#pragma unroll
            for (int j = 0; j < ROWS; ++j) to[j] = *reinterpret_cast<const Image*>(at + (long long)step * j);
        } else {
#pragma unroll
            for (int j = 0; j < ROWS; ++j) to[j] = c.element(row + j);
        }
        next = reinterpret_cast<const Image*>(at + (long long)step * ROWS);
        row += ROWS;
        run -= ROWS;
    }
};

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
    return clean<CAREFUL>(outside ? series.outside : widened(raw), sign, bad);
}

// Sums of which START_COLUMNS lanes have a share each become whole: lane l ends with those of the strip's column l. Before,
// lane l has shares of the columns START_COLUMNS * (l % START_LANES) + c. Of two lanes each hands over half of its columns.
__device__ __forceinline__ void add_shares(double (&whole)[2 * TERMS], Sum (&share)[START_COLUMNS][2 * TERMS]) {
    const int lane = threadIdx.x % WARP;
    const int holder = lane / START_COLUMNS + lane % START_COLUMNS * START_LANES;  // of column `lane`, after that
#pragma unroll
    for (int i = 0; i < 2 * TERMS; ++i) {
#pragma unroll
        for (int half = START_COLUMNS / 2; half > 0; half /= 2) {
            const bool upper = lane & half * START_LANES;
#pragma unroll
            for (int c = 0; c < half; ++c) {
                const Sum low = share[c][i], high = share[c + half][i];
                share[c][i] = (upper ? high : low) + __shfl_xor_sync(ALL_LANES, upper ? low : high, half * START_LANES);
            }
        }
        whole[i] += __shfl_sync(ALL_LANES, share[0][i], holder);
    }
}

// The sums of a segment's first row, of the column of each lane. `weights` are those of its window's rows, the first of them
// an image row of `first_rows`; `around` those of all that lies outside, for BOUNDARY_CONSTANT. A lane works on START_COLUMNS
// neighbouring columns of every START_COLUMNS-th row, so that a row's weights are loaded once for as many. A product's
// rounding is as good as any; that of many additions is not: after START_FLUSH rows they go on in double.
template <bool CAREFUL>
__device__ __forceinline__ Sums first_sums(const Part& work, const SlidingProblem& p, const Series& series,
                                           const StartVector* weights, const int* first_rows, const double* around) {
    const int lane = threadIdx.x % WARP, turn = lane / START_LANES, last_row = p.height - 1;
    const int column = lane % START_LANES * START_COLUMNS, first = first_rows[work.segment];
    const bool together = is_aligned(work.strip.top) && p.width % COLUMNS == 0 && work.columns >= WARP;
    weights += (long long)work.segment * p.start_rows * START_VECTORS;
    around += work.segment * 2 * TERMS;
    int unused = 0;
    auto load = [&](Neighbours& to, int row) {
        const Image* from = work.strip.at(min(first + row, last_row));
        if (together) {
            to = *reinterpret_cast<const Neighbours*>(from + column);
        } else {
#pragma unroll
            for (int k = 0; k < START_COLUMNS; ++k) to.at[k] = from[min(column + k, work.columns - 1)];
        }
    };
    double whole[2 * TERMS];
#pragma unroll
    for (int i = 0; i < 2 * TERMS; ++i) whole[i] = 0;
    Neighbours ahead[START_CHUNK];
#pragma unroll
    for (int j = 0; j < START_CHUNK; ++j) load(ahead[j], j * START_COLUMNS + turn);
    Sum share[START_COLUMNS][2 * TERMS];
#pragma unroll
    for (int i = 0; i < START_COLUMNS * 2 * TERMS; ++i) (&share[0][0])[i] = 0;
#pragma unroll 1
    for (int r = 0; r < p.start_rows; r += START_CHUNK * START_COLUMNS) {
#pragma unroll
        for (int j = 0; j < START_CHUNK; ++j) {
            const StartVector* row = weights + (r + j * START_COLUMNS + turn) * START_VECTORS;
            Sum value[START_COLUMNS];
#pragma unroll
            for (int k = 0; k < START_COLUMNS; ++k) value[k] = clean<CAREFUL>((Sum)ahead[j].at[k], 0, unused);
            load(ahead[j], r + (START_CHUNK + j) * START_COLUMNS + turn);
#pragma unroll
            for (int i = 0; i < 2 * TERMS; ++i)
#pragma unroll
                for (int k = 0; k < START_COLUMNS; ++k)
                    share[k][i] = multiply_add(row[i / START_WEIGHTS].at[i % START_WEIGHTS], value[k], share[k][i]);
        }
        if (sizeof(Sum) < sizeof(double) && (r + START_CHUNK * START_COLUMNS) % START_FLUSH == 0) {
            add_shares(whole, share);
#pragma unroll
            for (int i = 0; i < START_COLUMNS * 2 * TERMS; ++i) (&share[0][0])[i] = 0;
        }
    }
    add_shares(whole, share);
    const Sum outside = BOUNDARY == BOUNDARY_CONSTANT ? clean<CAREFUL>(series.outside, 0, unused) : (Sum)0;
    Sums sums;
#pragma unroll
    for (int k = 0; k < TERMS; ++k) {
        double sum = whole[k], step = whole[TERMS + k];
        if (BOUNDARY == BOUNDARY_CONSTANT) {
            sum += around[k] * outside;
            step += around[TERMS + k] * outside;
        }
        sums.begin(k, (Sum)sum, (Sum)step);
    }
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
            AlignedVector<Result> vec4;
#pragma unroll
            for (int k = 0; k < COLUMNS; ++k) vec4.at[k] = tile[(column + i) * TILE_PITCH + row + k];
            *reinterpret_cast<AlignedVector<Result>*>(to + (long long)i * pitch) = vec4;
        }
    } else if (lane < rows) {
#pragma unroll 4
        for (int column = 0; column < min(WARP, columns); ++column)
            to[(long long)column * pitch + lane] = tile[column * TILE_PITCH + lane];
    }
}

// Steps from row to row of a part, from the sums of its first row on. Returns whether all that a lane has read is finite.
template <bool CAREFUL, int ROWS>
__device__ __forceinline__ bool walk(const Part& work, const SlidingProblem& p, const Series& series, Sums sums,
                                     Result* tile, int& clipped) {
    const int lane = threadIdx.x % WARP, radius = p.radius, start = work.start, rows = work.rows;
    const Column c = {work.strip.top + min(lane, work.columns - 1), p.height, work.strip.pitch};
    int bad = 0;
    if (CAREFUL)
        for (int j = -radius; j <= radius; ++j) value_of<true>(c.element(start + j), start + j, c, series, 1, bad);
    int unused = 0;
    const int above = start - radius - 1, below = start + radius;
    Ends ends;
    ends.above = value_of<CAREFUL>(c.element(above), above, c, series, 0, unused);
    ends.below = value_of<CAREFUL>(c.element(below), below, c, series, 0, unused);
    Image next_below[ROWS], leaving[ROWS];
    Rows entering_rows = {c.top, below + 1, 0, 0}, leaving_rows = {c.top, above + 1, 0, 0};
    entering_rows.load(next_below, c);
    leaving_rows.load(leaving, c);
    const bool aligned = is_aligned(work.results) && p.height % COLUMNS == 0;
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
            entering_rows.load(next_below, c);
            leaving_rows.load(leaving, c);
#pragma unroll
            for (int j = 0; j < ROWS; ++j) {
                Sum total = total_of(sums);
                if (CAREFUL && bad > 0) total = (Sum)__int_as_float(0x7fc00000);
                const int beyond = put_total(&tile[lane * TILE_PITCH + r + j], total);
                if (done + r + j < rows && lane < work.columns) clipped += beyond;
                ends.next_below = value_of<CAREFUL>(entering[j], row + j + radius + 1, c, series, 1, bad);
                ends.leaving = value_of<CAREFUL>(left[j], row + j - radius, c, series, -1, bad);
                sums.advance(series, ends);
                ends.below = ends.next_below;
                ends.above = ends.leaving;
            }
        }
        __syncwarp();
        write_tile(tile, work.results + start + done, p.height, min(WARP, rows - done), work.columns, aligned);
        __syncwarp();
    }
    return is_finite(total_of(sums));
}

extern "C" __global__ void __launch_bounds__(WARPS* WARP, BLOCKS)
    sliding(const Image* images, Result* results, unsigned long long* clipped, const StartVector* weights,
            const int* first_rows, const double* around, const __grid_constant__ Series series, SLIDING_PARAMETERS) {
    SHARED_FLOATS(shared);
    const SlidingProblem p = SLIDING_ARGUMENTS;
    // Worked out again for every use: the first sums take all registers, and so do the steps.
    auto work = [&] {
        return part_of(p, images, results, in_register((int)blockIdx.x * WARPS + (int)threadIdx.x / WARP));
    };
    if (work().rows <= 0) return;

    Result* tile = reinterpret_cast<Result*>(shared) + threadIdx.x / WARP * (WARP * TILE_PITCH);
    int mine = 0;
    const Sums sums = first_sums<false>(work(), p, series, weights, first_rows, around);
    const bool finite = walk<false, CHUNK>(work(), p, series, sums, tile, mine);
    if (MAY_BE_NOT_FINITE) {
        int again = !finite;
#pragma unroll
        for (int distance = 1; distance < WARP; distance *= 2) again |= __shfl_xor_sync(ALL_LANES, again, distance);
        if (again) {
            const Sums cleaned = first_sums<true>(work(), p, series, weights, first_rows, around);
            walk<true, 1>(work(), p, series, cleaned, tile, mine);
        }
    }
    add_clipped(clipped, mine);
}
