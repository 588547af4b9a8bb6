// Frames under a short filter along both axes as float32, at full size, at half, or both: one read of each frame. CENTRES 1
// takes their means off and puts zero where a pixel is not finite. Beyond the edge lies the nearest pixel. RADIUS 0: frames
// are only halved. Half the size is the mean of 2 x 2 pixels, an odd last row or column left out.
//
// SPLINE 1 gives the coefficients of the cubic splines through the pixels, the frame being mirrored about those of its edge:
// sqrt(3) times the sum of POLE^|k| times the pixel k away. What lies before a pixel and what lies behind it are recursions,
// each begun RADIUS pixels away, where float32 keeps nothing of the rest.
//
// A block takes a tile: rows first, then columns, through shared memory of odd pitches, eight pixels a thread.
// Floor: 512 x 512 of uint16 on an H200 (4.1 TB/s): 0.13 us to read, 0.32 us to write a frame.
// Document: Unser 1999, doi:10.1109/79.799930 (coefficients of splines, there by recursion).
#include "problem.cuh"

#ifndef RADIUS
#define RADIUS 3
#endif
#ifndef FULL  // whether the full size is written
#define FULL 1
#endif
#ifndef HALF  // and half of it
#define HALF 1
#endif
#ifndef CENTRES
#define CENTRES 0
#endif
#ifndef SPLINE
#define SPLINE 0
#endif
#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
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
#define TAPS (2 * RADIUS + 1)
#define WINDOW (AT_ONCE + 2 * RADIUS)
#define POLE (-0.26794919243112270647f)  // sqrt(3) - 2
#define GAIN 1.7320508075688772935f

__device__ __forceinline__ float without(Right value, double mean) {
    if (!CENTRES) return (float)value;
    const float left = sizeof(Right) == 8 ? (float)((double)value - mean) : (float)value - (float)mean;
    return left - left == 0 ? left : 0.0f;
}

// The pixel that lies at a place along an axis, on the frame or beyond its edge.
__device__ __forceinline__ int pixel_at(int place, int size) {
    if (!SPLINE) return min(max(place, 0), size - 1);
    if (place >= 0 && place < size) return place;
    if (size == 1) return 0;
    const int period = 2 * (size - 1), turned = (place < 0 ? -place : place) % period;
    return turned < size ? turned : period - turned;
}

// The AT_ONCE filtered values in the middle of a window.
__device__ __forceinline__ void filtered(const float (&values)[WINDOW], const float (&tap)[TAPS], float (&found)[AT_ONCE]) {
#if SPLINE
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
#else
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        float sum = 0;
#pragma unroll
        for (int t = 0; t < TAPS; ++t) sum = fmaf(tap[t], values[i + t], sum);
        found[i] = sum;
    }
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS)
    filter_frames(const Right* frames, const double* means, const float* taps, float* full, float* half, int height,
                  int width, int tiles_down, int tiles_across) {
    SHARED_FLOATS(shared);
    float* pixels = shared;                  // [ROWS][PITCH]
    float* across = pixels + ROWS * PITCH;   // [ROWS][NARROW_PITCH]
    const int tiles = tiles_down * tiles_across, number = (int)blockIdx.x / tiles;
    const int tile = (int)blockIdx.x - number * tiles;
    const int y0 = tile / tiles_across * TILE_HEIGHT, x0 = tile % tiles_across * TILE_WIDTH;
    const Right* frame = frames + (long long)number * height * width;
    const double mean = CENTRES ? means[number] : 0.0;
    float tap[TAPS];
#pragma unroll
    for (int k = 0; k < TAPS; ++k) tap[k] = RADIUS == 0 || SPLINE ? 1.0f : taps[k];
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
            if (j < COLUMNS) pixels[row * PITCH + j] = without(line[column[i]], mean);
        }
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < ROWS * (TILE_WIDTH / AT_ONCE); k += THREADS) {
        const int group = k / ROWS, row = k - group * ROWS;
        const float* from = pixels + row * PITCH + group * AT_ONCE;
        float values[WINDOW], sums[AT_ONCE];
#pragma unroll
        for (int i = 0; i < WINDOW; ++i) values[i] = from[i];
        filtered(values, tap, sums);
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) across[row * NARROW_PITCH + group * AT_ONCE + i] = sums[i];
    }
    __syncthreads();
    const int j = (int)threadIdx.x % TILE_WIDTH, i0 = (int)threadIdx.x / TILE_WIDTH * AT_ONCE, x = x0 + j;
    float values[WINDOW], sums[AT_ONCE];
#pragma unroll
    for (int i = 0; i < WINDOW; ++i) values[i] = across[(i0 + i) * NARROW_PITCH + j];
    filtered(values, tap, sums);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
        if (FULL && x < width && y0 + i0 + i < height)
            full[((long long)number * height + y0 + i0 + i) * width + x] = sums[i];
    }
    if (!HALF) return;
    const int half_height = height / 2, half_width = width / 2;
#pragma unroll
    for (int i = 0; i < AT_ONCE; i += 2) {
        const float pair = sums[i] + sums[i + 1], beside = __shfl_xor_sync(0xffffffffu, pair, 1);
        const int y = (y0 + i0 + i) / 2;
        if (j % 2 == 0 && x / 2 < half_width && y < half_height)
            half[((long long)number * half_height + y) * half_width + x / 2] = 0.25f * (pair + beside);
    }
}
