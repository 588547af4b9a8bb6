// Weights of the four coefficients of a cubic B-spline around a place that lies `t` behind the second of them.
//
// Document: Unser, IEEE Signal Process. Mag. 1999, doi:10.1109/79.799930
#pragma once

template <typename T>
__device__ __forceinline__ void cubic_weights(T t, T (&weight)[4]) {
    const T u = 1 - t, sixth = (T)(1.0 / 6.0);
    weight[0] = u * u * u * sixth;
    weight[1] = (T)(2.0 / 3.0) - t * t * (1 - t * (T)0.5);
    weight[2] = (T)(2.0 / 3.0) - u * u * (1 - u * (T)0.5);
    weight[3] = t * t * t * sixth;
}
