// Barriers between some of the warps of a block: some arrive, others wait until all of these have (mbarrier, sm_90 on).
//
// An mbarrier lies in shared memory. It opens when as many have come as it was made for, and so again for the next as many:
// its first turn is 0. One that waits may be a turn late, not more, as an mbarrier knows of its turn only whether it is odd.
// What one wrote before coming is seen by those who waited. One thread makes an mbarrier, before a barrier of the block.
#pragma once

typedef unsigned long long Mbarrier;

__device__ __forceinline__ void make_mbarrier(Mbarrier* mbarrier, int count) {
#if !defined(__CUDA_ARCH__)
    host_make_mbarrier(mbarrier, count);
#elif __CUDA_ARCH__ >= 900
    const unsigned address = (unsigned)__cvta_generic_to_shared(mbarrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(count) : "memory");
#endif
}
__device__ __forceinline__ void arrive_at_mbarrier(Mbarrier* mbarrier) {
#if !defined(__CUDA_ARCH__)
    host_arrive_at_mbarrier(mbarrier);
#elif __CUDA_ARCH__ >= 900
    const unsigned address = (unsigned)__cvta_generic_to_shared(mbarrier);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
#endif
}
__device__ __forceinline__ void await_mbarrier(Mbarrier* mbarrier, int turn) {
#if !defined(__CUDA_ARCH__)
    host_await_mbarrier(mbarrier, turn);
#elif __CUDA_ARCH__ >= 900
    const unsigned address = (unsigned)__cvta_generic_to_shared(mbarrier);
    asm volatile(
        "{\n"
        ".reg .pred open;\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\n"
        "@!open bra WAIT;\n"
        "}\n" ::"r"(address), "r"(turn & 1)
        : "memory");
#endif
}
