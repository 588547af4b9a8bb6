// The rows of an image on their way to a warp: a ring of rows in shared memory, ROWS_AHEAD of them in flight.
//
// A row of the ring holds the columns of a warp and its halo on both sides. It is copied from device memory without passing
// through registers (sm_80 on); what lies outside the image is then filled in from the ring itself. Each warp has a ring of
// its own and waits for no other. Two ways of copying:
//     GRAIN = size of an element (float, double): element by element, 32 neighbours at once, whatever the alignment.
//     GRAIN = 16: in chunks of 16 bytes, as they lie in memory. With ALIGNED, images begin and rows go on at multiples of 16
//     bytes; otherwise a row of the ring begins before its first column, by another number of elements each row.
#pragma once

#include "centre.cuh"
#include "filter.cuh"
#include "quad.cuh"  // COLUMNS: of a lane, side by side

// Dynamic shared memory of the block; a host build defines its own.
#ifndef SHARED_FLOATS
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

#ifndef GROUPS  // of such columns, 32 * COLUMNS apart
#define GROUPS 1
#endif
#ifndef ALIGNED
#define ALIGNED 0
#endif
#ifndef GRAIN
#define GRAIN 16
#endif
#ifndef ROWS_AHEAD
#define ROWS_AHEAD 3
#endif

#define GROUP_COLUMNS (COLUMNS * WARP)
#define WARP_COLUMNS (GROUPS * GROUP_COLUMNS)
#define RIGHT (FILTER_WIDTH - 1 - LEFT)
#define EXACT (GRAIN == sizeof(Image))
#define GRAIN_COLUMNS (GRAIN / (int)sizeof(Image))
#define STEP (COLUMNS > GRAIN_COLUMNS ? COLUMNS : GRAIN_COLUMNS)
// Columns of the ring before the warp's own, and the first of them that is needed.
#define BEFORE (EXACT ? LEFT : (LEFT + STEP - 1) / STEP * STEP)
#define FIRST_NEEDED (BEFORE - LEFT)
#define SHIFTS (!EXACT && !ALIGNED)
#define GRAINS ((BEFORE + WARP_COLUMNS + RIGHT + GRAIN_COLUMNS - 1) / GRAIN_COLUMNS + SHIFTS)
#define ROW_UNIT (COLUMNS * (int)sizeof(Image) > 16 ? COLUMNS * (int)sizeof(Image) : 16)  // no quad passes a row's end
#define ROW_BYTES ((GRAINS * GRAIN + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT)
#define RING_BYTES ((ROWS_AHEAD + 1) * ROW_BYTES)

static_assert((GRAINS + WARP - 1) / WARP <= 32, "a lane's copies are bits of a mask");

__device__ __forceinline__ void copy_grain(unsigned to, char* generic_to, const char* from, int bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#if GRAIN == 16
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(GRAIN) : "memory");
#endif
#else
    for (int i = 0; i < bytes; ++i) generic_to[i] = from[i];
#endif
}
__device__ __forceinline__ void row_is_copied() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all rows but the last `ROWS_AHEAD - 1`.
__device__ __forceinline__ void wait_for_row() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(ROWS_AHEAD - 1) : "memory");
#endif
    __syncwarp();
}

#define NOWHERE 0x40000000
#define PLANNED (LEFT + RIGHT <= WARP)  // a lane fills in one column of every row at most

struct RowRing {
    char* memory;       // shared, of all warps; places in it are bytes from here on
    int begin;          // of this warp's ring
    int filled;         // place of the row that is copied next; after that, of the present row
    int first_needed;   // bytes into a row: the lane's first needed column
    unsigned grains;    // of this lane in the first row, as shared memory counts its addresses, less the ring's place
    const char* source; // of this lane's first grain in row 0 of the image
    const char* end;    // of all images
    int pitch;          // bytes from row to row of the image
    int height, width, first_row, first_column, lane;
    int next, last;  // row that is copied next, counted from the image's first; the last one and one
    unsigned inside;  // bit i: the lane's i-th grain has columns of the image
    bool at_edge;     // the warp needs columns outside the image
    int fill_to, fill_from;  // elements of a row: a column outside that this lane fills in, and what stands for it
    Level level;  // from which pixels are counted

    // Elements by which a row of the ring begins before `first_column`.
    __device__ __forceinline__ int shift_of(const char* row_source) const {
        return SHIFTS ? (int)((unsigned long long)row_source & 15) / (int)sizeof(Image) : 0;
    }
    __device__ __forceinline__ const char* source_of(int row) const {
        return source + (long long)source_index(row, height) * pitch;
    }

    __device__ __forceinline__ void copy_next() {
        if (next < last) {
            const char* from = source_of(next);
            if (SHIFTS) from -= shift_of(from) * (int)sizeof(Image);
#pragma unroll
            for (int i = 0; i < (GRAINS + WARP - 1) / WARP; ++i) {
                const char* grain = from + i * WARP * GRAIN;
                // Beyond the last element of the last image nothing may be read.
                const long long left = SHIFTS ? end - grain : GRAIN;
                const int bytes = left < GRAIN ? (left > 0 ? (int)left : 0) : GRAIN, place = filled + i * WARP * GRAIN;
                if (inside >> i & 1) copy_grain(grains + place, memory + lane * GRAIN + place, grain, bytes);
            }
        }
        row_is_copied();
        ++next;
        filled = filled == begin + RING_BYTES - ROW_BYTES ? begin : filled + ROW_BYTES;
    }

    __device__ __forceinline__ int columns_outside_left() const { return most(0, -(first_column + FIRST_NEEDED)); }
    __device__ __forceinline__ int columns_outside() const {
        const int right = first_column + BEFORE + WARP_COLUMNS + RIGHT - width;
        return columns_outside_left() + most(0, least(RIGHT, right));
    }
    // The i-th of them.
    __device__ __forceinline__ int column_outside(int i) const {
        const int left = columns_outside_left();
        return i < left ? -1 - i : width + i - left;
    }
    __device__ __forceinline__ void fill_one(int r, Image* row, int column, int shift) const {
        const int from = source_index(column, width), place = from - first_column + shift;
        const char* far = source_of(first_row + r) + (from - first_column) * (int)sizeof(Image) - lane * GRAIN;
        const bool here = is_inside(place, GRAINS * GRAIN_COLUMNS);
        row[column - first_column + shift] = here ? row[place] : *reinterpret_cast<const Image*>(far);
    }
    // Columns outside the image, from the ring where it has what stands for them, else from memory.
    __device__ __forceinline__ void fill_outside(int r, Image* row, int shift) const {
        if (!PLANNED) {
#pragma unroll 1
            for (int i = lane; i < columns_outside(); i += WARP) fill_one(r, row, column_outside(i), shift);
        } else if (fill_to != NOWHERE) {
            if (fill_from != NOWHERE)
                row[fill_to + shift] = row[fill_from + shift];
            else
                fill_one(r, row, column_outside(lane), shift);
        }
        __syncwarp();
    }
    __device__ __forceinline__ void plan_filling() {
        fill_to = fill_from = NOWHERE;
        if (!PLANNED || BOUNDARY == BOUNDARY_CONSTANT || !at_edge || lane >= columns_outside()) return;
        const int column = column_outside(lane), from = source_index(column, width) - first_column;
        fill_to = column - first_column;
        // A row that is shifted has up to a grain less.
        if (is_inside(from, (GRAINS - SHIFTS) * GRAIN_COLUMNS)) fill_from = from;
    }

    // To be called before each row is read. Returns the row, from the lane's first needed column on.
    __device__ __forceinline__ const Image* advance(int r) {
        wait_for_row();
        copy_next();  // the place after the one that it fills is the oldest row's: the present one
        Image* row = reinterpret_cast<Image*>(memory + filled);
        const int shift = SHIFTS ? shift_of(source_of(first_row + r) - lane * GRAIN) : 0;
        if (BOUNDARY != BOUNDARY_CONSTANT && at_edge) fill_outside(r, row, shift);
        return reinterpret_cast<const Image*>(memory + (filled + first_needed)) + shift;
    }
    __device__ __forceinline__ bool is_outside(int r) const {
        return BOUNDARY == BOUNDARY_CONSTANT && !is_inside(first_row + r, height);
    }

    // Elements FROM up to TO of the lane's window: those of the row at these places, `column` being the image's column of
    // place 0.
    template <int FROM, int TO, int SIZE>
    __device__ __forceinline__ void read(Sum (&window)[SIZE], const Image* row, int column, bool row_outside,
                                         Sum constant) const {
        if (SHIFTS) {
#pragma unroll
            for (int e = FROM; e < TO; ++e) window[e] = counted(row[e], level);
        } else {
            // Whole quads, from the multiple of COLUMNS at or before the first element on.
            constexpr int OFF = FIRST_NEEDED % COLUMNS;
            constexpr int BEGIN = (FROM + OFF) / COLUMNS, END = (TO + OFF + COLUMNS - 1) / COLUMNS;
#pragma unroll
            for (int q = BEGIN; q < END; ++q) {
                const Quad<Image> quad = *reinterpret_cast<const Quad<Image>*>(row - OFF + q * COLUMNS);
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) {
                    const int e = q * COLUMNS + k - OFF;
                    if (e >= FROM && e < TO) window[e] = counted(quad.at, k, level);
                }
            }
        }
        if (BOUNDARY == BOUNDARY_CONSTANT && (at_edge || row_outside)) {
#pragma unroll
            for (int e = FROM; e < TO; ++e)
                if (row_outside || !is_inside(column + e, width)) window[e] = constant - level.base;
        }
    }
};

// Starts the ring of a warp: its first rows are on their way. Pixels are counted from a level near the sub-block's mean.
__device__ __forceinline__ RowRing row_ring(float* shared, int warp, const FilterProblem& p, const Image* images,
                                            const SubBlock& block, const Taps& taps, int lane) {
    RowRing ring;
    ring.memory = reinterpret_cast<char*>(shared);
    ring.begin = in_register(warp * RING_BYTES);
    ring.first_needed = in_register((lane * COLUMNS + FIRST_NEEDED) * (int)sizeof(Image));
    ring.grains = 0;
#if defined(__CUDA_ARCH__)
    ring.grains = (unsigned)in_register((int)__cvta_generic_to_shared(shared) + lane * GRAIN);
#endif
    ring.first_column = block.x - BEFORE;
    ring.pitch = p.width * (int)sizeof(Image);
    ring.source = in_register(reinterpret_cast<const char*>(block.image + ring.first_column) + lane * GRAIN);
    ring.end = reinterpret_cast<const char*>(images + (long long)p.count * p.height * p.width);
    ring.height = p.height;
    ring.width = p.width;
    ring.first_row = block.y - TOP;
    ring.next = ring.first_row;
    ring.last = ring.first_row + block.rows + FILTER_HEIGHT - 1;
    ring.lane = lane;
    ring.at_edge = block.x < LEFT || block.x + WARP_COLUMNS + RIGHT > p.width;
    ring.inside = 0;
#pragma unroll
    for (int i = 0; i < (GRAINS + WARP - 1) / WARP; ++i) {
        const int grain = lane + i * WARP, column = ring.first_column + grain * GRAIN_COLUMNS;
        // With a shift, a grain may begin up to a grain earlier.
        const bool has_columns = column + GRAIN_COLUMNS > 0 && column - (SHIFTS ? GRAIN_COLUMNS : 0) < p.width;
        if (grain < GRAINS && has_columns) ring.inside |= 1u << i;
    }
    ring.inside = (unsigned)in_register((int)ring.inside);
    ring.filled = ring.begin;
#pragma unroll
    for (int r = 0; r < ROWS_AHEAD; ++r) ring.copy_next();

    ring.plan_filling();
    ring.level = level_of(0, 0.0);
    if (CENTRE) {
        const int y = least(block.y + block.rows / 2, p.height - 1);
        const int x = least(block.x + lane * (WARP_COLUMNS / WARP), p.width - 1);
        const int mean = mean_of((int)block.image[(long long)y * p.width + x]);
        ring.level = level_of(mean, (double)taps.total[0] + taps.total[1]);
    }
    return ring;
}

// Stores a lane's results, of which `inside` lie inside the image; `whole`: all do, and their address is a multiple of their
// size. Returns how many were clipped.
__device__ __forceinline__ int store_results(Result* to, const Sum* sums, const Level& level, bool whole, int inside) {
    Quad<Result> quad;
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) any |= finish(&quad.at[k], sums[k], level);
    if (whole) {
        *reinterpret_cast<Quad<Result>*>(to) = quad;
    } else {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k)
            if (k < inside) to[k] = quad.at[k];
    }
    int clipped = 0;
    if (CLIPS && any) {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k) clipped += k < inside && finish(&quad.at[k], sums[k], level) != 0;
    }
    return clipped;
}
__device__ __forceinline__ bool stores_whole(const Result* results, const FilterProblem& p, int column) {
    return is_aligned(results) && p.result_width % COLUMNS == 0 && column + COLUMNS <= p.result_width;
}
