// Products of float matrices by a warp, on tensor cores (sm_80 on): three products in TF32 for one in float.
//
// A value is the sum of its upper part, rounded to the 11 bits of TF32, and the remainder, which 11 more bits represent
// to one bit in the last place of a float. The product of the two lower parts, below 2^-22 of the whole, is omitted.
// Infinities become NaN.
//
// Fragments as PTX names them for m16n8k8: lane 4 g + t holds, of A, rows g and g + 8 of column t, then of column t +
// 4; of B, rows t and t + 4 of column g; of the sums, rows g and g + 8, columns 2 t and 2 t + 1 each.
#pragma once

struct Parts {
    float upper, lower;
};

__device__ __forceinline__ Parts parts_of(float value) {
    Parts parts;
    // Half to the larger amount, by the bits; a NaN that this spoils is whole in the lower part.
    parts.upper = __uint_as_float((__float_as_uint(value) + 0x1000u) & 0xffffe000u);
    parts.lower = value - parts.upper;
    return parts;
}

// sum[16 x 8] += A[16 x 8] * B[8 x 8] in TF32: the lower 13 bits of the factors do not count.
__device__ __forceinline__ void multiply_add_tf32(float (&sum)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
#if !defined(__CUDA_ARCH__)
    host_multiply_add_tf32(sum, a0, a1, a2, a3, b0, b1);
#elif __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)), "r"(__float_as_uint(a3)),
                   "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#else
    asm volatile("trap;");
#endif
}

// sums[ROWS * 16 x COLUMNS * 8] += A * B, eight elements deep; a[row / 8][half of k], b[column / 8][half of k].
// Small products first, and those that add to the same sum far apart: each waits for the one before.
template <int ROWS, int COLUMNS>
__device__ __forceinline__ void multiply_add_parts(float (&sum)[ROWS][COLUMNS][4], const Parts (&a)[2 * ROWS][2],
                                                   const Parts (&b)[COLUMNS][2]) {
#pragma unroll
    for (int pass = 0; pass < 3; ++pass)
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
                const auto of_a = [&](int half, int k) { return pass == 0 ? a[2 * i + half][k].lower : a[2 * i + half][k].upper; };
                const auto of_b = [&](int k) { return pass == 1 ? b[j][k].lower : b[j][k].upper; };
                multiply_add_tf32(sum[i][j], of_a(0, 0), of_a(1, 0), of_a(0, 1), of_a(1, 1), of_b(0), of_b(1));
            }
}
