// Scores for checking a measured shift, directly from the definition: at each of the 5 x 5 shifts around it the zero-mean
// normalised correlation by the sums of f, f^2, g, g^2 and f g over the overlap, where f = left[y + dy][x + dx] and
// g = right[y][x], in double precision; NaN where fewer than `fewest` pixels overlap, or their variance may be rounding.
//
// A block takes one pair. Where all 25 overlaps have a pixel, which is all of them but a rim four pixels wide, a thread
// walks down a column of g: the five rows of g that pair with a row of f stay in registers, so that five f and one new g
// make 25 products, and the other sums are the same for all shifts. The rim is added up shift by shift. It shares no code with
// the kernels whose results it checks.
//
// Document: none; Lewis 1995, "Fast normalized cross-correlation", for the purpose of the sums. Floor: one read of both
// images; six loads a pixel from the first-level cache, 29 operations in double precision.
#include "problem.cuh"
#include "warp.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#define SIDE 5
#define REACH (SIDE / 2)
#define SHIFTS (SIDE * SIDE)
#define KINDS 5
#define AHEAD 5  // rows of a right matrix that are loaded before the first of them is used
#define NO_VARIANCE 1e-12  // variance, as a share of the largest sum of squares around the peak, that may be rounding
#define SUMS (SHIFTS + 4)  // products; then of f, f^2, g and g^2 what all shifts have in common
#define SLICES (32 * WARPS / SHIFTS)  // threads that share a shift's rim

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    around_peak(const double* lefts, const double* rights, const int* peaks, double* scores, int left_count, int height,
                int width, int fewest) {
    SHARED_FLOATS(shared);
    double(*const of_warps)[SUMS] = reinterpret_cast<double(*)[SUMS]>(shared);
    double(*const of_rim)[KINDS] = reinterpret_cast<double(*)[KINDS]>(of_warps + WARPS);
    const int thread = (int)threadIdx.x, pair = (int)blockIdx.x;
    const int dy = peaks[2 * pair], dx = peaks[2 * pair + 1];
    const long long pixels = (long long)height * width;
    const double* left = lefts + (left_count > 1 ? pair * pixels : 0);
    const double* right = rights + pair * pixels;

    // Place (y, x) stands for g there and for f at (y + dy, x + dx). All that any overlap has, and of these the inner
    // ones, which all have: neighbours two pixels away lie within both images.
    const int top = max(-REACH, -dy - REACH), bottom = max(top, min(height, height - dy) + REACH);
    const int first = max(-REACH, -dx - REACH), last = max(first, min(width, width - dx) + REACH);
    const bool any = bottom - top > 4 * REACH && last - first > 4 * REACH;
    const int inner_top = any ? top + 2 * REACH : bottom, inner_bottom = any ? bottom - 2 * REACH : bottom;
    const int inner_first = first + 2 * REACH, inner_last = last - 2 * REACH;

    double product[SIDE][SIDE], of_f = 0.0, of_ff = 0.0, of_g = 0.0, of_gg = 0.0;
#pragma unroll
    for (int k = 0; k < SHIFTS; ++k) product[k / SIDE][k % SIDE] = 0.0;
    if (inner_top < inner_bottom)
        for (int x = inner_first + thread; x < inner_last; x += 32 * WARPS) {
            double g[SIDE];  // rows y - 2 ... y + 2; zero where they are not inner ones
#pragma unroll
            for (int i = 0; i < SIDE; ++i) g[i] = 0.0;
            // Row y of f pairs with row y - i of g at shift i; f is read where a row of g within reach is an inner one.
            const int end = inner_bottom + REACH;
            for (int begin = inner_top - REACH; begin < end; begin += AHEAD) {
                double fresh[AHEAD];  // under way together: right matrices come from device memory
#pragma unroll
                for (int k = 0; k < AHEAD; ++k) {
                    const int next = begin + k + REACH;
                    fresh[k] = next < inner_bottom ? right[(long long)next * width + x] : 0.0;
                }
#pragma unroll
                for (int k = 0; k < AHEAD; ++k) {
                    const int y = begin + k;
                    if (y >= end) break;
                    const double* f_row = left + (long long)(y + dy) * width + x + dx;
#pragma unroll
                    for (int i = 0; i + 1 < SIDE; ++i) g[i] = g[i + 1];
                    g[SIDE - 1] = fresh[k];
                    of_g += g[SIDE - 1];
                    of_gg += g[SIDE - 1] * g[SIDE - 1];
#pragma unroll
                    for (int j = 0; j < SIDE; ++j) {
                        const double f = f_row[j - REACH];
#pragma unroll
                        for (int i = 0; i < SIDE; ++i) product[i][j] += f * g[SIDE - 1 - i];
                        if (j == REACH && inner_top <= y && y < inner_bottom) {
                            of_f += f;
                            of_ff += f * f;
                        }
                    }
                }
            }
        }
    const double common[4] = {of_f, of_ff, of_g, of_gg};
#pragma unroll
    for (int k = 0; k < SUMS; ++k) {
        double sum = k < SHIFTS ? product[k / SIDE % SIDE][k % SIDE] : common[k < SHIFTS ? 0 : k - SHIFTS];
        sum = warp_sum(sum);
        if (thread % WARP == 0) of_warps[thread / WARP][k] = sum;
    }

    // The rim, or everything where nothing is inside.
    const int slice = thread / SHIFTS, shift = thread % SHIFTS;
    const int i = shift / SIDE - REACH, j = shift % SIDE - REACH;
    double rim[KINDS] = {0.0, 0.0, 0.0, 0.0, 0.0};
    const auto add = [&](int y, int x) {
        const bool is_g = (unsigned)y < (unsigned)height && (unsigned)x < (unsigned)width;
        if (is_g && (unsigned)(y + dy + i) < (unsigned)height && (unsigned)(x + dx + j) < (unsigned)width) {
            const double g = right[(long long)y * width + x];
            rim[2] += g;
            rim[3] += g * g;
            rim[4] += g * left[(long long)(y + dy + i) * width + x + dx + j];
        }
        const bool is_f = (unsigned)(y + dy) < (unsigned)height && (unsigned)(x + dx) < (unsigned)width;
        if (is_f && (unsigned)(y - i) < (unsigned)height && (unsigned)(x - j) < (unsigned)width) {
            const double f = left[(long long)(y + dy) * width + x + dx];
            rim[0] += f;
            rim[1] += f * f;
        }
    };
    if (slice < SLICES) {
        for (int y = top; y < bottom; ++y) {
            if (inner_top <= y && y < inner_bottom) continue;
            for (int x = first + slice; x < last; x += SLICES) add(y, x);
        }
        for (int y = inner_top + slice; y < inner_bottom; y += SLICES)
            for (int k = 0; k < 2 * REACH; ++k) {
                add(y, first + k);
                add(y, inner_last + k);
            }
#pragma unroll
        for (int k = 0; k < KINDS; ++k) of_rim[thread][k] = rim[k];
    }
    __syncthreads();
    double total[KINDS];
    if (thread < SHIFTS) {
#pragma unroll
        for (int kind = 0; kind < KINDS; ++kind) {
            total[kind] = 0.0;
            for (int k = 0; k < SLICES; ++k) total[kind] += of_rim[k * SHIFTS + thread][kind];
            for (int k = 0; k < WARPS; ++k) total[kind] += of_warps[k][kind < KINDS - 1 ? SHIFTS + kind : thread];
        }
    }
    __syncthreads();
    if (thread < SHIFTS) {  // the squares, for all to see
        of_warps[0][thread] = total[1];
        of_warps[1][thread] = total[3];
    }
    __syncthreads();
    if (thread >= SHIFTS) return;
    double largest_f = 0.0, largest_g = 0.0;
    for (int k = 0; k < SHIFTS; ++k) {
        largest_f = fmax(largest_f, of_warps[0][k]);
        largest_g = fmax(largest_g, of_warps[1][k]);
    }
    const int rows = height - abs(dy + i), columns = width - abs(dx + j);
    const long long n = rows > 0 && columns > 0 ? (long long)rows * columns : 0;
    const double count = n > 0 ? (double)n : 1.0;
    const double vary_f = total[1] - total[0] * total[0] / count, vary_g = total[3] - total[2] * total[2] / count;
    const bool counts = n >= fewest && vary_f > NO_VARIANCE * largest_f && vary_g > NO_VARIANCE * largest_g;
    const double covary = total[4] - total[0] * total[2] / count;
    scores[(long long)pair * SHIFTS + thread] =
        counts ? covary / sqrt(vary_f * vary_g) : (double)__int_as_float(0x7fffffff);
}
