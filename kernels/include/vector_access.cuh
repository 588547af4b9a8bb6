// COLUMNS neighbouring elements that are read or written at once, 16 bytes at a time.
#pragma once

#ifndef COLUMNS
#define COLUMNS 4
#endif

template <typename T>
struct alignas(sizeof(T) * COLUMNS > 16 ? 16 : sizeof(T) * COLUMNS) AlignedVector {
    T at[COLUMNS];
};

template <typename T>
__device__ __forceinline__ bool is_aligned(const T* address) {
    return ((unsigned long long)address & (alignof(AlignedVector<T>) - 1)) == 0;
}

// Starts a copy of neighbouring elements to shared memory, up to 16 bytes at a time and without passing through registers
// (sm_80 on).
template <typename T>
__device__ __forceinline__ void copy_vector(AlignedVector<T>* to, const T* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    constexpr int BYTES = (int)alignof(AlignedVector<T>);
#pragma unroll
    for (int k = 0; k < (int)sizeof(AlignedVector<T>); k += BYTES)
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address + k), "l"((const char*)from + k), "n"(BYTES)
                     : "memory");
#else
    *to = *reinterpret_cast<const AlignedVector<T>*>(from);
#endif
}
