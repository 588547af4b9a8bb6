// Coefficients of the cubic splines through frames as float32, the frame being mirrored about the pixels of its edge: along
// each axis sqrt(3) times the sum of POLE^|k| times the pixel k away. What lies before a pixel and what lies behind it are
// recursions, each begun RADIUS pixels away, where float32 keeps nothing of the rest.
//
// A block takes a tile: rows first, then columns, through shared memory of odd pitches, eight pixels a thread.
// Floor: 512 x 512 of uint16 on an H200 (4.1 TB/s): 0.13 us to read, 0.26 us to write a frame.
// Document: Unser 1999, doi:10.1109/79.799930 (coefficients of splines, there by recursion).
#include "problem.cuh"
#include "lanes.cuh"

#ifndef RADIUS
#define RADIUS 12
#endif
#define THREADS 256
#define TILE_WIDTH 64
#define TILE_HEIGHT 32
#define AT_ONCE 8
#define ROWS (TILE_HEIGHT + 2 * RADIUS)
#define COLUMNS (TILE_WIDTH + 2 * RADIUS)
#define OF_LANE ((COLUMNS + 31) / 32)
#define PITCH (COLUMNS + 1)
#define NARROW_PITCH (TILE_WIDTH + 1)
#define WINDOW (AT_ONCE + 2 * RADIUS)
#define POLE (-0.26794919243112270647f)  // sqrt(3) - 2
#define GAIN 1.7320508075688772935f

// The pixel that lies at a place along an axis, on the frame or mirrored beyond its edge.
__device__ __forceinline__ int pixel_at(int place, int size) {
    if (place >= 0 && place < size) return place;
    if (size == 1) return 0;
    const int period = 2 * (size - 1), turned = (place < 0 ? -place : place) % period;
    return turned < size ? turned : period - turned;
}

// The AT_ONCE filtered values in the middle of a window.
__device__ __forceinline__ void filtered(const float (&values)[WINDOW], float (&found)[AT_ONCE]) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < RADIUS + AT_ONCE; ++i) {
        sum = fmaf(POLE, sum, values[i]);
        if (i >= RADIUS) found[i - RADIUS] = sum;
    }
    sum = 0;
#pragma unroll
    for (int i = WINDOW - 1; i >= RADIUS; --i) {
        if (i < RADIUS + AT_ONCE) found[i - RADIUS] = GAIN * fmaf(POLE, sum, found[i - RADIUS]);
        sum = fmaf(POLE, sum, values[i]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    spline_frames(const Right* frames, float* coefficients, int height, int width, int tiles_down, int tiles_across) {
    SHARED_FLOATS(shared);
    float* pixels = shared;                 // [ROWS][PITCH]
    float* across = pixels + ROWS * PITCH;  // [ROWS][NARROW_PITCH]
    const int tiles = tiles_down * tiles_across, number = (int)blockIdx.x / tiles;
    const int tile = (int)blockIdx.x - number * tiles;
    const int y0 = tile / tiles_across * TILE_HEIGHT, x0 = tile % tiles_across * TILE_WIDTH;
    const Right* frame = frames + (long long)number * height * width;
    // A warp reads whole rows: its lanes find their columns once.
    const int lane = (int)threadIdx.x % 32;
    int column[OF_LANE];
#pragma unroll
    for (int i = 0; i < OF_LANE; ++i) column[i] = pixel_at(x0 - RADIUS + lane + 32 * i, width);
    for (int row = (int)threadIdx.x / 32; row < ROWS; row += THREADS / 32) {
        const Right* line = frame + (long long)pixel_at(y0 - RADIUS + row, height) * width;
#pragma unroll
        for (int i = 0; i < OF_LANE; ++i) {
            const int j = lane + 32 * i;
            if (j < COLUMNS) pixels[row * PITCH + j] = (float)line[column[i]];
        }
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < ROWS * (TILE_WIDTH / AT_ONCE); k += THREADS) {
        const int group = k / ROWS, row = k - group * ROWS;
        const float* from = pixels + row * PITCH + group * AT_ONCE;
        float values[WINDOW], sums[AT_ONCE];
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) values[i] = from[i];
        filtered(values, sums);
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) across[row * NARROW_PITCH + group * AT_ONCE + i] = sums[i];
    }
    __syncthreads();
    const int j = (int)threadIdx.x % TILE_WIDTH, i0 = (int)threadIdx.x / TILE_WIDTH * AT_ONCE, x = x0 + j;
    float values[WINDOW], sums[AT_ONCE];
#pragma unroll
    for (int i = 0; i < WINDOW; ++i) values[i] = across[(i0 + i) * NARROW_PITCH + j];
    filtered(values, sums);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        if (x < width && y0 + i0 + i < height)
            coefficients[((long long)number * height + y0 + i0 + i) * width + x] = sums[i];
    }
}
