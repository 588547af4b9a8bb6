// COLUMNS neighbouring elements that are read or written at once, 16 bytes at a time.
#pragma once

#ifndef COLUMNS
#define COLUMNS 4
#endif

template <typename T>
struct alignas(sizeof(T) * COLUMNS > 16 ? 16 : sizeof(T) * COLUMNS) Quad {
    T at[COLUMNS];
};

template <typename T>
__device__ __forceinline__ bool is_aligned(const T* address) {
    return ((unsigned long long)address & (alignof(Quad<T>) - 1)) == 0;
}
