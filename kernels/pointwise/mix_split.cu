// Channel mixing, streaming form on tensor cores (sm_80 on), for numbers of channels at which multiply-adds limit
// `mix.cu`.
//
// result[k][pixel] = sum over c of matrix[k][c] * image[c][pixel], planes [outer][channel][inner] whose size is a
// multiple of 4. A warp keeps the whole matrix in registers, as the fragments of `mma_split.cuh`, and loops over strips
// of 32 pixels: it reads the next strip, multiplies the current one, and writes it. Nothing is shared, so there is no
// barrier.
// A lane reads four neighbouring pixels of a channel at once, one column each of four products: with G(g) = 4 (g % 2) +
// g / 2, column g of product j is pixel 4 G(g) + j. Its sums are pixels 4 t ... 4 t + 3, and those 16 further, for two
// rows of each product: the stores of four neighbouring lanes are 16 pixels of a plane.
//
// Document: pointwise convolution; a one-level tile on tensor cores, three products in TF32 for one in float.
// Floor: the copy rate. With 32 channels, the 96 products of a strip take about 620 cycles of a quarter of a
// multiprocessor, while moving float32 and uint16 takes 2050 and 1020.
#include "mix.cuh"
#include "mma_split.cuh"

#ifndef CHANNELS
#define CHANNELS 32  // of the image
#endif
#ifndef RESULTS
#define RESULTS 32  // channels of the result
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 2
#endif

constexpr int STEPS = (CHANNELS + 7) / 8, PRODUCTS_M = (RESULTS + 15) / 16, STRIP = 32;

struct SplitMixing {
    int pitch;                   // elements of a row of the matrix [channels][pitch], behind which rows of zeros follow
    float scale;                 // 1 / white, for DENSITY
    int strips_a_plane, strips;  // of an image, and of all
    long long inner;             // pixels of a plane, a multiple of four
};

typedef Pack<Image, 4> ImagePack;

// The position of a strip's pixel.
struct StripPlace {
    long long image;
    int pixel;
    __device__ __forceinline__ StripPlace(const SplitMixing& m, int strip, int of_strip) {
        const int plane = strip / m.strips_a_plane;
        image = plane;
        pixel = (strip - plane * m.strips_a_plane) * STRIP + of_strip;
    }
};

// The lane's pixels of a strip in the first channel. For pixels beyond the plane its first pixels are read, and nothing
// is stored.
__device__ __forceinline__ const Image* strip_start(const Image* images, const SplitMixing& m, int strip, int lane) {
    const StripPlace place(m, strip, 4 * (lane / 4 % 2 * 4 + lane / 8));
    return images + place.image * CHANNELS * m.inner + (place.pixel < m.inner ? place.pixel : 0);
}

// Those of its channel of four. Channels beyond the last are read as that one is: the matrix has zeros for them.
__device__ __forceinline__ ImagePack read_pack(const Image* start, const SplitMixing& m, int first, int lane) {
    const int channel = first + lane % 4, last = CHANNELS - 1;
    return *reinterpret_cast<const ImagePack*>(start + (first + 3 > last && channel > last ? last : channel) * m.inner);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    mix_split(const Image* images, Result* results, unsigned long long* clipped, const float* matrix,
              const __grid_constant__ SplitMixing m, int warps) {
    const int lane = (int)threadIdx.x % WARP, row = lane / 4;
    int strip = (int)blockIdx.x * (THREADS / WARP) + (int)threadIdx.x / WARP;

    Parts factor[STEPS][2 * PRODUCTS_M][2];
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int i = 0; i < 2 * PRODUCTS_M; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int k = 8 * i + row, c = 8 * step + 4 * half + lane % 4;
                factor[step][i][half] = parts_of(k < m.pitch ? matrix[c * m.pitch + k] : 0.0f);
            }

    if (strip >= m.strips) return;  // a whole warp
    ImagePack pack[STEPS][2];
    const Image* from = strip_start(images, m, strip, lane);
#pragma unroll
    for (int step = 0; step < STEPS; ++step)
#pragma unroll
        for (int half = 0; half < 2; ++half) pack[step][half] = read_pack(from, m, 8 * step + 4 * half, lane);
    int beyond = 0;
#pragma unroll 1
    for (; strip < m.strips; strip += warps) {
        // Each pack makes room for the same one of the next strip; after the last strip it is read once more.
        from = strip_start(images, m, strip + warps < m.strips ? strip + warps : strip, lane);
        float sum[PRODUCTS_M][4][4] = {};
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            Parts value[4][2];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
#pragma unroll
                for (int j = 0; j < 4; ++j) value[j][half] = parts_of(mixed_value(pack[step][half].at[j], m.scale));
                pack[step][half] = read_pack(from, m, 8 * step + 4 * half, lane);
            }
            multiply_add_parts<PRODUCTS_M, 4>(sum, factor[step], value);
        }
        const StripPlace place(m, strip, 4 * (lane % 4));
        Result* to = results + place.image * RESULTS * m.inner + place.pixel;
#pragma unroll
        for (int i = 0; i < 2 * PRODUCTS_M; ++i)
#pragma unroll
            for (int odd = 0; odd < 2; ++odd) {
                const int k = 8 * i + row;
                Pack<Result, 4> pack;
                int beyond_here = 0;
#pragma unroll
                for (int j = 0; j < 4; ++j) pack.at[j] = Stored<Result>::from(sum[i / 2][j][i % 2 * 2 + odd], beyond_here);
                if ((8 * i + 8 <= RESULTS || k < RESULTS) && place.pixel + 16 * odd < m.inner) {
                    beyond += beyond_here;
                    store_pack(to + k * m.inner + 16 * odd, pack);
                }
            }
    }
    add_count(clipped, beyond);
}
