// The rows of an image that are being loaded for a warp: a ring buffer of rows in shared memory. Rows arrive in batches
// of BATCH_ROWS, so that waiting and ring management cost little per row; ROWS_AHEAD batches are in flight.
//
// A row of the ring holds the columns of a warp and its halo on both sides. It is copied from device memory without
// passing through registers (sm_80 on). Elements outside the image are then filled in from the ring itself; with
// OWN_EDGES a lane at an edge takes them from the columns that it has read, which needs no access to the ring and no
// wait. Each warp has its own ring and waits for no other. Two ways of copying:
//     GRAIN = size of an element (float, double): element by element, 32 neighbours at once, whatever the alignment.
//     GRAIN = 16: in chunks of 16 bytes, as they lie in memory. With ALIGNED, images begin and rows go on at multiples of 16
//     bytes; otherwise a row of the ring begins before its first column, by another number of elements each row.
#pragma once

#include "centre.cuh"
#include "filter.cuh"
#include "vector_access.cuh"  // COLUMNS: of a lane, side by side

#ifndef GROUPS  // of such columns, 32 * COLUMNS apart
#define GROUPS 1
#endif
#ifndef ALIGNED
#define ALIGNED 0
#endif
#ifndef GRAIN
#define GRAIN 16
#endif
#ifndef ROWS_AHEAD  // batches
#define ROWS_AHEAD 3
#endif
#ifndef BATCH_ROWS
#define BATCH_ROWS 1
#endif
#ifndef WHOLE_LANES  // 1: images are a multiple of COLUMNS wide, so that a lane has all of its columns or none
#define WHOLE_LANES 0
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
#define ROW_UNIT (COLUMNS * (int)sizeof(Image) > 16 ? COLUMNS * (int)sizeof(Image) : 16)  // no float4 passes a row's end
#define ROW_BYTES ((GRAINS * GRAIN + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT)
#define BATCH_BYTES (BATCH_ROWS * ROW_BYTES)
#define RING_BYTES ((ROWS_AHEAD + 1) * BATCH_BYTES)
// Columns outside that are known beforehand take registers, which the sums of tall filters do not leave.
#define SPARE_REGISTERS (FILTER_HEIGHT <= 12)
// A lane at the image's edge has read itself what stands for the columns beyond it.
#define REACHES_NO_FURTHER (LEFT < COLUMNS && RIGHT < COLUMNS && BOUNDARY <= BOUNDARY_NEAREST)
#define OWN_EDGES (WHOLE_LANES && !SHIFTS && REACHES_NO_FURTHER && SPARE_REGISTERS)
#define FILLS (BOUNDARY != BOUNDARY_CONSTANT && !OWN_EDGES)

static_assert((GRAINS + WARP - 1) / WARP <= 32, "a lane's copies are bits of a mask");

// Where `wanted`: by a predicate, since a branch would cost more than the copy.
__device__ __forceinline__ void copy_grain(bool wanted, unsigned to, char* generic_to, const char* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#if GRAIN == 16
#define ASYNC_COPY "cp.async.cg.shared.global.L2::128B"  // whole lines: 3 % at 3x3 of uint16
#else
#define ASYNC_COPY "cp.async.ca.shared.global"
#endif
    asm volatile("{.reg .pred wanted; setp.ne.s32 wanted, %3, 0; @wanted " ASYNC_COPY " [%0], [%1], %2;}" ::"r"(to), "l"(from),
                 "n"(GRAIN), "r"((int)wanted)
                 : "memory");
#else
    for (int i = 0; wanted && i < GRAIN; ++i) generic_to[i] = from[i];
#endif
}
// The part of a grain that there is; zeros after it.
__device__ __forceinline__ void copy_last(char* to, const char* from, long long bytes) {
#pragma unroll 1
    for (int i = 0; i < GRAIN; ++i) to[i] = i < bytes ? from[i] : (char)0;
}
__device__ __forceinline__ void rows_are_copied() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Waits for all batches but the last `ROWS_AHEAD - 1`.
__device__ __forceinline__ void wait_for_rows() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(ROWS_AHEAD - 1) : "memory");
#endif
    __syncwarp();
}

#define NOWHERE 0x40000000
// A lane fills in at most one column of every row, and knows which.
#define PLANNED (LEFT + RIGHT <= WARP && SPARE_REGISTERS)

// Position in a window of the element that replaces position e beyond the image's first or last column, which is at `rim`.
__device__ __forceinline__ constexpr int stand_in(int e, int rim) {
    return BOUNDARY == BOUNDARY_NEAREST ? rim : 2 * rim - e + (BOUNDARY == BOUNDARY_REFLECT ? (e < rim ? -1 : 1) : 0);
}

struct RowRing {
    char* memory;       // shared, of all warps; places in it are bytes from here on
    int begin;          // of this warp's ring
    int filled;         // place of the rows that are copied next; after that, of the present ones
    int first_needed;   // bytes into a row: the lane's first needed column
    unsigned grains;    // of this lane in the first row, as shared memory counts its addresses, less the ring's place
    const char* source; // of this lane's first grain in row 0 of the image
    const char* end;    // of all images
    int pitch;          // bytes from row to row of the image
    int height, width, first_row, first_column, lane;
    int next, last;  // first row of the batch that is copied next, counted from the image's first; the last row and one
    int batches;     // so many of the image's rows begin a batch that is wanted and inside the image
    int last_rim;    // column of place 0 in the window of a lane that has the image's last column
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

    __device__ __forceinline__ void copy_row(const char* from, int to) const {
        if (SHIFTS) from -= shift_of(from) * (int)sizeof(Image);
#pragma unroll
        for (int i = 0; i < (GRAINS + WARP - 1) / WARP; ++i) {
            const char* grain = from + i * WARP * GRAIN;
            const int place = to + i * WARP * GRAIN;
            char* const generic = memory + lane * GRAIN + place;
            const bool wanted = inside >> i & 1;
            // Beyond the last element of the last image nothing may be read.
            if (SHIFTS && wanted && end - grain < GRAIN)
                copy_last(generic, grain, end - grain);
            else
                copy_grain(wanted, grains + place, generic, grain);
        }
    }
    __device__ __forceinline__ void copy_next() {
        if (BATCH_ROWS > 1 && is_inside(next, batches)) {
            const char* first = source + (long long)next * pitch;
#pragma unroll
            for (int t = 0; t < BATCH_ROWS; ++t) copy_row(first + (long long)t * pitch, filled + t * ROW_BYTES);
        } else {
#pragma unroll 1
            for (int t = 0; t < BATCH_ROWS && next + t < last; ++t) copy_row(source_of(next + t), filled + t * ROW_BYTES);
        }
        rows_are_copied();
        next += BATCH_ROWS;
        filled = filled == begin + RING_BYTES - BATCH_BYTES ? begin : filled + BATCH_BYTES;
    }

    __device__ __forceinline__ int columns_outside_left() const { return max(0, -(first_column + FIRST_NEEDED)); }
    __device__ __forceinline__ int columns_outside() const {
        const int right = first_column + BEFORE + WARP_COLUMNS + RIGHT - width;
        return columns_outside_left() + max(0, min(RIGHT, right));
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
    }
    __device__ __forceinline__ void plan_filling() {
        fill_to = fill_from = NOWHERE;
        if (!PLANNED || !FILLS || !at_edge || lane >= columns_outside()) return;
        const int column = column_outside(lane), from = source_index(column, width) - first_column;
        fill_to = column - first_column;
        // A row that is shifted has up to a grain less.
        if (is_inside(from, (GRAINS - SHIFTS) * GRAIN_COLUMNS)) fill_from = from;
    }

    // To be called before each batch, whose first row is r, counted from the sub-block's first one.
    __device__ __forceinline__ void advance(int r) {
        wait_for_rows();
        copy_next();  // the place after the one that it fills is the oldest batch's: the present one
        if (FILLS && at_edge) {
#pragma unroll
            for (int t = 0; t < BATCH_ROWS; ++t)
                fill_outside(r + t, reinterpret_cast<Image*>(memory + (filled + t * ROW_BYTES)), shift_in_image(r + t));
            __syncwarp();
        }
    }
    // Row r + t of the batch that begins with row r, from the lane's first needed column on.
    __device__ __forceinline__ const Image* row(int r, int t) const {
        return reinterpret_cast<const Image*>(memory + (filled + first_needed) + t * ROW_BYTES) + shift_in_image(r + t);
    }
    __device__ __forceinline__ int shift_in_image(int r) const {
        return SHIFTS ? shift_of(source_of(first_row + r) - lane * GRAIN) : 0;
    }
    __device__ __forceinline__ bool is_outside(int r) const {
        return BOUNDARY == BOUNDARY_CONSTANT && !is_inside(first_row + r, height);
    }

    // Elements FROM up to TO of the lane's window: those of the row at these places, `column` being the image's column of
    // place 0. `is_first`: the lane's columns may be the image's first ones.
    template <int FROM, int TO, int SIZE>
    __device__ __forceinline__ void read(Sum (&window)[SIZE], const Image* row, int column, bool row_outside,
                                         Sum constant, bool is_first = true) const {
        if (SHIFTS) {
#pragma unroll
            for (int e = FROM; e < TO; ++e) window[e] = counted(row[e], level);
        } else {
            // Whole float4s, from the multiple of COLUMNS at or before the first element on.
            constexpr int OFF = FIRST_NEEDED % COLUMNS;
            constexpr int BEGIN = (FROM + OFF) / COLUMNS, END = (TO + OFF + COLUMNS - 1) / COLUMNS;
#pragma unroll
            for (int q = BEGIN; q < END; ++q) {
                const AlignedVector<Image> vec4 = *reinterpret_cast<const AlignedVector<Image>*>(row - OFF + q * COLUMNS);
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k) {
                    const int e = q * COLUMNS + k - OFF;
                    if (e >= FROM && e < TO) window[e] = counted(vec4.at, k, level);
                }
            }
        }
        if (OWN_EDGES) {
            const bool begins = is_first && column == -LEFT, ends = column == last_rim;
#pragma unroll
            for (int e = FROM; e < TO; ++e) {
                if (e < LEFT) window[e] = begins ? window[stand_in(e, LEFT)] : window[e];
                if (e >= LEFT + COLUMNS) window[e] = ends ? window[stand_in(e, LEFT + COLUMNS - 1)] : window[e];
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
    ring.begin = warp * RING_BYTES;
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
    ring.batches = in_register(max(0, min(ring.height, ring.last) - (BATCH_ROWS - 1)));
    ring.lane = lane;
    ring.at_edge = block.x < LEFT || block.x + WARP_COLUMNS + RIGHT > p.width;
    ring.last_rim = in_register(p.width - COLUMNS - LEFT);
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
        const int y = min(block.y + block.rows / 2, p.height - 1);
        const int x = min(block.x + lane * (WARP_COLUMNS / WARP), p.width - 1);
        const int mean = mean_of((int)block.image[(long long)y * p.width + x]);
        ring.level = level_of(mean, (double)taps.total[0] + taps.total[1]);
    }
    return ring;
}

// How a warp stores its results: every lane all of its columns; a lane all or none; or one by one.
#define ALL_STORE 2
#define SOME_STORE 1
#define ONE_BY_ONE 0
__device__ __forceinline__ int storing_of(const Result* results, const FilterProblem& p, const SubBlock& block) {
    if (!is_aligned(results) || p.result_width % COLUMNS != 0) return ONE_BY_ONE;
    return in_register(block.x + WARP_COLUMNS <= p.result_width ? ALL_STORE : SOME_STORE);
}
// Stores a lane's results, GROUPS_TOGETHER times COLUMNS; `inside`: columns from `to` to the image's end. Returns how many
// were clipped.
template <int GROUPS_TOGETHER>
__device__ __forceinline__ int store_results(Result* to, const Sum* sums, const Level& level, int storing, int inside) {
    AlignedVector<Result> vec4s[GROUPS_TOGETHER];
    unsigned any = 0;
#pragma unroll
    for (int i = 0; i < GROUPS_TOGETHER * COLUMNS; ++i) any |= finish(&vec4s[i / COLUMNS].at[i % COLUMNS], sums[i], level);
    if (storing == ALL_STORE) {
#pragma unroll
        for (int g = 0; g < GROUPS_TOGETHER; ++g) *reinterpret_cast<AlignedVector<Result>*>(to + g * GROUP_COLUMNS) = vec4s[g];
    } else {
#pragma unroll
        for (int g = 0; g < GROUPS_TOGETHER; ++g) {
            Result* first = to + g * GROUP_COLUMNS;
            const int left = inside - g * GROUP_COLUMNS;
            if (storing == SOME_STORE) {
                if (left > 0) *reinterpret_cast<AlignedVector<Result>*>(first) = vec4s[g];
            } else {
#pragma unroll
                for (int k = 0; k < COLUMNS; ++k)
                    if (k < left) first[k] = vec4s[g].at[k];
            }
        }
    }
    int clipped = 0;
    if (CLIPS && any) {
#pragma unroll
        for (int i = 0; i < GROUPS_TOGETHER * COLUMNS; ++i) {
            const bool counts = i / COLUMNS * GROUP_COLUMNS + i % COLUMNS < inside;
            clipped += counts && finish(&vec4s[i / COLUMNS].at[i % COLUMNS], sums[i], level) != 0;
        }
    }
    return clipped;
}
