// The peak of one plane, by one block: where it is highest, the highest other local maximum, and the 5 x 5 values around.
// The same rules as xcorr_app/correlation/peaks.py: of equal values the first counts; a rival is at least RIVAL_DISTANCE
// away along an axis and not on the plane's rim, and no neighbour of it is higher.
#pragma once

#define PEAK_RECORD 29  // iy, ix, value, rival, 25 values around: doubles
#define RIVAL_DISTANCE 3

struct Candidate {
    float value;
    int index;
};
__device__ __forceinline__ Candidate better(Candidate a, Candidate b) {
    return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// Best candidate of the block, known to all its threads; `scratch` holds 64 floats of shared memory.
template <int WARP_COUNT>
__device__ __forceinline__ Candidate best_of_block(Candidate own, float* scratch) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Candidate other = {__shfl_xor_sync(0xffffffffu, own.value, distance),
                           __shfl_xor_sync(0xffffffffu, own.index, distance)};
        own = better(own, other);
    }
    int* indices = reinterpret_cast<int*>(scratch + 32);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = own.value;
        indices[threadIdx.x / 32] = own.index;
    }
    __syncthreads();
    Candidate best = {scratch[0], indices[0]};
    for (int warp = 1; warp < WARP_COUNT; ++warp) {
        Candidate other = {scratch[warp], indices[warp]};
        best = better(best, other);
    }
    return best;
}

__device__ __forceinline__ bool on_rim(int at, int size) { return size > 1 && (at == 0 || at == size - 1); }

// Warps take rows and lanes columns, so that no index is divided. `sums` are the plain sums, `scores` room for as many
// floats; both of this plane. Every thread of the block calls it.
template <int WARP_COUNT, typename Score>
__device__ __forceinline__ void find_peak(const Score& score, const Sum* sums, float* scores, int height, int width,
                                          float* scratch, double* record) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    Candidate own = {MINUS_INFINITY, 0x7fffffff};
    for (int y = warp; y < height; y += WARP_COUNT) {
        const auto line = score.line(y);
        for (int x = lane; x < width; x += 32) {
            Candidate here = {line.quick(sums[y * width + x], x), y * width + x};
            scores[here.index] = here.value;
            if (here.value > own.value) own = here;  // of equal ones a lane sees the first first
        }
    }
    const Candidate best = best_of_block<WARP_COUNT>(own, scratch);
    const bool found = best.value > MINUS_INFINITY;
    const int iy = found ? best.index / width : 0, ix = found ? best.index % width : 0;
    // Without a rim along an axis of one element, its neighbours are the element itself.
    const int down = height > 1 ? width : 0, right = width > 1 ? 1 : 0;
    Candidate rival = {MINUS_INFINITY, 0x7fffffff};
    for (int y = warp; y < height; y += WARP_COUNT) {
        if (on_rim(y, height)) continue;
        const bool far_row = y - iy >= RIVAL_DISTANCE || iy - y >= RIVAL_DISTANCE;
        for (int x = lane; x < width; x += 32) {
            const bool far = far_row || x - ix >= RIVAL_DISTANCE || ix - x >= RIVAL_DISTANCE;
            if (!far || on_rim(x, width)) continue;
            const float* at = scores + y * width + x;
            const float above = fmaxf(fmaxf(at[-down - right], at[-down]), at[right - down]);
            const float below = fmaxf(fmaxf(at[down - right], at[down]), at[down + right]);
            const float highest = fmaxf(fmaxf(above, below), fmaxf(at[-right], at[right]));
            if (at[0] >= highest) rival.value = fmaxf(rival.value, at[0]);
        }
    }
    rival = best_of_block<WARP_COUNT>(rival, scratch);
    if (threadIdx.x == 0) {
        record[0] = iy;
        record[1] = ix;
        record[2] = found ? score.line(iy).exact(sums[best.index], ix) : NOT_A_NUMBER;
        record[3] = rival.value;
    }
    if (threadIdx.x < 25) {
        const int y = iy + (int)threadIdx.x / 5 - 2, x = ix + (int)threadIdx.x % 5 - 2;
        const bool inside = found && y >= 0 && y < height && x >= 0 && x < width;
        record[4 + threadIdx.x] = inside ? score.line(y).exact(sums[y * width + x], x) : NOT_A_NUMBER;
    }
}
