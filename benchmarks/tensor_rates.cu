// Loops of one tensor-core instruction: the ceilings of the kernels of engine `tensor`. Built for sm_90a by tensor_rates.py.
//
// groups_fixed, groups_read: wgmma m64n32k16, two sums a group of four warps, fragments of A fixed, or two words a lane read
// from shared memory for each. warps: mma.sync m16n8k16, 16 independent sums a warp.
struct Fragments {
    unsigned a[4][4];
};

__device__ __forceinline__ unsigned long long columns(unsigned address) {
    return (address & 0x3ffff) >> 4 | (unsigned long long)(512 >> 4) << 16 | (unsigned long long)(128 >> 4) << 32;
}
__device__ __forceinline__ void multiply(float (&d)[16], const unsigned (&a)[4], unsigned long long b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, "
                 "%13, %14, %15}, {%16, %17, %18, %19}, %20, 1, 1, 1, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),
                   "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void issue(float (&d)[2][16], const Fragments& f, unsigned base, int turn) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int k = 0; k < 4; ++k) multiply(d[m], f.a[k], columns(base + k * 1024 + turn % 8 * 16));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <bool READ>
__device__ __forceinline__ void read(Fragments& f, const volatile unsigned* from) {
    if constexpr (READ)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            f.a[k][0] = f.a[k][1] = f.a[k][2] = from[32 * k];
            f.a[k][3] = from[32 * k + 512];
        }
}
template <bool READ>
__device__ __forceinline__ void loop(float* out, int turns) {
    extern __shared__ __align__(128) unsigned words[];
    for (int i = threadIdx.x; i < 8192; i += blockDim.x) words[i] = 0x3c003c00u;  // ones
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned base = (unsigned)__cvta_generic_to_shared(words);
    const volatile unsigned* own = words + threadIdx.x % 32;
    float d[2][16] = {};
    Fragments here, next;
    for (int k = 0; k < 4; ++k)
        for (int i = 0; i < 4; ++i) here.a[k][i] = next.a[k][i] = own[k * 4 + i];
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn) {
        issue(d, here, base, turn);
        read<READ>(next, own);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        issue(d, next, base, turn);
        read<READ>(here, own);
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += d[0][i] + d[1][i];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
extern "C" __global__ void __launch_bounds__(512, 1) groups_fixed(float* out, int turns) { loop<false>(out, turns); }
extern "C" __global__ void __launch_bounds__(512, 1) groups_read(float* out, int turns) { loop<true>(out, turns); }

extern "C" __global__ void __launch_bounds__(512) warps(float* out, int turns) {
    float c[16][4] = {};
    const unsigned one = 0x3c003c00u;
    for (int turn = 0; turn < turns; ++turn)
#pragma unroll
        for (int i = 0; i < 16; ++i)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, "
                         "{%0, %1, %2, %3};"
                         : "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
                         : "r"(one));
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
