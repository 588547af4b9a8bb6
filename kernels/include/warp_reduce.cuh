// Sums over the 32 lanes of the COUNT values that each lane holds, by recursive halving: in each step a lane hands half
// of its values to its partner and adds what it receives, so 32 lanes end with ceil(COUNT / 32) finished sums each
// instead of all of them. About COUNT + 31 shuffles, against 5 * COUNT for one tree per value.
#pragma once

template <int COUNT, int DISTANCE>
struct WarpReduce {
    enum { HALF = (COUNT + 1) / 2, KEPT = WarpReduce<HALF, DISTANCE / 2>::KEPT };
    static __device__ __forceinline__ void run(Sum* value, int lane) {
        const bool upper = lane & DISTANCE;
#pragma unroll
        for (int i = 0; i < HALF; ++i) {
            const Sum low = value[i], high = i + HALF < COUNT ? value[i + HALF] : (Sum)0;
            value[i] = (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, DISTANCE);
        }
        WarpReduce<HALF, DISTANCE / 2>::run(value, lane);
    }
    // Which of the COUNT sums value[i] became in this lane; -1 for padding.
    static __device__ __forceinline__ int index(int i, int lane) {
        const int inner = WarpReduce<HALF, DISTANCE / 2>::index(i, lane);
        const int at = inner + (lane & DISTANCE ? (int)HALF : 0);
        return inner >= 0 && at < COUNT ? at : -1;
    }
};

template <int COUNT>
struct WarpReduce<COUNT, 0> {
    enum { KEPT = COUNT };
    static __device__ __forceinline__ void run(Sum*, int) {}
    static __device__ __forceinline__ int index(int i, int) { return i; }
};
