// Lets the blocks that share a tile of a result add their sums to it one after the other, in the order of their numbers.
//
// `passed` counts the blocks of a tile that have been through. It is zero before a launch and, as the last block sets it back,
// after it: the next launch in the stream finds it as this one did; launches that may run at the same time have other counters.
// What a block wrote before `release_semaphore` is there for the block that `wait_semaphore` lets through next: thread 0
// releases and
// acquires for all, a barrier lies between it and the others.
//
// Nobody waits for ever: a block waits for blocks of lower index alone, and devices start blocks in the order of their index
// (scans of one pass rely on it, too). So the lowest block that has not ended runs, and all that it could wait for have ended.
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
