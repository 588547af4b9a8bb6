// Running projections: to the sums of every pixel over the frames seen so far, a chunk of frames is added.
//
// A thread has COLUMNS neighbouring pixels and goes through the chunk's frames; of each frame those pixels count that lie
// in its area (first and last row and column, such as the part that moving has covered) and are finite. Sum and sum of
// squares are float64 and their number an integer: mean and deviation follow from them. Pixels of up to 16 bits are
// summed as integers within a chunk, so that their sums are exact while they stay below 2^53, and a device without fast
// float64 does not wait for it; other types go on from the sum so far, frame after frame. Either way the result is the
// same in whatever chunks the frames come.
//
// Document: none. Floor: one read of every pixel at the device's read rate, and of the sums once a chunk.
#include "pixel.cuh"

#ifndef COLUMNS  // neighbouring pixels of a thread: they are read at once, and divide a frame's pixels
#define COLUMNS 1
#endif
#ifndef AREAS  // 1: of each frame only an area counts
#define AREAS 0
#endif
#ifndef THREADS
#define THREADS 128
#endif

struct Chunk {
    int frames, height, width;
};
struct alignas(sizeof(Pixel) * COLUMNS > 16 ? 16 : sizeof(Pixel) * COLUMNS) Pixels {
    Pixel at[COLUMNS];
};

template <bool EXACT>
struct Running {
    typedef double Type;
};
template <>
struct Running<true> {
    typedef long long Type;
};
#define IS_EXACT (Is<Pixel>::INTEGER && sizeof(Pixel) <= 2)
typedef Running<IS_EXACT>::Type Total;

template <typename P = Pixel>
__device__ __forceinline__ Total total_of(P pixel) {
    if constexpr (Is<P>::HALF) {
        return (Total)float_of_half(pixel.bits);
    } else {
        return (Total)pixel;
    }
}
__device__ __forceinline__ bool is_finite(double value) { return fabs(value) <= 1.7976931348623157e308; }
__device__ __forceinline__ long long multiplied_add(long long a, long long b) { return a * a + b; }
__device__ __forceinline__ double multiplied_add(double a, double b) { return fma(a, a, b); }

extern "C" __global__ void __launch_bounds__(THREADS)
    project(const Pixel* frames, double* sums, double* squares, int* numbers, const int* areas,
            const __grid_constant__ Chunk p) {
    const int pixels = p.height * p.width, first = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * COLUMNS;
    if (first >= pixels) return;
    Total sum[COLUMNS], square[COLUMNS];
    int number[COLUMNS], y[COLUMNS], x[COLUMNS];
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        sum[i] = IS_EXACT ? (Total)0 : (Total)sums[first + i];
        square[i] = IS_EXACT ? (Total)0 : (Total)squares[first + i];
        number[i] = 0;
        y[i] = (first + i) / p.width;
        x[i] = first + i - y[i] * p.width;
    }
    const Pixel* from = frames + first;
#pragma unroll 4
    for (int t = 0; t < p.frames; ++t, from += pixels) {
        const Pixels pixel = *reinterpret_cast<const Pixels*>(from);
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) {
            const Total value = total_of(pixel.at[i]);
            bool counts = IS_EXACT || is_finite((double)value);
            if (AREAS) {
                const int* area = areas + 4 * (long long)t;
                counts &= y[i] >= area[0] && y[i] < area[1] && x[i] >= area[2] && x[i] < area[3];
            }
            if (counts) {
                sum[i] += value;
                square[i] = multiplied_add(value, square[i]);
                ++number[i];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < COLUMNS; ++i) {
        sums[first + i] = IS_EXACT ? sums[first + i] + (double)sum[i] : (double)sum[i];
        squares[first + i] = IS_EXACT ? squares[first + i] + (double)square[i] : (double)square[i];
        numbers[first + i] += number[i];
    }
}
