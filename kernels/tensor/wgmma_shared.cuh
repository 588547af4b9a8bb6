// Products of fp16 matrices by four warps together (a warpgroup), both operands in shared memory, on the tensor cores
// of sm_90a.
//
// sum[64 x 8 N_TILES] += A[64 x 16] * B[16 x 8 N_TILES]. Warp w of the four holds rows 16 w to 16 w + 15 of the sums,
// lane 4 g + t of columns 2 t and 2 t + 1 rows g and g + 8. Both operands are stored as 8 x 8 matrices of 128 bytes:
// eight rows of A, or columns of B, of 16 bytes each, one after the other. `Operand` gives the offset of the next such
// matrix along the 16 that are multiplied, and along the rows or columns: any multiples of 16 bytes.
//
// How products begin and end: `wgmma_fence.cuh`.
#pragma once
#include "wgmma_fence.cuh"

struct Operand {
#if defined(__CUDA_ARCH__)
    unsigned place, form;  // as the tensor cores address it
#else
    const unsigned* place;
    int along, across;
#endif
};
// `along`, `across`: bytes to the next 8 x 8 matrix, of the 16 that are multiplied and of the rows or columns.
__device__ __forceinline__ Operand operand_at(const unsigned* first, int along, int across) {
#if defined(__CUDA_ARCH__)
    Operand operand = {(unsigned)__cvta_generic_to_shared(first) >> 4 | (unsigned)along >> 4 << 16, (unsigned)across >> 4};
#else
    Operand operand = {first, along, across};
#endif
    return operand;
}
__device__ __forceinline__ Operand moved(const Operand& operand, int sixteen_bytes) {
    Operand there = operand;
#if defined(__CUDA_ARCH__)
    there.place += sixteen_bytes;
#else
    there.place += 4 * sixteen_bytes;
#endif
    return there;
}

// How PTX writes the sums of so many tiles, and the two operands that follow them; what a size has more than the one before.
#define PLACES_8 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, " \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define PLACES_11 \
    PLACES_8 \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43"
#define PLACES_16 \
    PLACES_11 \
    ", %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PLACES_17 \
    PLACES_16 \
    ", %64, %65, %66, %67"
#define PLACES_24 \
    PLACES_17 \
    ", %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, " \
    "%90, %91, %92, %93, %94, %95"
#define PLACES_32 \
    PLACES_24 \
    ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, " \
    "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define SUMS_8 \
    FOUR_SUMS(0), FOUR_SUMS(4), FOUR_SUMS(8), FOUR_SUMS(12), FOUR_SUMS(16), FOUR_SUMS(20), FOUR_SUMS(24), \
    FOUR_SUMS(28)
#define SUMS_11 \
    SUMS_8, \
    FOUR_SUMS(32), FOUR_SUMS(36), FOUR_SUMS(40)
#define SUMS_16 \
    SUMS_11, \
    FOUR_SUMS(44), FOUR_SUMS(48), FOUR_SUMS(52), FOUR_SUMS(56), FOUR_SUMS(60)
#define SUMS_17 \
    SUMS_16, \
    FOUR_SUMS(64)
#define SUMS_24 \
    SUMS_17, \
    FOUR_SUMS(68), FOUR_SUMS(72), FOUR_SUMS(76), FOUR_SUMS(80), FOUR_SUMS(84), FOUR_SUMS(88), FOUR_SUMS(92)
#define SUMS_32 \
    SUMS_24, \
    FOUR_SUMS(96), FOUR_SUMS(100), FOUR_SUMS(104), FOUR_SUMS(108), FOUR_SUMS(112), FOUR_SUMS(116), FOUR_SUMS(120), \
    FOUR_SUMS(124)
#define OPERANDS_8 "n64k16.f32.f16.f16 {" PLACES_8 "}, %32, %33"
#define OPERANDS_11 "n88k16.f32.f16.f16 {" PLACES_11 "}, %44, %45"
#define OPERANDS_16 "n128k16.f32.f16.f16 {" PLACES_16 "}, %64, %65"
#define OPERANDS_17 "n136k16.f32.f16.f16 {" PLACES_17 "}, %68, %69"
#define OPERANDS_24 "n192k16.f32.f16.f16 {" PLACES_24 "}, %96, %97"
#define OPERANDS_32 "n256k16.f32.f16.f16 {" PLACES_32 "}, %128, %129"
#define JOINED(name, count) name##_##count
#define OF_TILES(name, count) JOINED(name, count)

__device__ __forceinline__ void multiply_add_shared(float (&sum)[4 * N_TILES], const Operand& a, const Operand& b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.mma_async.sync.aligned.m64" OF_TILES(OPERANDS, N_TILES) ", 1, 1, 1, 0, 0;"
                 : OF_TILES(SUMS, N_TILES)
                 : "l"(a.place | (unsigned long long)a.form << 32), "l"(b.place | (unsigned long long)b.form << 32));
#elif !defined(__CUDA_ARCH__)
    const unsigned* const rows = a.place + threadIdx.x / 32 % 4 * (a.across / 2) + threadIdx.x % 32;
    for (int n = 0; n < N_TILES; ++n) {
        float(&of_tile)[4] = *reinterpret_cast<float(*)[4]>(sum + 4 * n);
        const unsigned* const columns = b.place + n * (b.across / 4) + threadIdx.x % 32;
        host_multiply_add_halves(of_tile, rows[0], rows[a.across / 4], rows[a.along / 4], rows[(a.along + a.across) / 4],
                                 columns[0], columns[b.along / 4]);
    }
#else
    asm volatile("trap;");
#endif
}
