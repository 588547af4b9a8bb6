// Makes a shared library of one kernel's own source: -DKERNEL_FILE="path.cu" -DKERNEL_ENTRY=name.
#include "cuda_shim.h"

#include KERNEL_FILE

#include <utility>

static void* const* pointers;
static const int* numbers;

// Pointers, and structs, which come as arrays that hold them; the rest are integers.
template <typename T>
constexpr bool is_array = std::is_pointer_v<T> || std::is_class_v<T>;

// The argument with so many of its own kind before it.
template <typename T>
static T argument(int before) {
    if constexpr (std::is_pointer_v<T>)
        return (T)pointers[before];
    else if constexpr (std::is_class_v<T>)
        return *(const T*)pointers[before];
    else
        return (T)numbers[before];
}

template <typename... Arguments>
constexpr int of_its_kind_before(size_t place) {
    constexpr bool array[] = {is_array<Arguments>..., false};
    int same = 0;
    for (size_t other = 0; other < place; ++other) same += array[other] == array[place];
    return same;
}

template <typename... Arguments, size_t... Places>
static void call(void (*kernel)(Arguments...), std::index_sequence<Places...>) {
    kernel(argument<Arguments>(of_its_kind_before<Arguments...>(Places))...);
}

template <typename... Arguments>
static void call(void (*kernel)(Arguments...)) {
    call(kernel, std::index_sequence_for<Arguments...>());
}

extern "C" __attribute__((visibility("default"))) const char* shim_run(int blocks, int threads, size_t shared_bytes,
                                                                       void* const* arrays, const int* arguments) {
    pointers = arrays;
    numbers = arguments;
    return shim::launch(blocks, threads, shared_bytes, [] { call(KERNEL_ENTRY); });
}
