// Windowed sums with cosine weights that slide down a column: the series, its start, one step.
//
// S_k(y) = amplitude_k * sum over j = -radius .. radius of cos(angle_k j) * f(y + j), and a result is the sum of S_k(y) over
// the terms of the series. Since cos(angle (m + 1)) + cos(angle (m - 1)) = 2 cos(angle) cos(angle m), all but the four
// elements at the window's ends cancel in a step, whatever the angle:
//   S(y + 1) = 2 cos(angle) S(y) - S(y - 1) + amplitude [cos(angle radius) p - cos(angle (radius + 1)) q],
//   p = f(y + radius + 1) + f(y - radius - 1),  q = f(y + radius) + f(y - radius).
#pragma once

#include "filter.cuh"
#include "vector_access.cuh"

#ifndef TERMS  // of the series
#define TERMS 5
#endif
// terms, from the first, whose additions are compensated; of sums in float alone
#define EXACT_TERMS 1

struct alignas(16) StartVector {
    Sum at[16 / sizeof(Sum)];
};
#define START_WEIGHTS (16 / (int)sizeof(Sum))  // of a vector
#define START_VECTORS ((2 * TERMS + START_WEIGHTS - 1) / START_WEIGHTS)  // of a row: TERMS weights of sums, TERMS of steps

struct Series {
    Sum turn[TERMS];   // 2 cos(angle); for float 2 - 2 cos(angle), negated
    Sum edge[TERMS];   // amplitude * cos(angle radius)
    Sum inner[TERMS];  // -amplitude * cos(angle (radius + 1)); for float `edge` is added to it
    Sum outside;       // value outside the image, for BOUNDARY_CONSTANT
};

struct SlidingProblem {
    int height, width, count;    // of the images; results are transposed: `width` rows of `height` elements
    int radius;                  // of the window
    int segments, segment_rows;  // shares of a column
    int start_rows;              // rows of a segment's table of start weights, a multiple of 32
};
#define SLIDING_PARAMETERS int height, int width, int count, int radius, int segments, int segment_rows, int start_rows
#define SLIDING_ARGUMENTS {height, width, count, radius, segments, segment_rows, start_rows}

constexpr bool MAY_BE_NOT_FINITE = (Image)0.5f > 0;  // integers never are
__device__ __forceinline__ bool is_finite(Sum value) { return value - value == 0; }

// Between float and double in one instruction: to flush the subnormal, which the compiler is told to do, takes two more, of
// which one runs where the sums do.
template <typename T>
__device__ __forceinline__ Sum widened(T value) {
    return (Sum)value;
}
template <typename T>
__device__ __forceinline__ int put_total(T* to, Sum total) {
    return put(to, total);
}
#if defined(__CUDA_ARCH__)
__device__ __forceinline__ Sum widened(float value) {
    if (sizeof(Sum) == sizeof(float)) return (Sum)value;
    double wide;
    asm("cvt.f64.f32 %0, %1;" : "=d"(wide) : "f"(value));
    return (Sum)wide;
}
__device__ __forceinline__ int put_total(float* to, Sum total) {
    if (sizeof(Sum) == sizeof(float))
        *to = (float)total;
    else
        asm("cvt.rn.f32.f64 %0, %1;" : "=f"(*to) : "d"((double)total));
    return 0;
}
#endif

// The elements at the window's ends before and after a step.
struct Ends {
    Sum below, above;          // f(y + radius), f(y - radius - 1)
    Sum next_below, leaving;   // f(y + radius + 1), f(y - radius)
};

// Sums in double: the recursion as it stands. 10^-16 grows by the square of the rows and stays far below float's rounding.
struct DoubleSums {
    double now[TERMS], before[TERMS];

    __device__ __forceinline__ void begin(int k, double sum, double step) {
        now[k] = sum;
        before[k] = sum - step;
    }
    __device__ __forceinline__ void advance(const Series& series, const Ends& f) {
        const double p = f.next_below + f.above, q = f.below + f.leaving;
#pragma unroll
        for (int k = 0; k < TERMS; ++k) {
            double next = multiply_add((double)series.edge[k], p, -before[k]);  // what waits for now[k] comes last
            next = multiply_add((double)series.inner[k], q, next);
            next = multiply_add((double)series.turn[k], now[k], next);
            before[k] = now[k];
            now[k] = next;
        }
    }
};

// Sums in float: the difference of neighbours is carried beside the sum (Reinsch), so that nothing small is lost by
// subtraction. What is small beside its sum is rounded the same way many times over; the slow terms, where that shows, keep
// what was lost and add it the next time (Kahan).
struct FloatSums {
    float now[TERMS], step[TERMS], lost[EXACT_TERMS], lost_step[EXACT_TERMS];

    __device__ __forceinline__ void begin(int k, float sum, float first_step) {
        now[k] = sum;
        step[k] = first_step;
        if (k < EXACT_TERMS) lost[k] = lost_step[k] = 0;
    }
    __device__ __forceinline__ static void add(float& to, float& lost, float amount) {
        const float exact = amount - lost, next = to + exact;
        lost = (next - to) - exact;
        to = next;
    }
    __device__ __forceinline__ void advance(const Series& series, const Ends& f) {
        const float q = (float)(f.below + f.leaving);
        // p - q, from differences that are exact where neighbours are alike.
        const float difference = (float)(f.next_below - f.below) - (float)(f.leaving - f.above);
#pragma unroll
        for (int k = 0; k < TERMS; ++k) {
            const bool exact = k < EXACT_TERMS;
            float change = multiply_add((float)series.edge[k], difference, exact ? 0 : step[k]);
            change = multiply_add((float)series.inner[k], q, change);
            change = multiply_add((float)series.turn[k], now[k], change);
            if (exact) {
                add(step[k], lost_step[k], change);
                add(now[k], lost[k], step[k]);
            } else {
                step[k] = change;
                now[k] += change;
            }
        }
    }
};

template <typename T>
struct SumsOf;
template <>
struct SumsOf<double> {
    typedef DoubleSums Type;
};
template <>
struct SumsOf<float> {
    typedef FloatSums Type;
};
typedef SumsOf<Sum>::Type Sums;

__device__ __forceinline__ Sum total_of(const Sums& sums) {
    if (TERMS == 1) return sums.now[0];
    Sum even = sums.now[0], odd = sums.now[1 % TERMS];
#pragma unroll
    for (int k = 2; k < TERMS; ++k) (k % 2 ? odd : even) += sums.now[k];
    return even + odd;
}
