// Products of fp16 matrices by four warps together (a warpgroup), on the tensor cores of sm_90a; sums are float.
//
// sum[64 x 8 N_TILES] += A[64 x 16] * B[16 x 8 N_TILES]. Warp w of the four holds rows 16 w to 16 w + 15 of A and of
// the sums, in fragments as `mma_fp16.cuh` describes them. B is in shared memory, in chunks of 8 of its 16 rows: 16
// bytes for each column, followed by those of the next column; the second chunk is `chunk` bytes after the first. So
// the columns may begin at any multiple of 16 bytes.
// How products begin and end: `wgmma_fence.cuh`.
#pragma once

#include "wgmma_fence.cuh"

// `columns`: how PTX writes the size, `places` and `factors`: numbers of the operands.
#define WARPGROUP_PRODUCT(columns, places, factors, ...)                                                                \
    asm volatile("wgmma.mma_async.sync.aligned.m64" columns "k16.f32.f16.f16 {" places "}, " factors ", 1, 1, 1, 0;" \
                 : __VA_ARGS__                                                                                      \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(matrix))

// Columns of B in shared memory, as the tensor cores address them.
struct Columns {
#if defined(__CUDA_ARCH__)
    unsigned place, form;
#else
    const unsigned* place;
    int form;
#endif
};
// `first`: of the columns; `chunk`: bytes between the chunks of 8 rows.
__device__ __forceinline__ Columns columns_at(const unsigned* first, int chunk) {
#if defined(__CUDA_ARCH__)
    // In units of 16 bytes: the address and the distance of the chunks; behind them that of eight columns.
    Columns columns = {(unsigned)__cvta_generic_to_shared(first) >> 4 | (unsigned)chunk >> 4 << 16, 8};
#else
    Columns columns = {first, chunk};
#endif
    return columns;
}
__device__ __forceinline__ Columns moved(const Columns& columns, int sixteen_bytes) {
#if defined(__CUDA_ARCH__)
    Columns there = {columns.place + sixteen_bytes, columns.form};
#else
    Columns there = {columns.place + 4 * sixteen_bytes, columns.form};
#endif
    return there;
}

__device__ __forceinline__ void multiply_add_warpgroup(float (&sum)[4 * N_TILES], const unsigned (&a)[4], const Columns& b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    const unsigned long long matrix = b.place | (unsigned long long)b.form << 32;
#if N_TILES == 1
    WARPGROUP_PRODUCT("n8", "%0, %1, %2, %3", "{%4, %5, %6, %7}, %8", FOUR_SUMS(0));
#elif N_TILES == 2
    WARPGROUP_PRODUCT("n16", "%0, %1, %2, %3, %4, %5, %6, %7", "{%8, %9, %10, %11}, %12", FOUR_SUMS(0), FOUR_SUMS(4));
#elif N_TILES == 3
    WARPGROUP_PRODUCT("n24", "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11", "{%12, %13, %14, %15}, %16", FOUR_SUMS(0),
                      FOUR_SUMS(4), FOUR_SUMS(8));
#elif N_TILES == 4
    WARPGROUP_PRODUCT("n32", "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15",
                      "{%16, %17, %18, %19}, %20", FOUR_SUMS(0), FOUR_SUMS(4), FOUR_SUMS(8), FOUR_SUMS(12));
#elif N_TILES == 5
    WARPGROUP_PRODUCT("n40",
                      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19",
                      "{%20, %21, %22, %23}, %24", FOUR_SUMS(0), FOUR_SUMS(4), FOUR_SUMS(8), FOUR_SUMS(12), FOUR_SUMS(16));
#elif N_TILES == 6
    WARPGROUP_PRODUCT("n48",
                      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                      "%22, %23",
                      "{%24, %25, %26, %27}, %28", FOUR_SUMS(0), FOUR_SUMS(4), FOUR_SUMS(8), FOUR_SUMS(12), FOUR_SUMS(16),
                      FOUR_SUMS(20));
#elif N_TILES == 7
    WARPGROUP_PRODUCT("n56",
                      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                      "%22, %23, %24, %25, %26, %27",
                      "{%28, %29, %30, %31}, %32", FOUR_SUMS(0), FOUR_SUMS(4), FOUR_SUMS(8), FOUR_SUMS(12), FOUR_SUMS(16),
                      FOUR_SUMS(20), FOUR_SUMS(24));
#elif N_TILES == 8
    WARPGROUP_PRODUCT("n64",
                      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
                      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31",
                      "{%32, %33, %34, %35}, %36", FOUR_SUMS(0), FOUR_SUMS(4), FOUR_SUMS(8), FOUR_SUMS(12), FOUR_SUMS(16),
                      FOUR_SUMS(20), FOUR_SUMS(24), FOUR_SUMS(28));
#else
#error "N_TILES is 1 to 8"
#endif
#elif !defined(__CUDA_ARCH__)
#pragma unroll
    for (int n = 0; n < N_TILES; ++n) {
        float(&of_tile)[4] = *reinterpret_cast<float(*)[4]>(sum + 4 * n);
        host_multiply_add_halves(of_tile, a[0], a[1], a[2], a[3], host_column_word(b.place, b.form, 8 * n, 0),
                                 host_column_word(b.place, b.form, 8 * n, 1));
    }
#else
    asm volatile("trap;");
#endif
}
