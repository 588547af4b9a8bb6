// The fibres behind cuda_shim.h, and how a launch runs them.
#include "cuda_shim.h"

#include <setjmp.h>
#include <ucontext.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

ShimIndex threadIdx, blockIdx;

namespace shim {

constexpr size_t stack_bytes = 256 * 1024;
struct Fibre {
    ucontext_t start;
    jmp_buf resume;
    bool started = false, finished = false;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};  // not cleared: pages that no thread reaches cost nothing
};

Warp* warps;
float* shared;
Barrier block_barrier;
int current, alive, idle_switches;

static std::vector<Fibre> fibres;
static const char* failure;
static jmp_buf main_context;
static void (*body)();

[[noreturn]] void fail(const char* message) {
    failure = message;
    _longjmp(main_context, 1);
}

static void switch_to(int next) {
    current = next;
    threadIdx.x = (unsigned)next;
    Fibre& fibre = fibres[next];
    if (fibre.started) _longjmp(fibre.resume, 1);
    fibre.started = true;
    setcontext(&fibre.start);
    abort();
}

static int following() {
    int next = current;
    do next = (next + 1) % (int)fibres.size();
    while (fibres[next].finished);
    return next;
}

void yield() {
    if (++idle_switches > 4 * (int)fibres.size() + 8) fail("a barrier or shuffle that not all threads reach");
    const int self = current;
    if (_setjmp(fibres[self].resume) == 0) switch_to(following());
}

void arrive(Barrier& barrier, int expected) {
    const int generation = barrier.generation;
    if (++barrier.waiting == expected) {
        barrier.waiting = 0;
        ++barrier.generation;
        idle_switches = 0;
        return;
    }
    while (barrier.generation == generation) {
        yield();
        // Threads that left count as arrived at the block's barrier.
        if (&barrier == &block_barrier && barrier.generation == generation && barrier.waiting == alive) {
            barrier.waiting = 0;
            ++barrier.generation;
            idle_switches = 0;
        }
    }
}

static void run_fibre() {
    body();
    fibres[current].finished = true;
    idle_switches = 0;
    if (--alive == 0) _longjmp(main_context, 2);
    switch_to(following());
}

const char* launch(int blocks, int threads, size_t shared_bytes, void (*kernel_body)()) {
    body = kernel_body;
    failure = nullptr;
    fibres = std::vector<Fibre>(threads);
    std::vector<Warp> warps_of_block((threads + 31) / 32);
    std::vector<float> shared_of_block(shared_bytes / sizeof(float) + 4);
    warps = warps_of_block.data();
    shared = shared_of_block.data();
    for (int block = 0; block < blocks; ++block) {
        blockIdx.x = (unsigned)block;
        for (float& value : shared_of_block) value = std::numeric_limits<float>::quiet_NaN();
        for (Warp& warp : warps_of_block) warp = Warp();
        block_barrier = Barrier();
        alive = threads;
        idle_switches = 0;
        for (Fibre& fibre : fibres) {
            fibre.started = fibre.finished = false;
            getcontext(&fibre.start);
            fibre.start.uc_stack.ss_sp = fibre.stack.get();
            fibre.start.uc_stack.ss_size = stack_bytes;
            fibre.start.uc_link = nullptr;
            makecontext(&fibre.start, run_fibre, 0);
        }
        if (_setjmp(main_context) == 0) switch_to(0);
        if (failure) break;
    }
    fibres.clear();  // the library stays loaded; its stacks would add up over the tests of a process
    fibres.shrink_to_fit();
    return failure;
}

}  // namespace shim
