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

struct RowRing {
    char* ring;  // this warp's
    unsigned address;  // the same, as shared memory counts it
    const char* source;  // of this lane's first grain in row 0 of the image
    const char* end;     // of all images
    int pitch;           // bytes from row to row of the image
    int height, width, first_row, rows, first_column, lane;
    Sum centre;           // subtracted from what is read
    unsigned inside;  // bit i: the lane's i-th grain has columns of the image
    bool at_edge;     // the warp needs columns outside the image
    int filled, taken, next;  // bytes into the ring: the next row's place, the present row's; row that is copied next

    // Elements by which a row of the ring begins before `first_column`.
    __device__ __forceinline__ int shift_of(const char* row_source) const {
        return SHIFTS ? (int)((unsigned long long)row_source & 15) / (int)sizeof(Image) : 0;
    }
    __device__ __forceinline__ const char* source_of(int r) const {
        return source + (long long)source_index(first_row + r, height) * pitch;
    }

    __device__ __forceinline__ void copy_next() {
        if (next < rows) {
            const char* from = source_of(next);
            if (SHIFTS) from -= shift_of(from) * (int)sizeof(Image);
            const int to = filled + lane * GRAIN;
#pragma unroll
            for (int i = 0; i < (GRAINS + WARP - 1) / WARP; ++i) {
                const char* grain = from + i * WARP * GRAIN;
                // Beyond the last element of the last image nothing may be read.
                const long long left = SHIFTS ? end - grain : GRAIN;
                const int bytes = left < GRAIN ? (left > 0 ? (int)left : 0) : GRAIN, place = to + i * WARP * GRAIN;
                if (inside >> i & 1) copy_grain(address + place, ring + place, grain, bytes);
            }
        }
        row_is_copied();
        ++next;
        filled = filled + ROW_BYTES == RING_BYTES ? 0 : filled + ROW_BYTES;
    }

    // Columns outside the image, from the ring where it has what stands for them, else from memory.
    __device__ __forceinline__ void fill_outside(int r, Image* row, int shift) const {
        const int left = most(0, -(first_column + FIRST_NEEDED));
        const int right = most(0, least(RIGHT, first_column + BEFORE + WARP_COLUMNS + RIGHT - width));
#pragma unroll 1
        for (int i = lane; i < left + right; i += WARP) {
            const int column = i < left ? -1 - i : width + i - left;
            const int from = source_index(column, width), place = from - first_column + shift;
            const char* memory = source_of(r) + (from - first_column) * (int)sizeof(Image) - lane * GRAIN;
            const bool here = is_inside(place, GRAINS * GRAIN_COLUMNS);
            row[column - first_column + shift] = here ? row[place] : *reinterpret_cast<const Image*>(memory);
        }
        __syncwarp();
    }

    // To be called before each row is read. Returns the row, from the lane's first needed column on.
    __device__ __forceinline__ const Image* advance(int r) {
        wait_for_row();
        copy_next();
        taken = taken + ROW_BYTES == RING_BYTES ? 0 : taken + ROW_BYTES;
        Image* row = reinterpret_cast<Image*>(ring + taken);
        const int shift = SHIFTS ? shift_of(source_of(r) - lane * GRAIN) : 0;
        if (BOUNDARY != BOUNDARY_CONSTANT && at_edge) fill_outside(r, row, shift);
        return row + lane * COLUMNS + FIRST_NEEDED + shift;
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
            for (int e = FROM; e < TO; ++e) window[e] = (Sum)row[e] - centre;
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
                    if (e >= FROM && e < TO) window[e] = (Sum)quad.at[k] - centre;
                }
            }
        }
        if (BOUNDARY == BOUNDARY_CONSTANT && (at_edge || row_outside)) {
#pragma unroll
            for (int e = FROM; e < TO; ++e)
                if (row_outside || !is_inside(column + e, width)) window[e] = constant - centre;
        }
    }
};

__device__ __forceinline__ RowRing row_ring(char* memory, const FilterProblem& p, const Image* images, const SubBlock& block,
                                            Sum centre, int lane) {
    RowRing ring;
    ring.centre = centre;
    ring.ring = memory;
    ring.address = 0;
#if defined(__CUDA_ARCH__)
    ring.address = (unsigned)__cvta_generic_to_shared(memory);
#endif
    ring.first_column = block.x - BEFORE;
    ring.pitch = p.width * (int)sizeof(Image);
    ring.source = reinterpret_cast<const char*>(block.image + ring.first_column) + lane * GRAIN;
    ring.end = reinterpret_cast<const char*>(images + (long long)p.count * p.height * p.width);
    ring.height = p.height;
    ring.width = p.width;
    ring.first_row = block.y - TOP;
    ring.rows = block.rows + FILTER_HEIGHT - 1;
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
    ring.filled = ring.next = 0;
    ring.taken = RING_BYTES - ROW_BYTES;
#pragma unroll
    for (int r = 0; r < ROWS_AHEAD; ++r) ring.copy_next();
    return ring;
}

// Stores a lane's results, of which `inside` lie inside the image; `whole`: all do, and their address is a multiple of their
// size. Returns how many were clipped, where that is asked for.
__device__ __forceinline__ int store_results(Result* to, const Sum* sums, const Centre& centre, bool whole, int inside,
                                             bool counts) {
    Quad<Result> quad;
    int clipped = 0;
#pragma unroll
    for (int k = 0; k < COLUMNS; ++k) fit(&quad.at[k], centre.restored(sums[k]));
    if (whole) {
        *reinterpret_cast<Quad<Result>*>(to) = quad;
    } else {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k)
            if (k < inside) to[k] = quad.at[k];
    }
    if (counts) {
#pragma unroll
        for (int k = 0; k < COLUMNS; ++k)
            if (k < inside) clipped += is_clipped(quad.at[k], centre.restored(sums[k]));
    }
    return clipped;
}
__device__ __forceinline__ bool stores_whole(const Result* results, const FilterProblem& p, int column) {
    return is_aligned(results) && p.result_width % COLUMNS == 0 && column + COLUMNS <= p.result_width;
}
