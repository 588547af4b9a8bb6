// A row tile of an image: 16 rows of the columns that a block's results depend on. It is loaded into registers
// unchanged and stored in shared memory as split fp16; the boundary is applied on the way.
//
// A warp loads 16 / WARPS rows. A float4, four neighbouring columns, again becomes 16 bytes: the upper fp16 parts of
// all four, then the lower ones.
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

#define VEC4 4
#define ROW_TILE_ROWS 16
#define SHARE (ROW_TILE_ROWS / WARPS)
#define BLOCK_COLUMNS (WARPS * WARP_COLUMNS)

// The row tile begins at a column that is a multiple of four, SKIP elements before the first that is needed.
#define LEFT_PAD ((LEFT + VEC4 - 1) / VEC4 * VEC4)
#define SKIP (LEFT_PAD - LEFT)
#define ROW_STEPS ((15 + FILTER_WIDTH + SKIP + 15) / 16)
#define ROW_TILE_VEC4S ((BLOCK_COLUMNS - 16 + 16 * ROW_STEPS) / VEC4)
#define LOADS ((SHARE * ROW_TILE_VEC4S + WARP - 1) / WARP)
// float4s from row to row: eight lanes read four float4s of two neighbouring rows, from all banks.
#define ROW_TILE_PITCH ((ROW_TILE_VEC4S + 3) / 8 * 8 + 4)
static_assert(ROW_TILE_ROWS % WARPS == 0 && WARPS <= 8, "a warp brings whole rows, a lane's sums are of rows of two warps at most");

typedef Group<unsigned, VEC4> Record;

// Where a thread finds a float4, in bytes from the start of the row tile's first row, and where it puts it.
struct RowTileVec4s {
    unsigned from[LOADS][WARPS * WARP];
    int to[LOADS][WARPS * WARP];
};

// What a lane loads of every row tile. Everything that is not in constant use is in shared memory: registers are
// scarce.
struct RowTileLoader {
    const SubBlock& block;
    const int* source;  // columns of the image, by those of the row tile; below zero where the constant is to be
    int height, width;
    RowTileVec4s& vec4s;
    float outside;       // value outside the image, for BOUNDARY_CONSTANT
    bool is_plain;       // the warp's float4s are whole
    Group<float, VEC4>* arrivals;  // of a thread LOADS
    Group<float, VEC4> vec4[LOADS];

    // Worked out where they are used: kept, those of all loads would fill the registers that the sums need.
    static __device__ __forceinline__ int number(int i) { return i * WARP + in_register((int)threadIdx.x) % WARP; }
    static __device__ __forceinline__ int row(int i) {
        return in_register((int)threadIdx.x) / WARP * SHARE + (int)((unsigned)number(i) / ROW_TILE_VEC4S);
    }
    static __device__ __forceinline__ int place(int i) { return (int)((unsigned)number(i) % ROW_TILE_VEC4S); }
    static __device__ __forceinline__ bool is_needed(int i) {
        return (i + 1) * WARP <= SHARE * ROW_TILE_VEC4S || number(i) < SHARE * ROW_TILE_VEC4S;
    }

    __device__ __forceinline__ RowTileLoader(Group<float, VEC4>* arrivals, RowTileVec4s& vec4s, const SubBlock& block,
                                          const int* source, float outside, int height, int width)
        : block(block), source(source), height(height), width(width), outside(outside), vec4s(vec4s),
          arrivals(arrivals) {
        bool is_whole_here = true;
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const Group<int, VEC4> columns = group_at<VEC4>(source + VEC4 * place(i));
            vec4s.to[i][threadIdx.x] = row(i) * ROW_TILE_PITCH + place(i);
            vec4s.from[i][threadIdx.x] = (unsigned)(row(i) * width + columns.at[0]) * (unsigned)sizeof(float);
            is_whole_here = is_whole_here && (!is_needed(i) || is_whole(columns));
        }
        is_plain = !__any_sync(ALL_LANES, !is_whole_here);
    }

    // Whether a float4 is read in one access: its elements are contiguous, in an aligned float4.
    __device__ __forceinline__ bool is_whole(const Group<int, VEC4>& columns) const {
        return columns.at[0] % VEC4 == 0 && columns.at[VEC4 - 1] - columns.at[0] == VEC4 - 1 && width % VEC4 == 0 &&
               is_aligned_to<VEC4>(block.image);
    }

    // Where load i arrives.
    __device__ __forceinline__ Group<float, VEC4>* arrival(int i) const {
        return arrivals + i * (WARPS * WARP) + in_register((int)threadIdx.x);
    }

    // Sends for a row tile whose first row is row y of the image, or outside of it.
    __device__ __forceinline__ void send(int y) {
        const bool is_inside_row_tile = y >= 0 && y + ROW_TILE_ROWS <= height;
        if (is_plain && is_inside_row_tile) {
            const char* const rows = (const char*)(block.image + (long long)y * width);
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                if (is_needed(i)) copy_four(arrival(i)->at, (const float*)(rows + vec4s.from[i][threadIdx.x]), true);
            return;
        }
#pragma unroll 1
        for (int i = 0; i < LOADS; ++i) {
            if (!is_needed(i)) continue;
            const bool is_row_outside = BOUNDARY == BOUNDARY_CONSTANT && !is_inside(y + row(i), height);
            const float* const row_start = block.image + (long long)source_index(y + row(i), height) * width;
            const Group<int, VEC4> columns = group_at<VEC4>(source + VEC4 * place(i));
            float* const to = arrival(i)->at;
            if (!is_row_outside && is_whole(columns)) {
                copy_four(to, row_start + columns.at[0], true);
                continue;
            }
#pragma unroll
            for (int k = 0; k < VEC4; ++k)
                if (BOUNDARY == BOUNDARY_CONSTANT && (is_row_outside || columns.at[k] < 0))
                    to[k] = outside;
                else
                    copy_float(to + k, row_start + columns.at[k], true);
        }
    }

    // Waits for the row tile whose load was issued.
    __device__ __forceinline__ void receive() {
        staged();
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
            vec4[i] = is_needed(i) ? *arrival(i) : Group<float, VEC4>{{0, 0, 0, 0}};
    }

    // Exponent of the largest of the warp's elements.
    __device__ __forceinline__ int exponent() const {
        unsigned largest[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < LOADS; ++i)
#pragma unroll
            for (int k = 0; k < VEC4; ++k) {
                const unsigned bits = __float_as_uint(vec4[i].at[k]);  // twice: without the sign; ordered as sizes are, NaN last
                largest[k % 2] = bits + bits > largest[k % 2] ? bits + bits : largest[k % 2];
            }
        return largest_exponent((largest[0] > largest[1] ? largest[0] : largest[1]) / 2);
    }

    // The elements, multiplied by `factor`, as split fp16.
    __device__ __forceinline__ void store(Record* row_tile, float factor) const {
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            if (!is_needed(i)) continue;
            const HalfParts first = half_parts(vec4[i].at[0] * factor, vec4[i].at[1] * factor);
            const HalfParts second = half_parts(vec4[i].at[2] * factor, vec4[i].at[3] * factor);
            row_tile[vec4s.to[i][threadIdx.x]] = {{first.upper, second.upper, first.lower, second.lower}};
        }
    }
};
