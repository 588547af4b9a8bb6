// Gates between the warps of a block: some come, others wait until all of these have come, and no one else (mbarrier, sm_90
// on).
//
// A gate lies in shared memory. It opens when as many have come as it was made for, and so again for the next as many: its
// first turn is 0. One that waits may be a turn late, not more, as a gate knows of its turn only whether it is odd.
// What one wrote before coming is seen by those who waited. One thread makes a gate, before a barrier of the block.
#pragma once

typedef unsigned long long Gate;

__device__ __forceinline__ void make_gate(Gate* gate, int count) {
#if !defined(__CUDA_ARCH__)
    host_make_gate(gate, count);
#elif __CUDA_ARCH__ >= 900
    const unsigned address = (unsigned)__cvta_generic_to_shared(gate);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(count) : "memory");
#endif
}
__device__ __forceinline__ void come_to_gate(Gate* gate) {
#if !defined(__CUDA_ARCH__)
    host_come_to_gate(gate);
#elif __CUDA_ARCH__ >= 900
    const unsigned address = (unsigned)__cvta_generic_to_shared(gate);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address) : "memory");
#endif
}
__device__ __forceinline__ void await_gate(Gate* gate, int turn) {
#if !defined(__CUDA_ARCH__)
    host_await_gate(gate, turn);
#elif __CUDA_ARCH__ >= 900
    const unsigned address = (unsigned)__cvta_generic_to_shared(gate);
    asm volatile(
        "{\n"
        ".reg .pred open;\n"
        "WAIT: mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\n"
        "@!open bra WAIT;\n"
        "}\n" ::"r"(address), "r"(turn & 1)
        : "memory");
#endif
}
