// NaN where a kernel has nothing to say.
#pragma once

__device__ __forceinline__ double no_number() { return (double)__int_as_float(0x7fffffff); }
