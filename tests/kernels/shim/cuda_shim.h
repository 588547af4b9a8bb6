// Runs CUDA C++ on the host: enough of the language for this project's kernels.
//
// A CUDA thread is a fibre (its own stack, switched in user space); the threads of a block run in turn, and the blocks
// one after the other. A shuffle waits until the 32 lanes of its warp have arrived, __syncthreads until the block has:
// lanes are in lock-step exactly where CUDA promises it. Shared memory holds NaN before each block. A shuffle with a lane
// missing, or a barrier that nobody can leave, ends the launch with a message.
//
// What a kernel calls stands here and is compiled ahead; what it does not see stands in cuda_shim.cpp, compiled once.
#ifndef CUDA_SHIM_H
#define CUDA_SHIM_H

#include <cmath>
#include <cstddef>
#include <cstring>
#include <type_traits>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) alignas(n)
#define SHARED_FLOATS(name) float* name = shim::shared

struct alignas(16) float4 {
    float x, y, z, w;
};
struct ShimIndex {
    unsigned x;
};
extern ShimIndex threadIdx, blockIdx;

// CUDA's own, of ints.
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }

namespace shim {

struct Barrier {
    int waiting = 0, generation = 0;
};
struct Warp {
    Barrier barrier;
    double slot[2][32];
    alignas(16) char wide[2][32 * 32];  // what `gather` exchanges
    int turn[32] = {};
};

extern Warp* warps;
extern float* shared;
extern Barrier block_barrier;
extern int current, alive, idle_switches;

[[noreturn]] void fail(const char* message);
void yield();
void arrive(Barrier& barrier, int expected);

// Runs `kernel_body` once for every thread of every block; returns a message on failure, else null.
const char* launch(int blocks, int threads, size_t shared_bytes, void (*kernel_body)());

template <typename T>
inline T exchange(T value, int source) {
    static_assert(sizeof(T) <= sizeof(double), "a shuffle moves up to eight bytes");
    Warp& warp = warps[current / 32];
    const int lane = current % 32, turn = warp.turn[lane] ^= 1;
    std::memcpy(&warp.slot[turn][lane], &value, sizeof value);
    arrive(warp.barrier, 32);
    std::memcpy(&value, &warp.slot[turn][source & 31], sizeof value);
    return value;
}

// What all lanes of the warp gave, until the lane's next exchange but one.
template <typename T>
inline const T* gather(const T& value) {
    static_assert(sizeof(T) <= 32, "a warp has room for 32 bytes a lane");
    Warp& warp = warps[current / 32];
    const int lane = current % 32, turn = warp.turn[lane] ^= 1;
    T* values = reinterpret_cast<T*>(warp.wide[turn]);
    values[lane] = value;
    arrive(warp.barrier, 32);
    return values;
}

}  // namespace shim

inline void __syncthreads() { shim::arrive(shim::block_barrier, shim::alive); }
template <typename T>
inline T __shfl_sync(unsigned, T value, int source) {
    return shim::exchange(value, source);
}
template <typename T>
inline T __shfl_xor_sync(unsigned, T value, int distance) {
    return shim::exchange(value, (shim::current % 32) ^ distance);
}
inline int __any_sync(unsigned, int predicate) {
    const int* predicates = shim::gather(predicate);
    bool any = false;
    for (int lane = 0; lane < 32; ++lane) any |= predicates[lane] != 0;
    return any;
}
inline void __syncwarp() { shim::arrive(shim::warps[shim::current / 32].barrier, 32); }
template <typename T>
inline T __shfl_up_sync(unsigned, T value, int distance) {
    const int lane = shim::current % 32;
    return shim::exchange(value, lane < distance ? lane : lane - distance);
}
inline void __threadfence() {}  // blocks run one after the other
inline void __nanosleep(unsigned) { shim::fail("a block waits for one that has not run"); }
template <typename T>
inline T __ldcg(const T* address) {
    return *address;
}
template <typename T>
inline T __shfl_down_sync(unsigned, T value, int distance) {
    const int lane = shim::current % 32;
    return shim::exchange(value, lane + distance > 31 ? lane : lane + distance);
}
inline float __int_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline long long __double_as_longlong(double value) {
    long long bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
inline double __longlong_as_double(long long bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline float __uint_as_float(unsigned bits) { return __int_as_float(bits); }
inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}
// Four of the eight bytes of `low` and `high`, chosen by the digits of `selector`.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
    const unsigned long long both = (unsigned long long)high << 32 | low;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i) result |= (unsigned)(both >> (selector >> 4 * i & 7) * 8 & 255) << 8 * i;
    return result;
}
// Half to even; out of range becomes the nearest int, NaN zero.
inline int __double2int_rn(double value) {
    if (std::isnan(value)) return 0;
    return (int)std::fmin(std::fmax(std::nearbyint(value), -2147483648.0), 2147483647.0);
}
inline int __float2int_rn(float value) { return __double2int_rn(value); }
inline float rsqrtf(float value) { return 1.0f / std::sqrt(value); }
template <typename T>
inline T atomicAdd(T* address, T value) {
    const T before = *address;
    *address += value;
    return before;
}

// What gate.cuh does by instructions of the device.
struct HostGate {
    short count, missing;
    int turn;
};
static_assert(sizeof(HostGate) == sizeof(unsigned long long), "a gate takes the same room");
inline HostGate* host_gate(unsigned long long* gate) { return reinterpret_cast<HostGate*>(gate); }
inline void host_make_mbarrier(unsigned long long* gate, int count) { *host_gate(gate) = {(short)count, (short)count, 0}; }
inline void host_arrive_at_mbarrier(unsigned long long* gate) {
    HostGate* of = host_gate(gate);
    shim::idle_switches = 0;
    if (--of->missing > 0) return;
    of->missing = of->count;
    ++of->turn;
}
inline void host_await_mbarrier(unsigned long long* gate, int turn) {
    while (host_gate(gate)->turn % 2 == turn % 2) shim::yield();
}

#include "tensor_shim.h"

#endif
