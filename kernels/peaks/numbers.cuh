// NaN where a kernel has nothing to say; values of which none is NaN; and places mirrored at both ends.
#pragma once

__device__ __forceinline__ double no_number() { return (double)__int_as_float(0x7fffffff); }

__device__ __forceinline__ double number_of(Right element) {
    const double value = (double)element;
    return value - value == 0.0 ? value : 0.0;
}

__device__ __forceinline__ int mirrored(int i, int size) { return i < 0 ? -i : i < size ? i : 2 * size - 2 - i; }
