// Products of fp16 matrices by a warp, on tensor cores (sm_80 on); sums are float.
//
// Fragments as PTX names them for m16n8k16: lane 4 g + t holds, of A, rows g and g + 8, columns 2 t and 2 t + 1, then
// the same rows eight columns further; of B, the same with columns for rows; of the sums, rows g and g + 8, columns 2 t
// and 2 t + 1.
#pragma once

// Keeps the compiler from making a value again wherever it is used.
__device__ __forceinline__ void keep(unsigned& value) {
#ifdef __CUDA_ARCH__
    asm volatile("" : "+r"(value));
#endif
}

// Two values, rounded to half precision; the first in the lower half of the word.
__device__ __forceinline__ unsigned half_pair(float first, float second) {
#if !defined(__CUDA_ARCH__)
    return host_half_pair(first, second);
#elif __CUDA_ARCH__ >= 800
    unsigned pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
#else
    return 0;
#endif
}

// What rounding to half precision left of a value.
__device__ __forceinline__ float half_residue(float value) {
#if defined(__CUDA_ARCH__)
    float rounded;
    asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(rounded) : "f"(value));
    return value - rounded;
#else
    return value - host_half(value);
#endif
}

// Four 8 x 8 matrices of half precision from shared memory: lane 8 i + r gives the address of row r of matrix i (16 bytes);
// lane 4 g + t receives columns 2 t and 2 t + 1 of row g of each.
__device__ __forceinline__ void load_matrices(const unsigned* row, unsigned (&matrix)[4]) {
#if defined(__CUDA_ARCH__)
    const unsigned address = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(matrix[0]), "=r"(matrix[1]), "=r"(matrix[2]), "=r"(matrix[3])
                 : "r"(address));
#else
    host_load_matrices(row, matrix);
#endif
}

// sum[16 x 8] += A[16 x 16] * B[16 x 8].
__device__ __forceinline__ void multiply_add_halves(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                                    unsigned b0, unsigned b1) {
#if !defined(__CUDA_ARCH__)
    host_multiply_add_halves(sum, a0, a1, a2, a3, b0, b1);
#elif __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    asm volatile("trap;");
#endif
}
