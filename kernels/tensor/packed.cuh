// Four neighbouring elements as they come from memory. They stay packed until they are needed, because unpacking waits
// for the load.
#pragma once
#include "magic_number.cuh"
#include "shared_tile.cuh"

template <typename T>
struct __align__(4 * sizeof(T)) Packed {
    unsigned word[sizeof(T)];
    __device__ __forceinline__ void set(int e, T element) {
        if constexpr (IsFloat<T>::VALUE) {
            word[e] = __float_as_uint(element);
        } else {
            constexpr int BITS = 8 * sizeof(T), EACH = 32 / BITS;
            const unsigned mask = 0xffffffffu >> (32 - BITS);
            word[e / EACH] = (word[e / EACH] & ~(mask << e % EACH * BITS)) | ((unsigned)element & mask) << e % EACH * BITS;
        }
    }
    __device__ __forceinline__ float as_float(int e) const { return magic_float<T>(word, e); }
};
