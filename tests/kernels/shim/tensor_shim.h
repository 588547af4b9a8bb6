// What half_product.cuh does by instructions of the device, on the host. Included by cuda_shim.h.
#pragma once

inline float host_half(float value) { return (float)(_Float16)value; }
inline unsigned host_half_pair(float first, float second) {
    const _Float16 pair[2] = {(_Float16)first, (_Float16)second};
    unsigned word;
    std::memcpy(&word, pair, sizeof word);
    return word;
}
inline float host_half_of(unsigned word, int which) {
    _Float16 pair[2];
    std::memcpy(pair, &word, sizeof word);
    return (float)pair[which];
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

// The word of B's fragment that this lane would hold, of the eight columns from `first` on: chunk 0 or 1.
inline unsigned host_column_word(const unsigned* b, int chunk, int first, int which) {
    const int lane = shim::current % 32;
    return b[which * (chunk / 4) + (first + lane / 4) * 4 + lane % 4];
}
