// Split-K semaphore: blocks that share a tile of a result add their sums to it one after the other, in the order of
// their indices.
//
// `passed` counts the blocks of a tile that have added their sums. It is zero before a launch and, because the last
// block resets it, after it, ready for the next launch in the stream; launches that may run concurrently have separate
// counters.
// What a block wrote before `release_semaphore` is visible to the next block that passes `wait_semaphore`: thread 0
// releases and acquires for all, and a barrier separates it from the other threads.
//
// There is no deadlock: a block waits only for blocks of lower index, and devices start blocks in the order of their
// index (single-pass scans rely on this, too). So the lowest unfinished block is running, and all blocks that it could
// wait for have finished.
#pragma once

__device__ __forceinline__ int acquired(const int* counter) {
#if defined(__CUDA_ARCH__)
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
#else
    return *counter;
#endif
}

__device__ __forceinline__ void release(int* counter, int value) {
#if defined(__CUDA_ARCH__)
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
#else
    *counter = value;
#endif
}

// Every thread of the block calls these.
__device__ __forceinline__ void wait_semaphore(const int* passed, int turn) {
    if (threadIdx.x == 0)
        while (acquired(passed) != turn) __nanosleep(64);
    __syncthreads();
}
__device__ __forceinline__ void release_semaphore(int* passed, int next) {
    __syncthreads();
    if (threadIdx.x == 0) release(passed, next);
}
