// The search of small_hankel.cu: the highest of a window's scores, and its strongest rival. The rules are those of peak.cuh.
//
// Threads divide the window into float4s of neighbouring shifts, each a strip of some rows: most of the nine scores
// that decide whether one is a local maximum are also needed for its neighbours. Scores beyond a row's end are
// -infinity or NaN, and are never a maximum.
#pragma once
#include "peak.cuh"
#include "small_pair.cuh"

constexpr int SCORE_PITCH = SUM_PITCH, VECTORS_X = (SHIFTS_X + 3) / 4;
constexpr int VECTOR_STRIPS = VECTORS_X < THREADS ? THREADS / VECTORS_X : 1, VECTOR_ROWS = (SHIFTS_Y + VECTOR_STRIPS - 1) / VECTOR_STRIPS;
static_assert(SCORE_PITCH >= 4 * VECTORS_X, "vectors do not straddle rows");

// visit(ix, first): rows [first, first + VECTOR_ROWS) of the float4 that begins with column ix of the window.
template <typename Visit>
__device__ __forceinline__ void in_quads(const Visit& visit) {
    const int strip = (int)threadIdx.x / VECTORS_X, first = strip * VECTOR_ROWS;
    if (strip >= VECTOR_STRIPS || first >= SHIFTS_Y) return;
    for (int vector = (int)threadIdx.x - strip * VECTORS_X; vector < VECTORS_X; vector += THREADS) visit(4 * vector, first);
}

// A thread's highest score. Scores are what the centres contribute, which they replace, and what all shares of the products
// do.
__device__ __forceinline__ float highest_of_quads(float* scores, const float* sums) {
    float highest = MINUS_INFINITY;
    in_quads([&](int ix, int first) {
        in_rows<VECTOR_ROWS>(first, [&](int iy) {
            Four* const score = reinterpret_cast<Four*>(scores + iy * SCORE_PITCH + ix);
            Four sum = *score;
#pragma unroll
            for (int share = 0; share < SHARES; ++share) {
                const Four more = load_four(sums + share * SUM_FLOATS + iy * SUM_PITCH + ix);
#pragma unroll
                for (int i = 0; i < 4; ++i) sum.at[i] += more.at[i];
            }
            *score = sum;
            highest = fmaxf(fmaxf(highest, fmaxf(sum.at[0], sum.at[1])), fmaxf(sum.at[2], sum.at[3]));
        });
    });
    return highest;
}

// The highest of the warp's values, known to all lanes.
__device__ __forceinline__ float highest_of_warp(float highest) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        highest = fmaxf(highest, __shfl_xor_sync(0xffffffffu, highest, distance));
    return highest;
}

// The highest score of the block and the first place that has it, known to all threads; `scratch` holds 16 floats. Barriers
// lie within. Where no score counts the place is the window's first.
__device__ __forceinline__ Candidate first_highest(const float* scores, float own, float* scratch) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    int* const places = reinterpret_cast<int*>(scratch + 8);
    const float of_warp = highest_of_warp(own);
    if (lane == 0) scratch[warp] = of_warp;
    __syncthreads();
    Candidate best = {scratch[0], 0x7fffffff};
#pragma unroll
    for (int i = 1; i < WARPS; ++i) best.value = fmaxf(best.value, scratch[i]);
    int place = 0x7fffffff;
    if (of_warp == best.value) {
        if (own == best.value)
            in_quads([&](int ix, int first) {
                in_rows<VECTOR_ROWS>(first, [&](int iy) {
                    const Four score = load_four(scores + iy * SCORE_PITCH + ix);
#pragma unroll
                    for (int i = 3; i >= 0; --i)
                        if (ix + i < SHIFTS_X && score.at[i] == best.value) place = min(place, iy * SHIFTS_X + ix + i);
                });
            });
        __syncwarp();
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2)
            place = min(place, __shfl_xor_sync(0xffffffffu, place, distance));
    }
    if (lane == 0) places[warp] = place;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WARPS; ++i) best.index = min(best.index, places[i]);
    if (!(best.value > MINUS_INFINITY)) best.index = 0;
    return best;
}

// Four scores of a row, and the highest of each and its neighbours in the row.
struct ScoresOfRow {
    Four score, highest;
    __device__ __forceinline__ ScoresOfRow(const float* at) : score(load_four(at)), highest(score) {
        if (SHIFTS_X == 1) return;  // an axis of one shift has no edge: its neighbours are itself
        const float first_two = fmaxf(score.at[0], score.at[1]), last_two = fmaxf(score.at[2], score.at[3]);
        highest.at[0] = fmaxf(at[-1], first_two);
        highest.at[1] = fmaxf(first_two, score.at[2]);
        highest.at[2] = fmaxf(score.at[1], last_two);
        highest.at[3] = fmaxf(last_two, at[4]);
    }
};

// A thread's highest local maximum that is away from the peak.
__device__ __forceinline__ float rival_of_quads(const float* scores, int peak_y, int peak_x) {
    float rival = MINUS_INFINITY;
    const auto is_far = [](int at, int peak) { return at - peak >= RIVAL_DISTANCE || peak - at >= RIVAL_DISTANCE; };
    in_quads([&](int ix, int first) {
        unsigned counted = 0, away = 0;  // bit i: column ix + i
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const unsigned counts = ix + i < SHIFTS_X && !on_rim(ix + i, SHIFTS_X);
            counted |= counts << i;
            away |= (is_far(ix + i, peak_x) ? counts : 0) << i;
        }
        const float* at = scores + ix;
        Four above = ScoresOfRow(at + max(first - 1, 0) * SCORE_PITCH).highest;
        ScoresOfRow here(at + first * SCORE_PITCH);
        in_rows<VECTOR_ROWS>(first, [&](int iy) {
            const ScoresOfRow below(at + min(iy + 1, SHIFTS_Y - 1) * SCORE_PITCH);
            const unsigned wanted = on_rim(iy, SHIFTS_Y) ? 0 : is_far(iy, peak_y) ? counted : away;
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float highest = fmaxf(fmaxf(above.at[i], here.highest.at[i]), below.highest.at[i]);
                if ((wanted & 1u << i) && here.score.at[i] >= highest) rival = fmaxf(rival, here.score.at[i]);
            }
            above = here.highest;
            here = below;
        });
    });
    return rival;
}
