// What half_product.cuh, byte_product.cuh and half_parts.cuh do by instructions of the device, on the host. Included by cuda_shim.h.
#ifndef TENSOR_SHIM_H
#define TENSOR_SHIM_H

inline float host_half(float value) { return (float)(_Float16)value; }
inline unsigned host_half_pair(float first, float second) {
    const _Float16 pair[2] = {(_Float16)first, (_Float16)second};
    unsigned word;
    std::memcpy(&word, pair, sizeof word);
    return word;
}
// By its bits: without an instruction for it the compiler calls a function, which took half the time of these tests.
inline float host_half_of(unsigned word, int which) {
    const unsigned half = word >> 16 * which & 0xffffu, magnitude = half & 0x7fffu;
    unsigned bits = magnitude << 13;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f;  // the exponents' offsets differ by 112; exact, also below the normal numbers
    if (magnitude >= 0x7c00u) {
        bits |= 0x7f800000u;
        std::memcpy(&value, &bits, sizeof value);
    }
    return half & 0x8000u ? -value : value;
}

// What half_parts.cuh does by an instruction of the device.
inline int host_largest_of_warp(int number) {
    const int* numbers = shim::gather(number);
    int largest = numbers[0];
    for (int lane = 1; lane < 32; ++lane) largest = numbers[lane] > largest ? numbers[lane] : largest;
    return largest;
}

inline void host_load_matrices(const unsigned* row, unsigned (&matrix)[4]) {
    const unsigned* const* rows = shim::gather(row);
    const int lane = shim::current % 32;
    for (int i = 0; i < 4; ++i) matrix[i] = rows[8 * i + lane / 4][lane % 4];
}

inline void host_multiply_add_halves(float (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                     unsigned b1) {
    struct Fragments {
        unsigned a[4], b[2];
    };
    const Fragments* of = shim::gather(Fragments{{a0, a1, a2, a3}, {b0, b1}});
    const int lane = shim::current % 32;
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4, upper = i / 2, column = lane % 4 * 2 + i % 2;
        double exact = 0;
        for (int k = 0; k < 16; ++k) {
            const int owner = k % 8 / 2, far = k / 8;
            exact += (double)host_half_of(of[4 * row + owner].a[upper + 2 * far], k % 2) *
                     host_half_of(of[4 * column + owner].b[far], k % 2);
        }
        sum[i] = (float)(sum[i] + exact);
    }
}

// A byte of a word, as a signed number or not.
inline int host_byte(unsigned word, int which, bool is_signed) {
    const unsigned byte = word >> 8 * which & 255;
    return is_signed && byte > 127 ? (int)byte - 256 : (int)byte;
}

inline void host_multiply_add_bytes(int (&sum)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                                    unsigned b1, bool signed_a = false, bool signed_b = false) {
    struct Fragments {
        unsigned a[4], b[2];
    };
    const Fragments* of = shim::gather(Fragments{{a0, a1, a2, a3}, {b0, b1}});
    const int lane = shim::current % 32;
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4, upper = i / 2, column = lane % 4 * 2 + i % 2;
        unsigned total = (unsigned)sum[i];  // as there, what passes 2^31 begins again below zero
        for (int k = 0; k < 32; ++k) {
            const int owner = k % 16 / 4, far = k / 16;
            total += (unsigned)(host_byte(of[4 * row + owner].a[upper + 2 * far], k % 4, signed_a) *
                                host_byte(of[4 * column + owner].b[far], k % 4, signed_b));
        }
        sum[i] = (int)total;
    }
}

// The word of B's fragment that this lane would hold, of the eight columns from `first` on: chunk 0 or 1.
inline unsigned host_column_word(const unsigned* b, int chunk, int first, int which) {
    const int lane = shim::current % 32;
    return b[which * (chunk / 4) + (first + lane / 4) * 4 + lane % 4];
}

// What split_product.cuh does by an instruction of the device: the lower 13 bits do not count.
inline double host_tf32(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    bits &= 0xffffe000u;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// A sum as tensor cores form it: what lies below the largest term's 24 bits and one more (sm_80; later ones keep two) is cut
// off every term, and what a float does not hold off their sum.
inline float host_cut_sum(const double (&terms)[9]) {
    double largest = 0, total = 0;
    for (double term : terms) largest = std::fmax(largest, std::fabs(term));  // not a NaN
    if (!(largest > 0 && std::isfinite(largest))) {
        for (double term : terms) total += term;
        return (float)total;
    }
    const double unit = std::ldexp(1.0, std::ilogb(largest) - 24);
    for (double term : terms) total += std::trunc(term / unit) * unit;
    const float nearest = (float)total;
    return std::fabs((double)nearest) > std::fabs(total) ? std::nextafter(nearest, 0.0f) : nearest;
}

inline void host_multiply_add_tf32(float (&sum)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
    struct Fragments {
        float a[4], b[2];
    };
    const Fragments* of = shim::gather(Fragments{{a0, a1, a2, a3}, {b0, b1}});
    const int lane = shim::current % 32;
    for (int i = 0; i < 4; ++i) {
        const int row = lane / 4, lower = i / 2, column = lane % 4 * 2 + i % 2;
        double terms[9] = {sum[i]};
        for (int k = 0; k < 8; ++k)
            terms[1 + k] = host_tf32(of[4 * row + k % 4].a[lower + 2 * (k / 4)]) * host_tf32(of[4 * column + k % 4].b[k / 4]);
        sum[i] = host_cut_sum(terms);
    }
}

#endif
