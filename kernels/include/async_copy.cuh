// Copies from device memory to shared memory that are waited for later (sm_80 on, float).
#pragma once

// From device memory to shared memory without passing through registers, zero where `inside` is false (sm_80 on, float).
__device__ __forceinline__ void copy_float(float* to, const float* from, bool inside) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(inside ? 4 : 0) : "memory");
#else
    *to = inside ? *from : 0.0f;
#endif
}

// Four neighbouring floats at once; both addresses are multiples of 16 bytes.
__device__ __forceinline__ void copy_four(float* to, const float* from, bool inside) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
#else
    float4 zero = {0.0f, 0.0f, 0.0f, 0.0f};
    *reinterpret_cast<float4*>(to) = inside ? *reinterpret_cast<const float4*>(from) : zero;
#endif
}

__device__ __forceinline__ void copy_four_words(unsigned* to, const unsigned* from, bool inside) {
    copy_four(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from), inside);
}

// Every thread calls this before the barrier that opens a staged tile to the block.
__device__ __forceinline__ void staged() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// The same for copies on their way in groups: all but the latest `GROUPS` groups have arrived.
__device__ __forceinline__ void commit_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int GROUPS>
__device__ __forceinline__ void staged_but() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}
