// Fence, commit and wait for products of four warps: they run asynchronously, on the tensor cores of sm_90a.
//
// `open_products`, any number of them, `close_products`; `await_products` before the sums are read, or registers of A
// written.
#pragma once

__device__ __forceinline__ void open_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void close_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void await_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#endif
}
// All but the latest `COUNT` of the products that were closed have ended.
template <int COUNT>
__device__ __forceinline__ void await_products_but() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(COUNT) : "memory");
#endif
}

// What ordinary stores to shared memory have written, made known to the tensor cores; before the block's barrier.
__device__ __forceinline__ void publish_to_products() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

#define FOUR_SUMS(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
