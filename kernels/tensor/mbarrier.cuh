// Barriers between some of the warps of a block: some arrive, others wait until all of these have (mbarrier, sm_90 on).
//
// An mbarrier is in shared memory. A phase completes when the expected number of threads have arrived, and the next
// phase begins with the same number: the first phase is 0. A waiting thread may be one phase late, not more, as an
// mbarrier records only the parity of its phase.
// What a thread wrote before arriving is visible to those that waited. One thread initialises an mbarrier, before a
// block-wide barrier.
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
