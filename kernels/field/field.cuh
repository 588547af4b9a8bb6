// Fields of displacements: splines over a coarse grid of nodes, summed pixel by pixel in tiles that lie between two nodes.
//
// All pixels between two neighbouring nodes of an axis, a cell, depend on the same four coefficients of the axis' cubic
// spline and on the same two values of what is linear between the nodes. Cells are cut into tiles of at most COLUMNS x
// TILE_ROWS pixels; a block takes one tile of one frame, a thread goes down a strip of one of its columns. So the thread
// keeps what it sums for each coefficient in registers, and a block leaves a few sums of its own: no atomics, and the same
// answer in every run.
#pragma once

#ifndef COLUMNS  // of a tile at most: 32 or 64
#define COLUMNS 64
#endif
#ifndef THREADS  // a multiple of COLUMNS
#define THREADS 128
#endif
#define STRIPS (THREADS / COLUMNS)
#define WARPS (THREADS / 32)
#define TILE_ROWS 64

#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

typedef float Sum;
#include "field_splines.cuh"
#include "warp_reduce.cuh"

// A tile along one axis, as tables hold it: pixels [first, stop), the node before them, their first coefficient.
struct alignas(16) Part {
    int first, stop, cell, start;
};

// An axis of the grid, for every pixel: the weights of the four coefficients, and of the node behind it.
struct Axis {
    const Part* parts;
    const Weights* weights;
    const float* behind;
};

__device__ __forceinline__ float not_a_number() { return __int_as_float(0x7fffffff); }

// The part of a tile's column that a thread goes down.
struct Strip {
    int x, first, stop;  // nothing to do where first >= stop
};
__device__ __forceinline__ Strip strip_of(const Part& down, const Part& across) {
    const int rows = (down.stop - down.first + STRIPS - 1) / STRIPS;
    Strip strip;
    strip.x = across.first + (int)threadIdx.x % COLUMNS;
    strip.first = down.first + (int)threadIdx.x / COLUMNS * rows;
    strip.stop = strip.first + rows < down.stop ? strip.first + rows : down.stop;
    if (strip.x >= across.stop) strip.stop = strip.first;
    return strip;
}

// The tile of a block: of which frame, and where.
struct Tile {
    int number;
    Part down, across;
    __device__ __forceinline__ Tile(const Part* row_parts, const Part* column_parts, int parts_down, int parts_across) {
        const int tiles = parts_down * parts_across;
        number = (int)blockIdx.x / tiles;
        const int tile = (int)blockIdx.x - number * tiles;
        down = row_parts[tile / parts_across], across = column_parts[tile % parts_across];
    }
    // Pixels of the frames before.
    __device__ __forceinline__ long long before(int height, int width) const { return (long long)number * height * width; }
};

// Sums over a block of the COUNT values of each thread, written to `sums` (COUNT); `shared` takes WARPS * COUNT floats.
template <int COUNT>
__device__ __forceinline__ void sums_of_block(float (&value)[COUNT], float* shared, float* sums) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    WarpReduce<COUNT, 16>::run(value, lane);
#pragma unroll
    for (int i = 0; i < WarpReduce<COUNT, 16>::KEPT; ++i) {
        const int at = WarpReduce<COUNT, 16>::index(i, lane);
        if (at >= 0) shared[warp * COUNT + at] = value[i];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < COUNT; i += THREADS) {
        float total = 0;
        for (int w = 0; w < WARPS; ++w) total += shared[w * COUNT + i];
        sums[i] = total;
    }
}
