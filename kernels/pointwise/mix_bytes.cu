// Channel mixing of integers, streaming form with products of bytes on tensor cores (sm_80 on), for numbers of channels
// at which multiply-adds limit `mix.cu`.
//
// result[k][pixel] = sum over c of matrix[k][c] * image[c][pixel], planes [outer][channel][inner] of whole vectors. A
// pixel is one byte or two. An element of the matrix is a whole number times a power of two common to its row, and the
// whole number has four digits of one signed byte each. Products of bytes are exact, and so are their 32-bit sums. The
// product of a pixel's byte b and a digit d, both counted from the most significant, has the same weight as all others
// with the same b + d: these go into one sum. For 16 bits sums 0 to 3 are computed, from 7 kinds of products; for 8
// bits sums 0 to 2, from 3. Terms of lower weight are omitted.
//
// A warp loops over strips of 8 * VECTOR pixels: it reads the next strip, multiplies the current one, 16 results at a
// time, and writes it. The matrix's digits come from shared memory in the order of the products' fragments
// (`mma_int8.cuh`), 16 bytes per lane. Lane 4 g + t reads VECTOR neighbouring pixels of every fourth channel from t on;
// byte permutations combine the same byte of a pixel in four of its channels into a word, and each of VECTOR products
// takes one column. With G(g) = 4 (g % 2) + g / 2, column g of product j is pixel VECTOR * G(g) + j. The lane's sums
// are then VECTOR pixels from VECTOR * t on, and those 4 * VECTOR further, for two rows.
//
// Precision, for 32 channels and rows whose elements stay below 2^e: before rounding half to even, the error of a
// result is at most 0.002 * 2^e from the omitted terms and the matrix's rounding, plus 0.004 from two roundings of a
// float up to 65536.
//
// Document: pointwise convolution; a one-level tile on tensor cores.
// Floor: the copy rate, of which an H200 reaches 0.81 with 32 channels of uint16 (`mix_split.cu` 0.59). A strip of 64
// such pixels takes 112 products and about 770 other instructions, while moving it takes 2060 cycles of a quarter of a
// multiprocessor. Using the widest possible loads matters most.
#include "mma_int8.cuh"
#include "mix.cuh"
#include "shared_tile.cuh"

#ifndef CHANNELS
#define CHANNELS 32  // of the image
#endif
#ifndef RESULTS
#define RESULTS 32  // channels of the result
#endif
#ifndef VECTOR  // pixels a load and store; a multiple of 4 / bytes of an element
#define VECTOR 8
#endif
#ifndef THREADS
#define THREADS 64
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 4
#endif

constexpr int BYTES = sizeof(Image), SIGNED = (Image)-1 < (Image)0, STRIP = 8 * VECTOR;
constexpr int WORDS_IN = VECTOR * BYTES / 4, WORDS_OUT = VECTOR * (int)sizeof(Result) / 4;
constexpr int CHANNEL_HALVES = (CHANNELS + 15) / 16;  // of the 32 channels of a product
constexpr int DIGITS = 4, SUMS = BYTES + 2;   // of an element; of different weight
constexpr int TOGETHER = VECTOR < 8 ? VECTOR : VECTOR / 2;  // columns between which the compiler may mingle the work

// The matrix in words: of every 16 rows, digit after digit, what each lane has of a fragment; then a number for each row, of
// which some do not exist: what sum 1 is to be multiplied by.
constexpr int ROWS_16 = (RESULTS + 15) / 16, FRAGMENT = 4 * WARP;
constexpr int DIGIT_WORDS = ROWS_16 * DIGITS * FRAGMENT, MATRIX_WORDS = DIGIT_WORDS + 16 * ROWS_16;

// Sums begin here: as the bits of a float they are 1.5 * 2^23 and the sum, which is below 2^21. So no conversion is needed.
constexpr int MAGIC_BITS = 0x4b400000;
constexpr float MAGIC = 12582912.0f;

static_assert(BYTES <= 2 && sizeof(Result) <= 2 && !DENSITY, "integers become integers");
static_assert(VECTOR * BYTES % 4 == 0 && VECTOR * sizeof(Result) % 4 == 0, "a vector is made of whole words");

struct ByteMixing {
    int strips_a_plane, strips;          // of an image, and of all
    int warps;                           // each takes every so many-th strip:
    int images_further, strips_further;  // so many images and strips of one from one to its next
    long long inner;                     // pixels of a plane, a multiple of VECTOR
};

// The position of a strip: its number among those of its image.
struct StripPlace {
    int image, strip;
    __device__ __forceinline__ StripPlace next(const ByteMixing& m) const {
        StripPlace place = {image + m.images_further, strip + m.strips_further};
        if (place.strip >= m.strips_a_plane) {
            ++place.image;
            place.strip -= m.strips_a_plane;
        }
        return place;
    }
};

// Byte b of word c becomes byte c of word b.
__device__ __forceinline__ void transpose_bytes(unsigned (&word)[4]) {
    const unsigned low_01 = __byte_perm(word[0], word[1], 0x5140), low_23 = __byte_perm(word[2], word[3], 0x5140);
    const unsigned high_01 = __byte_perm(word[0], word[1], 0x7362), high_23 = __byte_perm(word[2], word[3], 0x7362);
    word[0] = __byte_perm(low_01, low_23, 0x5410);
    word[1] = __byte_perm(low_01, low_23, 0x7632);
    word[2] = __byte_perm(high_01, high_23, 0x5410);
    word[3] = __byte_perm(high_01, high_23, 0x7632);
}

// The j-th of the four channels that a lane has in a half: neighbouring lanes have neighbouring channels.
__device__ __forceinline__ int channel_of(int half, int j, int lane) { return 16 * half + 4 * j + lane % 4; }

typedef Pack<unsigned, WORDS_IN> InPack;
typedef Pack<unsigned, WORDS_OUT> OutPack;
typedef Pack<unsigned, 4> Fragment;

// The lane's pixels of a strip in its channels. For pixels beyond the plane its first pixels are read, and nothing is
// stored; channels beyond the last as that one is: the matrix has zeros for them.
__device__ __forceinline__ void read_strip(const Image* images, const ByteMixing& m, const StripPlace& place, int lane,
                                           InPack (&pack)[CHANNEL_HALVES][4]) {
    const int pixel = place.strip * STRIP + VECTOR * (lane / 4 % 2 * 4 + lane / 8);
    const Image* from = images + (place.image * (long long)CHANNELS + lane % 4) * m.inner + (pixel < m.inner ? pixel : 0);
#pragma unroll
    for (int half = 0; half < CHANNEL_HALVES; ++half)
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            const int beyond = channel_of(half, j, lane) - (CHANNELS - 1);
            if (channel_of(half, j, 0) >= CHANNELS) continue;
            const Image* vector = channel_of(half, j, 3) >= CHANNELS && beyond > 0 ? from - beyond * m.inner : from;
            pack[half][j] = *reinterpret_cast<const InPack*>(vector);
            from += 4 * m.inner;
        }
}

// A result from its sums, in units of sum 1; they are magic-number floats.
__device__ __forceinline__ float total_of(const int (&sum)[SUMS][4], int e) {
    float lower = -MAGIC / 256;
    // Rounded to whole units of sum 2.
    if constexpr (SUMS == 4) lower = fmaf(__int_as_float(sum[3][e]), 1.0f / 65536, -MAGIC / 65536 - MAGIC / 256);
    lower = fmaf(__int_as_float(sum[2][e]), 1.0f / 256, lower);
    const float upper = __int_as_float(sum[1][e]) + fmaf(__int_as_float(sum[0][e]), 256.0f, -256 * MAGIC - MAGIC);
    return upper + lower;
}

// The integer nearest to total * unit, half to even, clipped to the type's range, in the lower bits.
__device__ __forceinline__ unsigned rounded(float total, float unit, int& beyond) {
    // Bits of larger floats are larger whole numbers, and those of negative floats negative ones.
    const int nearest = (int)__float_as_uint(fmaf(total, unit, MAGIC));
    const int lowest = MAGIC_BITS + (CLIP ? 0 : (int)Limits<Result>::LOWEST), highest = MAGIC_BITS + (int)Limits<Result>::HIGHEST;
    int held = nearest < highest ? nearest : highest;
    held = held > lowest ? held : lowest;
    // Negative results that become zero are no values beyond the range.
    if (COUNT_CLIPPED) beyond += CLIP ? nearest > highest : held != nearest;
    return (unsigned)held;
}

// Element `at` of those that make up a pack; the first of a word first.
__device__ __forceinline__ void put(OutPack& pack, int at, unsigned value) {
    constexpr int EACH = 4 / sizeof(Result);
    unsigned& word = pack.at[at / EACH];
    const int place = at % EACH;
    if (EACH == 2) word = place ? __byte_perm(word, value, 0x5410) : value;
    if (EACH == 4) word = place ? __byte_perm(word, value, place == 1 ? 0x3240 : place == 2 ? 0x3410 : 0x4210) : value;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    mix_bytes(const Image* images, Result* results, unsigned long long* clipped, const unsigned* matrix,
              const __grid_constant__ ByteMixing m) {
    const int lane = (int)threadIdx.x % WARP, row = lane / 4;
    int strip = (int)blockIdx.x * (THREADS / WARP) + (int)threadIdx.x / WARP;

    SHARED_FLOATS(shared);
    unsigned* words = reinterpret_cast<unsigned*>(shared);
    for (int i = threadIdx.x; i < MATRIX_WORDS; i += THREADS) words[i] = matrix[i];
    __syncthreads();

    if (strip >= m.strips) return;  // a whole warp
    StripPlace place = {strip / m.strips_a_plane, strip % m.strips_a_plane};
    InPack pack[CHANNEL_HALVES][4] = {};
    read_strip(images, m, place, lane, pack);
    int beyond = 0;
#pragma unroll 1
    for (; strip < m.strips; strip += m.warps) {
        unsigned byte[VECTOR][BYTES][2] = {};  // of a pixel, the lower one first, in four channels of each half
#pragma unroll
        for (int half = 0; half < CHANNEL_HALVES; ++half)
#pragma unroll
            for (int w = 0; w < WORDS_IN; ++w) {
                unsigned word[4];
#pragma unroll
                for (int j = 0; j < 4; ++j) word[j] = pack[half][j].at[w];
                transpose_bytes(word);
#pragma unroll
                for (int b = 0; b < 4; ++b) byte[(4 * w + b) / BYTES][(4 * w + b) % BYTES][half] = word[b];
            }
        // The next strip; after the last one it is read once more.
        const StripPlace next = strip + m.warps < m.strips ? place.next(m) : place;
        read_strip(images, m, next, lane, pack);

        const int pixel = place.strip * STRIP + VECTOR * (lane % 4);
        Result* to = results + (place.image * (long long)RESULTS + row) * m.inner + pixel;
        const bool inside[2] = {pixel < m.inner, pixel + STRIP / 2 < m.inner};
        const Fragment* fragment = reinterpret_cast<const Fragment*>(words) + lane;
        const float* units = shared + DIGIT_WORDS + row;
#pragma unroll 1
        for (int first = 0; first < RESULTS; first += 16, fragment += DIGITS * WARP, units += 16) {
            Fragment digit[DIGITS];
#pragma unroll
            for (int d = 0; d < DIGITS; ++d) digit[d] = fragment[d * WARP];
            const float unit[2] = {units[0], units[8]};
            OutPack mixed[2][2];  // [half of the rows][run of pixels]
            int beyond_here[2] = {};
#pragma unroll
            for (int j = 0; j < VECTOR; ++j) {
                // Never so: without a branch the compiler begins more products than there are registers for.
                if (j == TOGETHER && m.warps == 0) break;
                int sum[SUMS][4];
#pragma unroll
                for (int s = 0; s < SUMS; ++s)
#pragma unroll
                    for (int e = 0; e < 4; ++e) sum[s][e] = MAGIC_BITS;
#pragma unroll
                for (int b = 0; b < BYTES; ++b)
#pragma unroll
                    for (int d = 0; d < DIGITS; ++d) {
                        if (b + d >= SUMS) continue;
                        const unsigned(&of)[2] = byte[j][BYTES - 1 - b];
                        multiply_add_digits(sum[b + d], digit[d].at[0], digit[d].at[1], digit[d].at[2], digit[d].at[3],
                                            of[0], of[1], SIGNED && b == 0);
                    }
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    put(mixed[e / 2][e % 2], j, rounded(total_of(sum, e), unit[e / 2], beyond_here[e % 2]));
            }
#pragma unroll
            for (int odd = 0; odd < 2; ++odd)
                if (inside[odd]) beyond += beyond_here[odd];
#pragma unroll
            for (int upper = 0; upper < 2; ++upper) {
#pragma unroll
                for (int odd = 0; odd < 2; ++odd)
                    if ((RESULTS % 16 == 0 || first + 8 * upper + row < RESULTS) && inside[odd])
                        store_pack(reinterpret_cast<unsigned*>(to + STRIP / 2 * odd), mixed[upper][odd]);
                to += 8 * m.inner;
            }
        }
        place = next;
    }
    add_count(clipped, beyond);
}
