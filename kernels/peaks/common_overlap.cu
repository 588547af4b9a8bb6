// Scores around a peak over one overlap, that of the peak itself: xcorr_app/correlation/common_overlap.py says why. Of the
// two crops that lie on each other at the peak, those at SIDE x SIDE shifts around it. A block takes one shift of one pair:
// its threads sum the lines along the rim that the whole overlap has and the crops have not; one takes these from the sums
// over the whole overlap, which the tables and the given score yield, and writes the score that is left. As given where
// nothing is taken away, or too little is left. Floor: the lines along the rim, from the cache.
// Document: none.
#define NORMALIZE 1
#ifndef WARPS
#define WARPS 2
#endif
#ifndef SIDE
#define SIDE 3
#endif
#define SUMS 5
#include "problem.cuh"
#include "shared_tile.cuh"
#include "zncc.cuh"
#include "warp.cuh"

#define MIN_SHARE 1e-4  // of an overlap's variance that the crops must have

struct Rows {  // or columns, of the right matrix
    int first, last;
    __device__ __forceinline__ int count() const { return last > first ? last - first : 0; }
};

// Of the whole overlap at a shift, and of the crops that lie on each other at shift `peak`, moved by `step` from there.
__device__ __forceinline__ Rows whole(int left, int right, int shift) {
    Rows rows = {max(0, -shift), min(right, left - shift)};
    return rows;
}
__device__ __forceinline__ Rows of_crops(int left, int right, int peak, int step) {
    const Rows at_peak = whole(left, right, peak);
    Rows rows = {max(at_peak.first, at_peak.first - step), min(at_peak.last, at_peak.last - step)};
    return rows;
}

extern "C" __global__ void __launch_bounds__(WARPS * WARP)
    common_overlap(const double* around, const Left* left_images, const Right* right_images, const int* peaks,
                   const Moments* left_tables, const Moments* right_tables, const int* shift_rows,
                   const int* shift_columns, double* scores, PROBLEM_PARAMETERS, NORMALIZER_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);
    const int pair = (int)blockIdx.x / (SIDE * SIDE), place = (int)blockIdx.x % (SIDE * SIDE);
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int step_y = place / SIDE - SIDE / 2, step_x = place % SIDE - SIDE / 2;
    const int peak_y = peaks[2 * pair], peak_x = peaks[2 * pair + 1], dy = peak_y + step_y, dx = peak_x + step_x;
    const double given = around[blockIdx.x];
    const int iy = dy - p.shift_y0, ix = dx - p.shift_x0;
    const bool known = given == given && iy >= 0 && iy < p.shifts_y && ix >= 0 && ix < p.shifts_x;
    const Rows rows = whole(p.left_height, p.right_height, dy), columns = whole(p.left_width, p.right_width, dx);
    const Rows kept = of_crops(p.left_height, p.right_height, peak_y, step_y);
    const Rows kept_columns = of_crops(p.left_width, p.right_width, peak_x, step_x);
    const long long left_over = (long long)rows.count() * columns.count() - (long long)kept.count() * kept_columns.count();
    if (!known || left_over <= 0) {
        if (threadIdx.x == 0) scores[blockIdx.x] = given;
        return;
    }

    const Left* left = left_of(p, left_images, pair);
    const Right* right = right_of(p, right_images, pair);
    double sum[SUMS] = {0.0, 0.0, 0.0, 0.0, 0.0};  // f, f^2, g, g^2, f g
    const auto add = [&](int y, int x) {
        const double f = (double)left[(long long)(y + dy) * p.left_width + x + dx];
        const double g = (double)right[(long long)y * p.right_width + x];
        sum[0] += f;
        sum[1] += f * f;
        sum[2] += g;
        sum[3] += g * g;
        sum[4] += f * g;
    };
    // The rows that the crops have not, whole; of the others the few columns on either side, a thread each, since there
    // a warp that shared a row would wait for the memory as often as there are rows.
    const int common = kept_columns.count() > 0 ? kept.count() : 0, gap = kept_columns.count();
    const int first_common = common > 0 ? kept.first : rows.last;
    for (int k = 0; k < rows.count() - common; ++k) {
        const int y = rows.first + k, below = y >= first_common ? common : 0;
        for (int x = columns.first + (int)threadIdx.x; x < columns.last; x += WARPS * WARP) add(y + below, x);
    }
    const int beside = columns.count() - gap;
    for (int k = (int)threadIdx.x; k < beside * common; k += WARPS * WARP) {
        const int x = columns.first + k % beside;
        add(first_common + k / beside, x >= kept_columns.first ? x + gap : x);
    }
#pragma unroll
    for (int kind = 0; kind < SUMS; ++kind) {
#pragma unroll
        for (int distance = WARP / 2; distance > 0; distance /= 2)
            sum[kind] += __shfl_xor_sync(ALL_LANES, sum[kind], distance);
        if (lane == 0) of_warps[warp * SUMS + kind] = sum[kind];
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int kind = 0; kind < SUMS; ++kind) {
        sum[kind] = 0.0;
        for (int w = 0; w < WARPS; ++w) sum[kind] += of_warps[w * SUMS + kind];
    }
    const auto score = SCORE_OF_PAIR(p, pair);
    const auto line = score.line(iy);
    const double whole_count = (double)line.overlap.elements(ix), n = whole_count - (double)left_over;
    const Moments f = line.overlap.of_left(ix), g = line.overlap.of_right(ix);
    const double f_variance = f.squares - f.sum * f.sum / whole_count, g_variance = g.squares - g.sum * g.sum / whole_count;
    const double product = given * sqrt(fmax(f_variance, 0.0) * fmax(g_variance, 0.0)) + f.sum * g.sum / whole_count;
    const double f_sum = f.sum - sum[0], g_sum = g.sum - sum[2];
    const double of_f = f.squares - sum[1] - f_sum * f_sum / fmax(n, 1.0);
    const double of_g = g.squares - sum[3] - g_sum * g_sum / fmax(n, 1.0);
    double found = given;
    if (n > 1 && of_f > MIN_SHARE * f_variance && of_g > MIN_SHARE * g_variance)
        found = fmin(1.0, fmax(-1.0, (product - sum[4] - f_sum * g_sum / n) / sqrt(of_f * of_g)));
    scores[blockIdx.x] = found;
}
