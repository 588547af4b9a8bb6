// Neighbouring elements that are read or written in one access.
#pragma once

template <typename T, int N>
struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) Group {
    T at[N];
};
template <int N, typename T>
__device__ __forceinline__ Group<T, N> group_at(const T* address) {
    return *reinterpret_cast<const Group<T, N>*>(address);
}
template <int N, typename T>
__device__ __forceinline__ bool is_aligned_to(const T* address) {
    return ((unsigned long long)address & (alignof(Group<T, N>) - 1)) == 0;
}
