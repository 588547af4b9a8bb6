// Adds the sums of all other segments of K to those of the first: output[i] += workspace[0][i], workspace[1][i] ...
//
// A thread processes VECTOR neighbouring elements and adds the segments in order, so that every run gives the same
// bits.
// Document: none; neither Im2win nor pointwise convolution has such a step: their grids leave much of the device idle
// where planes are small.
// Floor: the copy rate, segments + 1 passes over the output, most of them in the cache.
#ifndef VECTOR
#define VECTOR 4  // elements of a thread: 4 or 1; 4 needs a whole number of them
#endif
#ifndef THREADS
#define THREADS 256
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    add_segments(float* output, const float* workspace, int elements, int segments) {
    const int first = ((int)blockIdx.x * THREADS + (int)threadIdx.x) * VECTOR;
    if (first >= elements) return;
    if constexpr (VECTOR == 4) {
        float4 sum = *reinterpret_cast<float4*>(output + first);
#pragma unroll 4
        for (int segment = 1; segment < segments; ++segment) {
            const float4 more = *reinterpret_cast<const float4*>(workspace + (long long)(segment - 1) * elements + first);
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        *reinterpret_cast<float4*>(output + first) = sum;
    } else {
        float sum = output[first];
#pragma unroll 4
        for (int segment = 1; segment < segments; ++segment)
            sum += workspace[(long long)(segment - 1) * elements + first];
        output[first] = sum;
    }
}
