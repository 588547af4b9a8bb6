// A slab of an image: 16 rows of the columns that a block's results reach. It comes to a block's registers as it lies in
// memory and to shared memory as halves; what lies outside the image is settled on the way.
//
// A warp brings 16 / WARPS rows. A quad, four neighbouring columns, becomes 16 bytes again: the upper halves of all four, then
// the lower ones.
#pragma once
#include "filter.cuh"
#include "vector_pixels.cuh"
#include "split_fp16.cuh"
#include "async_copy.cuh"

#ifndef WARPS  // 8, 4 or 2
#define WARPS 4
#endif
#ifndef WARP_COLUMNS  // 16, 32 or 64: of results
#define WARP_COLUMNS 32
#endif

#define QUAD 4
#define SLAB_ROWS 16
#define SHARE (SLAB_ROWS / WARPS)
#define BLOCK_COLUMNS (WARPS * WARP_COLUMNS)

// The slab begins at a column that is a multiple of four, SKIP elements before the first that is needed.
#define LEFT_PAD ((LEFT + QUAD - 1) / QUAD * QUAD)
#define SKIP (LEFT_PAD - LEFT)
#define ROW_STEPS ((15 + FILTER_WIDTH + SKIP + 15) / 16)
#define SLAB_QUADS ((BLOCK_COLUMNS - 16 + 16 * ROW_STEPS) / QUAD)
#define LOADS ((SHARE * SLAB_QUADS + WARP - 1) / WARP)
// Quads from row to row: eight lanes read four quads of two neighbouring rows, from all banks.
#define SLAB_PITCH ((SLAB_QUADS + 3) / 8 * 8 + 4)
static_assert(SLAB_ROWS % WARPS == 0 && WARPS <= 8, "a warp brings whole rows, a lane's sums are of rows of two warps at most");

typedef Group<unsigned, QUAD> Record;

// Where a thread finds a quad, in bytes from the start of the slab's first row, and where it puts it.
struct SlabQuads {
    unsigned from[LOADS][WARPS * WARP];
    int to[LOADS][WARPS * WARP];
};

// What a lane of a warp brings of every slab. All that is not used all the time lies in shared memory: registers are scarce.
struct SlabLoader {
    const SubBlock& block;
    const int* source;  // columns of the image, by those of the slab; below zero where the constant is to be
    int height, width;
    SlabQuads& quads;
    float outside;       // value outside the image, for BOUNDARY_CONSTANT
    bool is_plain;       // the warp's quads are whole
    Group<float, QUAD>* arrivals;  // of a thread LOADS
    Group<float, QUAD> quad[LOADS];

    // Worked out where they are used: kept, those of all loads would fill the registers that the sums need.
    static __device__ __forceinline__ int number(int i) { return i * WARP + in_register((int)threadIdx.x) % WARP; }
    static __device__ __forceinline__ int row(int i) {
        return in_register((int)threadIdx.x) / WARP * SHARE + (int)((unsigned)number(i) / SLAB_QUADS);
    }
    static __device__ __forceinline__ int place(int i) { return (int)((unsigned)number(i) % SLAB_QUADS); }
    static __device__ __forceinline__ bool is_needed(int i) {
        return (i + 1) * WARP <= SHARE * SLAB_QUADS || number(i) < SHARE * SLAB_QUADS;
    }

    __device__ __forceinline__ SlabLoader(Group<float, QUAD>* arrivals, SlabQuads& quads, const SubBlock& block,
                                          const int* source, float outside, int height, int width)
        : block(block), source(source), height(height), width(width), outside(outside), quads(quads),
          arrivals(arrivals) {
        bool is_whole_here = true;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const Group<int, QUAD> columns = group_at<QUAD>(source + QUAD * place(i));
            quads.to[i][threadIdx.x] = row(i) * SLAB_PITCH + place(i);
            quads.from[i][threadIdx.x] = (unsigned)(row(i) * width + columns.at[0]) * (unsigned)sizeof(float);
            is_whole_here = is_whole_here && (!is_needed(i) || is_whole(columns));
        }
        is_plain = !__any_sync(ALL_LANES, !is_whole_here);
    }

    // Whether a quad is read at once: its elements lie side by side, in an aligned quad.
    __device__ __forceinline__ bool is_whole(const Group<int, QUAD>& columns) const {
        return columns.at[0] % QUAD == 0 && columns.at[QUAD - 1] - columns.at[0] == QUAD - 1 && width % QUAD == 0 &&
               is_aligned_to<QUAD>(block.image);
    }

    // Where load i arrives.
    __device__ __forceinline__ Group<float, QUAD>* arrival(int i) const {
        return arrivals + i * (WARPS * WARP) + in_register((int)threadIdx.x);
    }

    // Sends for a slab whose first row is row y of the image, or outside of it.
    __device__ __forceinline__ void send(int y) {
        const bool is_inside_slab = y >= 0 && y + SLAB_ROWS <= height;
        if (is_plain && is_inside_slab) {
            const char* const rows = (const char*)(block.image + (long long)y * width);
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                if (is_needed(i)) copy_four(arrival(i)->at, (const float*)(rows + quads.from[i][threadIdx.x]), true);
            return;
        }
#pragma unroll 1
        for (int i = 0; i < LOADS; ++i) {
            if (!is_needed(i)) continue;
            const bool is_row_outside = BOUNDARY == BOUNDARY_CONSTANT && !is_inside(y + row(i), height);
            const float* const row_start = block.image + (long long)source_index(y + row(i), height) * width;
            const Group<int, QUAD> columns = group_at<QUAD>(source + QUAD * place(i));
            float* const to = arrival(i)->at;
            if (!is_row_outside && is_whole(columns)) {
                copy_four(to, row_start + columns.at[0], true);
                continue;
            }
#pragma unroll
            for (int k = 0; k < QUAD; ++k)
                if (BOUNDARY == BOUNDARY_CONSTANT && (is_row_outside || columns.at[k] < 0))
                    to[k] = outside;
                else
                    copy_float(to + k, row_start + columns.at[k], true);
        }
    }

    // Waits for the slab that was sent for.
    __device__ __forceinline__ void receive() {
        staged();
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            quad[i] = is_needed(i) ? *arrival(i) : Group<float, QUAD>{{0, 0, 0, 0}};
    }

    // Exponent of the largest of the warp's elements.
    __device__ __forceinline__ int exponent() const {
        unsigned largest[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
#pragma unroll
            for (int k = 0; k < QUAD; ++k) {
                const unsigned bits = __float_as_uint(quad[i].at[k]);  // twice: without the sign; ordered as sizes are, NaN last
                largest[k % 2] = bits + bits > largest[k % 2] ? bits + bits : largest[k % 2];
            }
        return largest_exponent((largest[0] > largest[1] ? largest[0] : largest[1]) / 2);
    }

    // The elements, multiplied by `factor`, as halves.
    __device__ __forceinline__ void store(Record* slab, float factor) const {
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            if (!is_needed(i)) continue;
            const HalfParts first = half_parts(quad[i].at[0] * factor, quad[i].at[1] * factor);
            const HalfParts second = half_parts(quad[i].at[2] * factor, quad[i].at[3] * factor);
            slab[quads.to[i][threadIdx.x]] = {{first.upper, second.upper, first.lower, second.lower}};
        }
    }
};
