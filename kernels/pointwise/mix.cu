// Channel mixing, streaming form for few channels: every pixel's channel vector times a matrix, in one read and one write.
//
// result[k][pixel] = sum over c of matrix[k][c] * image[c][pixel]. The matrix is an argument of the kernel, so that a
// multiply-add takes its element from constant memory. Planes ([outer][channel][inner], INTERLEAVED 0): a thread
// computes FILTERS results for each of PIXELS pixels; it loops over the channels with LOADS of them in flight, VECTOR
// pixels per load, and the lanes' vectors are contiguous. Further results are computed by the next block, which finds
// the pixels in the cache.
// Interleaved ([pixel][channel]): a thread processes PIXELS neighbouring pixels with all their channels, and reads and
// writes the whole chunk in vectors as wide as its size allows (ALIGNED 0: element by element, where the arrays are not
// aligned to that size).
//
// Document: pointwise convolution; of its tiles only the thread tile remains, since only the matrix is shared.
// Floor: the copy rate, each value read and written once; the FMA rate from about 30 channels on.
#include "mix.cuh"

#ifndef CHANNELS
#define CHANNELS 4  // of the image
#endif
#ifndef RESULTS
#define RESULTS 4  // channels of the result
#endif
#ifndef INTERLEAVED
#define INTERLEAVED 0
#endif
#ifndef FILTERS  // channels of the result that a thread sums
#define FILTERS RESULTS
#endif
#ifndef VECTOR  // pixels a load and store
#define VECTOR 4
#endif
#ifndef PIXELS  // a thread; a multiple of VECTOR
#define PIXELS 4
#endif
#ifndef LOADS  // channels in flight
#define LOADS CHANNELS
#endif
#ifndef UNROLL  // rounds of LOADS channels in a piece of straight code
#define UNROLL 1
#endif
#ifndef ALIGNED
#define ALIGNED 1
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif

#define GROUPS ((RESULTS + FILTERS - 1) / FILTERS)

// `at` holds the elements of FILTERS results side by side, channel after channel, group after group; zeros for results that
// do not exist.
struct Mixing {
    Sum at[GROUPS * CHANNELS * FILTERS];
    float scale;         // 1 / white, for DENSITY
    int blocks_an_image;  // of one group
    long long inner;     // pixels of a plane; interleaved: of all there are
};

#if !INTERLEAVED

static_assert(PIXELS % VECTOR == 0, "a thread moves whole vectors");
#define STEPS (PIXELS / VECTOR)
typedef Pack<Image, VECTOR> ImagePack;
struct Row {
    ImagePack pack[STEPS];
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    mix(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Mixing m) {
    const int group = (int)blockIdx.x % GROUPS, block = (int)blockIdx.x / GROUPS;
    const int image = block / m.blocks_an_image;
    // A warp's pixels are STEPS runs of WARP vectors.
    const long long warp = (long long)(block - image * m.blocks_an_image) * (THREADS / WARP) + threadIdx.x / WARP;
    const long long first = warp * (WARP * PIXELS) + threadIdx.x % WARP * VECTOR;
    const Image* from = images + (long long)image * CHANNELS * m.inner + first;
    Result* to = results + ((long long)image * RESULTS + group * FILTERS) * m.inner + first;
    const long long left = m.inner - first;  // pixels from the thread's first on; a vector is inside as a whole, or not

    // Without a branch: for elements beyond the plane its first pixels are read, and nothing is stored.
    if (left <= 0) from -= first;
    auto row_at = [&](const Image* channel) {
        Row row;
        row.pack[0] = *reinterpret_cast<const ImagePack*>(channel);
#pragma unroll
        for (int s = 1; s < STEPS; ++s) {
            const int further = s * (WARP * VECTOR) < left ? s * (WARP * VECTOR) : 0;
            row.pack[s] = *reinterpret_cast<const ImagePack*>(channel + further);
        }
        return row;
    };
    Row ahead[LOADS];
#pragma unroll
    for (int j = 0; j < LOADS; ++j) ahead[j] = row_at(from + j * m.inner);
    from += LOADS * m.inner;

    Sum sum[FILTERS][PIXELS];
#pragma unroll
    for (int k = 0; k < FILTERS; ++k)
#pragma unroll
        for (int i = 0; i < PIXELS; ++i) sum[k][i] = 0;

    const Sum* factors = m.at + group * (CHANNELS * FILTERS);
    constexpr int ROUNDS = UNROLL;
#pragma unroll ROUNDS
    for (int start = 0; start < CHANNELS; start += LOADS) {
#pragma unroll
        for (int j = 0; j < LOADS; ++j) {
            const int c = start + j;
            if (CHANNELS % LOADS && c >= CHANNELS) break;
            Sum value[PIXELS];
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) value[i] = mixed_value(ahead[j].pack[i / VECTOR].at[i % VECTOR], m.scale);
            if (c + LOADS < CHANNELS) ahead[j] = row_at(from);
            from += m.inner;
#pragma unroll
            for (int k = 0; k < FILTERS; ++k)
#pragma unroll
                for (int i = 0; i < PIXELS; ++i) sum[k][i] = fused(factors[c * FILTERS + k], value[i], sum[k][i]);
        }
    }

    int beyond = 0;
#pragma unroll
    for (int k = 0; k < FILTERS; ++k) {
        if (RESULTS % FILTERS && group * FILTERS + k >= RESULTS) break;
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            if (s * (WARP * VECTOR) >= left) continue;
            Pack<Result, VECTOR> pack;
#pragma unroll
            for (int v = 0; v < VECTOR; ++v) pack.at[v] = Stored<Result>::from(sum[k][s * VECTOR + v], beyond);
            store_pack(to + s * (WARP * VECTOR), pack);
        }
        to += m.inner;
    }
    add_count(clipped, beyond);
}

#else

// Elements a vector: the largest power of two that divides the chunk, up to 16 bytes.
template <typename T>
__device__ constexpr int vector_of(int elements) {
    int size = 1;
    while (ALIGNED && elements % (2 * size) == 0 && 2 * size * (int)sizeof(T) <= 16) size *= 2;
    return size;
}

template <typename T, int ELEMENTS>
struct Chunk {
    enum { SIZE = vector_of<T>(ELEMENTS) };
    Pack<T, SIZE> pack[ELEMENTS / SIZE];
    __device__ __forceinline__ T& operator[](int i) { return pack[i / SIZE].at[i % SIZE]; }
};

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    mix(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Mixing m) {
    const long long first = ((long long)blockIdx.x * THREADS + threadIdx.x) * PIXELS;
    const Image* from = images + first * CHANNELS;
    Result* to = results + first * RESULTS;
    const long long left = m.inner - first;
    Chunk<Image, PIXELS * CHANNELS> chunk;
    if (left >= PIXELS) {
#pragma unroll
        for (int i = 0; i < PIXELS * CHANNELS / chunk.SIZE; ++i)
            chunk.pack[i] = reinterpret_cast<const Pack<Image, chunk.SIZE>*>(from)[i];
    } else {
#pragma unroll
        for (int i = 0; i < PIXELS * CHANNELS; ++i) chunk[i] = i < left * CHANNELS ? from[i] : (Image)0;
    }

    int beyond = 0;
    Chunk<Result, PIXELS * RESULTS> mixed;
#pragma unroll
    for (int i = 0; i < PIXELS; ++i) {
        Sum sum[RESULTS];
#pragma unroll
        for (int k = 0; k < RESULTS; ++k) sum[k] = 0;
#pragma unroll
        for (int c = 0; c < CHANNELS; ++c) {
            const Sum value = mixed_value(chunk[i * CHANNELS + c], m.scale);
#pragma unroll
            for (int k = 0; k < RESULTS; ++k) sum[k] = fused(m.at[c * RESULTS + k], value, sum[k]);
        }
        int beyond_here = 0;
#pragma unroll
        for (int k = 0; k < RESULTS; ++k) mixed[i * RESULTS + k] = Stored<Result>::from(sum[k], beyond_here);
        if (i < left) beyond += beyond_here;
    }
    if (left >= PIXELS) {
#pragma unroll
        for (int i = 0; i < PIXELS * RESULTS / mixed.SIZE; ++i)
            store_pack(to + i * mixed.SIZE, mixed.pack[i]);
    } else {
#pragma unroll
        for (int i = 0; i < PIXELS * RESULTS; ++i)
            if (i < left * RESULTS) to[i] = mixed[i];
    }
    add_count(clipped, beyond);
}

#endif
