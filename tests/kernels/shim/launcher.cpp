// Makes a shared library of one kernel's own source: -DKERNEL_FILE="path.cu" -DKERNEL_ENTRY=name.
#include "cuda_shim.h"

#include KERNEL_FILE

#include <tuple>
#include <utility>

static void* const* pointers;
static const int* numbers;

template <typename T>
static T next_argument() {
    if constexpr (std::is_pointer_v<T>)
        return (T)*pointers++;
    else if constexpr (std::is_class_v<T>)  // a struct by value comes as an array that holds it
        return *(const T*)*pointers++;
    else
        return (T)*numbers++;
}

template <typename... Arguments>
static void call(void (*kernel)(Arguments...)) {
    std::tuple<Arguments...> values{next_argument<Arguments>()...};  // braces: evaluated from left to right
    std::apply(kernel, values);
}

static void* const* first_pointer;
static const int* first_number;

extern "C" const char* shim_run(int blocks, int threads, size_t shared_bytes, void* const* arrays, const int* arguments) {
    first_pointer = arrays;
    first_number = arguments;
    return shim::launch(blocks, threads, shared_bytes, [] {
        pointers = first_pointer;
        numbers = first_number;
        call(KERNEL_ENTRY);
    });
}
