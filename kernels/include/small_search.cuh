// The search of small_hankel.cu: the highest of a window's scores, and its strongest rival. The rules are those of peak.cuh.
//
// A thread goes down a strip of one column of shifts: of the nine scores that decide whether one is a local maximum it reads
// three.
#pragma once
#include "peak.cuh"
#include "small_pair.cuh"

// A thread's best. Scores are what the centres contribute, which they replace, and what all shares of the products do.
__device__ __forceinline__ Candidate best_of_strips(float* scores, const float* sums, float unit) {
    Candidate best = {MINUS_INFINITY, 0x7fffffff};
    in_strips([&](int ix, int first, int last) {
        Candidate of_column = {MINUS_INFINITY, 0x7fffffff};
#pragma unroll 4
        for (int iy = first; iy < last; ++iy) {
            const float* at = sums + iy * SUM_PITCH + ix;
            float sum = at[0];
#pragma unroll
            for (int share = 1; share < SHARES; ++share) sum += at[share * SUM_FLOATS];
            const Candidate here = {scores[iy * SHIFTS_X + ix] + sum * unit, iy * SHIFTS_X + ix};
            scores[here.index] = here.value;
            if (here.value > of_column.value) of_column = here;  // of equal ones the first is seen first
        }
        best = better(best, of_column);
    });
    return best;
}

// A thread's highest local maximum that is away from the peak.
__device__ __forceinline__ float rival_of_strips(const float* scores, int peak_y, int peak_x) {
    constexpr int RIM_Y = SHIFTS_Y > 1, RIM_X = SHIFTS_X > 1;  // an axis of one shift has none: its neighbours are itself
    float rival = MINUS_INFINITY;
    in_strips([&](int ix, int first, int last) {
        if (on_rim(ix, SHIFTS_X)) return;
        first = most(first, RIM_Y);
        last = least(last, SHIFTS_Y - RIM_Y);
        const bool far = ix - peak_x >= RIVAL_DISTANCE || peak_x - ix >= RIVAL_DISTANCE;
        const auto highest = [](const float* at) { return fmaxf(fmaxf(at[-RIM_X], at[0]), at[RIM_X]); };
        const float* at = scores + first * SHIFTS_X + ix;
        float above = highest(at - RIM_Y * SHIFTS_X), beside = highest(at);
#pragma unroll 4
        for (int iy = first; iy < last; ++iy, at += SHIFTS_X) {
            const float below = highest(at + RIM_Y * SHIFTS_X);
            const bool away = far || iy - peak_y >= RIVAL_DISTANCE || peak_y - iy >= RIVAL_DISTANCE;
            if (away && at[0] >= fmaxf(fmaxf(above, beside), below)) rival = fmaxf(rival, at[0]);
            above = beside;
            beside = below;
        }
    });
    return rival;
}
