// Products of matrices of bytes by a warp, on tensor cores (sm_80 on); sums are whole numbers of 32 bits.
//
// Fragments as PTX names them for m16n8k32: lane 4 g + t holds, of A, rows g and g + 8, columns 4 t to 4 t + 3, then
// the same rows sixteen columns further; of B, the same with columns for rows; of the sums, rows g and g + 8, columns 2
// t and 2 t + 1.
#pragma once

// sum[16 x 8] += A[16 x 32] * B[32 x 8].
__device__ __forceinline__ void multiply_add_bytes(int (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                   unsigned b0, unsigned b1) {
#if !defined(__CUDA_ARCH__)
    host_multiply_add_bytes(sum, a0, a1, a2, a3, b0, b1);
#elif __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    asm volatile("trap;");
#endif
}

// The same for signed bytes of A, and of B too where so asked; the compiler is to know which.
__device__ __forceinline__ void multiply_add_digits(int (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                    unsigned b0, unsigned b1, bool signed_b) {
#if !defined(__CUDA_ARCH__)
    host_multiply_add_bytes(sum, a0, a1, a2, a3, b0, b1, true, signed_b);
#elif __CUDA_ARCH__ >= 800
    if (signed_b)
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    else
        asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                     : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    asm volatile("trap;");
#endif
}

// Four bytes of two neighbouring words, from byte `first` of the lower one on.
__device__ __forceinline__ unsigned bytes_from(unsigned low, unsigned high, int first) {
    return __byte_perm(low, high, 0x3210u + 0x1111u * (unsigned)first);
}
