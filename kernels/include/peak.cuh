// The peak of one plane, by one block: where it is highest, the highest other local maximum, and the 5 x 5 values
// around. The same rules as xcorr_app/correlation/peaks.py: of equal values the first counts; a rival is at least
// RIVAL_DISTANCE away along an axis and not on the plane's edge, and none of its neighbours is higher.
#pragma once

#define PEAK_SIDE 5
#define PEAK_RECORD 29  // iy, ix, value, rival, PEAK_SIDE x PEAK_SIDE values around: doubles
#define RIVAL_DISTANCE 3

struct Candidate {
    float value;
    int index;
};
__device__ __forceinline__ Candidate better(Candidate a, Candidate b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// Best candidate of a warp, known to all its lanes; from `WIDTH` lanes that repeat themselves where it is less than 32.
template <int WIDTH>
__device__ __forceinline__ Candidate best_of_lanes(Candidate own) {
#pragma unroll
    for (int distance = WIDTH / 2; distance > 0; distance /= 2) {
        Candidate other = {__shfl_xor_sync(0xffffffffu, own.value, distance),
                           __shfl_xor_sync(0xffffffffu, own.index, distance)};
        own = better(own, other);
    }
    return own;
}

// Best candidate of the block, known to all its threads; `scratch` holds 64 floats of shared memory.
template <int WARP_COUNT>
__device__ __forceinline__ Candidate best_of_block(Candidate own, float* scratch) {
    constexpr int WIDTH = WARP_COUNT > 16 ? 32 : WARP_COUNT > 8 ? 16 : WARP_COUNT > 4 ? 8 : 4;
    own = best_of_lanes<32>(own);
    int* indices = reinterpret_cast<int*>(scratch + 32);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = own.value;
        indices[threadIdx.x / 32] = own.index;
    }
    __syncthreads();
    const int lane = (int)threadIdx.x % WIDTH, warp = lane < WARP_COUNT ? lane : 0;
    Candidate of_warp = {scratch[warp], indices[warp]};
    return best_of_lanes<WIDTH>(of_warp);
}

__device__ __forceinline__ bool on_rim(int at, int size) { return size > 1 && (at == 0 || at == size - 1); }

// A thread's way through a plane, `step` elements at a time: no index is divided but the first.
struct Walk {
    int index, y, x, width, step, step_y, step_x;
    __device__ __forceinline__ Walk(int first, int step, int width)
        : index(first), y(first / width), x(first - y * width), width(width), step(step), step_y(step / width),
          step_x(step - step_y * width) {}
    __device__ __forceinline__ void advance() {
        index += step;
        y += step_y;
        x += step_x;
        if (x >= width) {
            x -= width;
            ++y;
        }
    }
};

// `sums` are the plain sums, `scores` room for as many floats; both of this plane. Every thread of the block calls it.
template <int WARP_COUNT, typename Score>
__device__ __forceinline__ void find_peak(const Score& score, const Sum* sums, float* scores, int height, int width,
                                          float* scratch, double* record) {
    const int count = height * width;
    Candidate own = {MINUS_INFINITY, 0x7fffffff};
    for (Walk at((int)threadIdx.x, WARP_COUNT * 32, width); at.index < count; at.advance()) {
        const Candidate here = {score.line(at.y).quick(sums[at.index], at.x), at.index};
        scores[at.index] = here.value;
        if (here.value > own.value) own = here;  // of equal ones a thread sees the first first
    }
    const Candidate best = best_of_block<WARP_COUNT>(own, scratch);
    const bool found = best.value > MINUS_INFINITY;
    const int iy = found ? best.index / width : 0, ix = found ? best.index % width : 0;
    // An axis of one element has no edge: its neighbours are the element itself.
    const int down = height > 1 ? width : 0, right = width > 1 ? 1 : 0;
    Candidate rival = {MINUS_INFINITY, 0x7fffffff};
    for (Walk at((int)threadIdx.x, WARP_COUNT * 32, width); at.index < count; at.advance()) {
        const int away_y = at.y > iy ? at.y - iy : iy - at.y, away_x = at.x > ix ? at.x - ix : ix - at.x;
        const bool far = away_y >= RIVAL_DISTANCE || away_x >= RIVAL_DISTANCE;
        if (!far || on_rim(at.y, height) || on_rim(at.x, width)) continue;
        const float* here = scores + at.index;
        const float above = fmaxf(fmaxf(here[-down - right], here[-down]), here[right - down]);
        const float below = fmaxf(fmaxf(here[down - right], here[down]), here[down + right]);
        const float highest = fmaxf(fmaxf(above, below), fmaxf(here[-right], here[right]));
        if (here[0] >= highest) rival.value = fmaxf(rival.value, here[0]);
    }
    rival = best_of_block<WARP_COUNT>(rival, scratch);
    if (threadIdx.x == 0) {
        record[0] = iy;
        record[1] = ix;
        record[3] = rival.value;
    }
    if (threadIdx.x < 25) {
        const int y = iy + (int)threadIdx.x / 5 - 2, x = ix + (int)threadIdx.x % 5 - 2;
        const bool inside = found && y >= 0 && y < height && x >= 0 && x < width;
        const double value = inside ? score.line(y).exact(sums[y * width + x], x) : NOT_A_NUMBER;
        record[4 + threadIdx.x] = value;
        if (threadIdx.x == 12) record[2] = value;
    }
}
