// What the tiles of a frame say about its shift, by the sums over each that tile_sums.cu leaves: which agree and which
// differ (xcorr_app/registration/parts/tiles.py, _judged), what share of them resembles the reference at all, and by how much
// turning, scale and shear move the edge of the frame against its centre (xcorr_app/registration/parts/tile_agreement.py,
// edge_offsets). Those files say why. A block takes one frame, a thread every THREADS-th of its tiles; all in double
// precision and in a fixed order. Floor: one read of the sums; the time of a launch, as frames looked at are few.
// Document: none; Lucas and Kanade 1981 for displacements by slopes.
#include "problem.cuh"
#include "numbers.cuh"
#include "warp.cuh"

#ifndef UNSHARED  // the callers define them, xcorr_app/registration/parts/tiles.py and tile_agreement.py
#define UNSHARED 0.3
#define DEVIATIONS 6.0
#define MIN_SHOWN 0.02
#define ALIKE 0.3
#define MIN_OFFSET 0.1
#define SPREAD 6.0
#define FARTHEST 1.0
#define FEWEST_TOLD 8
#define NEARLY_ALL 0.85
#define MIN_CHI_SQUARED 40.0
#define RIDGE 1e-9
#define FEWEST_TILES 12
#define CORRELATED 14.0  // bins, where they are smoothed
#endif
#define THREADS 256
#define SOME_WARPS (THREADS / WARP)
#define NUMBERS 6  // of a linear motion: shift, and what changes along rows and columns
#define PAIRS 21   // of them
#define MAX_SUMS (PAIRS + NUMBERS)
#define KEPT 18    // of each tile: displacement, its chi squared, what it says; bins and means around it
#define FIRST_MEAN 5
enum { BINS = -1, F, G, R, FF, GG, RR, YY, YX, XX, YR, XR, Y, X };
enum { SILENT, AGREES, DIFFERS };

__device__ __forceinline__ double larger(double a, double b) { return a != a || a > b ? a : b; }  // NaN if either is
__device__ __forceinline__ double smaller(double a, double b) { return a != a || a < b ? a : b; }

// Sums of COUNT values over the block, for all threads to see in `into`.
template <int COUNT>
__device__ __forceinline__ void sum_of_block(const double* own, double* of_warps, double* into) {
    const int thread = (int)threadIdx.x;
#pragma unroll
    for (int k = 0; k < COUNT; ++k) {
        double sum = own[k];
        sum = warp_sum(sum);
        if (thread % WARP == 0) of_warps[thread / WARP * MAX_SUMS + k] = sum;
    }
    __syncthreads();
    if (thread < COUNT) {
        double total = 0.0;
        for (int w = 0; w < SOME_WARPS; ++w) total += of_warps[w * MAX_SUMS + thread];
        into[thread] = total;
    }
    __syncthreads();
}

// The median of the values (tiles of the frame, KEPT apart) that count, in `found`, for all threads; NaN of none.
__device__ void median(const double* values, const double* says, int tiles, double* found) {
    const int thread = (int)threadIdx.x;
    if (thread < 2) found[thread] = no_number();
    __syncthreads();
    for (int i = thread; i < tiles; i += THREADS) {
        if (says[KEPT * i] != AGREES) continue;
        const double value = values[KEPT * i];
        int before = 0, count = 0;
        for (int j = 0; j < tiles; ++j) {
            if (says[KEPT * j] != AGREES) continue;
            const double other = values[KEPT * j];
            ++count;
            before += other < value || (other == value && j < i);
        }
        if (before == (count - 1) / 2) found[0] = value;
        if (before == count / 2) found[1] = value;
    }
    __syncthreads();
}

// Solves matrix x = right for COUNT columns of `right`, by elimination with the largest pivot of each column.
template <int SIZE, int COUNT>
__device__ void solve(double (*matrix)[SIZE], double (*right)[COUNT]) {
    for (int column = 0; column < SIZE; ++column) {
        int pivot = column;
        for (int row = column + 1; row < SIZE; ++row)
            if (fabs(matrix[row][column]) > fabs(matrix[pivot][column])) pivot = row;
        for (int k = 0; k < SIZE; ++k) {
            const double value = matrix[column][k];
            matrix[column][k] = matrix[pivot][k];
            matrix[pivot][k] = value;
        }
        for (int k = 0; k < COUNT; ++k) {
            const double value = right[column][k];
            right[column][k] = right[pivot][k];
            right[pivot][k] = value;
        }
        for (int row = 0; row < SIZE; ++row) {
            if (row == column) continue;
            const double factor = matrix[row][column] / matrix[column][column];
            for (int k = column; k < SIZE; ++k) matrix[row][k] -= factor * matrix[column][k];
            for (int k = 0; k < COUNT; ++k) right[row][k] -= factor * right[column][k];
        }
    }
    for (int row = 0; row < SIZE; ++row)
        for (int k = 0; k < COUNT; ++k) right[row][k] /= matrix[row][row];
}

// Of one tile: weighted normal equations of its displacement, and the place that goes with the six numbers.
struct Equations {
    double a, b, c, p, q, place[3];
};

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    tile_verdict(const double* sums, const int* shifts, const double* offsets, const double* of_frames,
                 const double* of_references, double* workspace, double* found, int count, int references, int height,
                 int width, int size, int rows, int columns, int smoothed) {
    SHARED_FLOATS(shared);
    double* of_warps = reinterpret_cast<double*>(shared);  // [SOME_WARPS][MAX_SUMS]
    double* total = of_warps + SOME_WARPS * MAX_SUMS;      // [MAX_SUMS]
    double* numbers = total + MAX_SUMS;                    // [NUMBERS]
    // What one thread solves with; in registers it would have to be unrolled.
    double(*const matrix)[NUMBERS] = reinterpret_cast<double(*)[NUMBERS]>(numbers + NUMBERS);
    double(*const inverse)[NUMBERS] = matrix + NUMBERS;
    double(*const half)[NUMBERS] = inverse + NUMBERS;
    double(*const covariance)[4] = reinterpret_cast<double(*)[4]>(half + NUMBERS);
    double(*const linear)[1] = reinterpret_cast<double(*)[1]>(covariance + 4);
    const int frame = (int)blockIdx.x, thread = (int)threadIdx.x, tiles = rows * columns, bins = size / 2 * (size / 2);
    const int dy = shifts[2 * frame], dx = shifts[2 * frame + 1];
    const double of_noise = smoothed ? CORRELATED : 1.0;  // bins that the noise of one reaches
    const double of_frame = of_frames[3 * frame + 2], of_reference = of_references[references > 1 ? 3 * frame + 2 : 2];
    const double noise = (of_frame + of_reference) / (smoothed ? 2 * CORRELATED : 1.0);
    const bool known = offsets[2 * frame] == offsets[2 * frame];
    double* said = found + (long long)frame * (tiles + 3);  // of tiles; then the share, the edge, and the largest noise
    double* kept = workspace + (long long)frame * tiles * KEPT;
    const auto of_tile = [&](int kind, int tile) { return sums[((long long)kind * count + frame) * tiles + tile]; };
    const auto covers_row = [&](int y) {
        return y >= 0 && y < rows && y * size >= max(dy, 0) && (y + 1) * size <= height + min(dy, 0);
    };
    const auto covers_column = [&](int x) {
        return x >= 0 && x < columns && x * size >= max(dx, 0) && (x + 1) * size <= width + min(dx, 0);
    };
    const auto covers = [&](int tile) { return covers_row(tile / columns) && covers_column(tile % columns); };

    // Means over 3 x 3 tiles with weights 1/4, 1/2, 1 outwards in; and the most that any tile shows.
    double max_shown = 0.0, own[MAX_SUMS];
    for (int tile = thread; tile < tiles; tile += THREADS) {
        const int row = tile / columns, column = tile % columns;
        bool counts[3][3];
#pragma unroll
        for (int i = 0; i < 3; ++i)
#pragma unroll
            for (int j = 0; j < 3; ++j) counts[i][j] = covers_row(row + i - 1) && covers_column(column + j - 1);
        double* mean = kept + KEPT * tile + FIRST_MEAN;
        double n = 1.0;
#pragma unroll 1
        for (int kind = BINS; kind <= X; ++kind) {
            double lines[3];
#pragma unroll
            for (int j = 0; j < 3; ++j) {
                double line[3];
#pragma unroll
                for (int i = 0; i < 3; ++i) {
                    line[i] = 0.0;
                    if (counts[i][j]) line[i] = kind == BINS ? (double)bins : of_tile(kind, tile + (i - 1) * columns + j - 1);
                }
                lines[j] = line[1] + (line[0] + line[2]) / 2;
            }
            const double sum = lines[1] + (lines[0] + lines[2]) / 2;
            if (kind == BINS) n = fmax(sum, 1.0);
            mean[kind] = kind == BINS ? n : sum / n;
        }
        const double shown = (mean[FF] - mean[F] * mean[F] + mean[GG] - mean[G] * mean[G]) / 2 - noise / 2;
        max_shown = larger(max_shown, larger(shown, 0.0));
    }
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        max_shown = larger(max_shown, __shfl_xor_sync(ALL_LANES, max_shown, distance));
    if (thread % WARP == 0) of_warps[thread / WARP] = max_shown;
    __syncthreads();
    for (int w = 0; w < SOME_WARPS; ++w) max_shown = larger(max_shown, of_warps[w]);
    __syncthreads();

    own[0] = own[1] = own[2] = own[3] = 0.0;
    for (int tile = thread; tile < tiles; tile += THREADS) {
        const double* mean = kept + KEPT * tile + FIRST_MEAN;
        const double n = mean[BINS], of_f = mean[FF] - mean[F] * mean[F],
                     of_g = mean[GG] - mean[G] * mean[G];
        const double unshared = mean[RR] - mean[R] * mean[R];
        const double p = mean[YR] - mean[Y] * mean[R], q = mean[XR] - mean[X] * mean[R];
        const double a = mean[YY], b = mean[YX], c = mean[XX], determinant = a * c - b * b;
        const bool regular = determinant > 1e-6 * (a + c) * (a + c);
        const double y = regular ? (c * p - b * q) / determinant : 0.0, x = regular ? (a * q - b * p) / determinant : 0.0;
        const double explained = p * y + q * x, shown = larger((of_f + of_g) / 2 - noise / 2, 0.0);
        const double beyond = (unshared - explained - noise) / 2;
        const double min_certain = DEVIATIONS * noise * sqrt(of_noise / n) * sqrt(0.5);
        const bool says = covers(tile) && shown > min_certain && shown > MIN_SHOWN * max_shown;
        const bool differs = beyond > UNSHARED * shown && beyond > min_certain;
        const double shared_there = says ? of_f + of_g - unshared : 0.0;
        const bool alike = shared_there > 2 * ALIKE * sqrt(larger(of_f * of_g, 0.0));
        kept[KEPT * tile] = y;
        kept[KEPT * tile + 1] = x;
        kept[KEPT * tile + 2] = explained * n / (noise * of_noise + 1e-30);
        kept[KEPT * tile + 3] = says ? differs ? DIFFERS : AGREES : SILENT;
        own[0] += says;
        own[1] += alike;
        own[2] += known && covers(tile);
        own[3] += shared_there > 0.0;
    }
    sum_of_block<4>(own, of_warps, total);
    const double told = total[0], taken = total[2], resembling = total[total[3] >= NEARLY_ALL * told ? 3 : 1];
    __syncthreads();

    // Tiles displaced against most others by more than these scatter differ too.
    median(kept, kept + 3, tiles, total);
    const double middle_y = (total[0] + total[1]) / 2;
    __syncthreads();
    median(kept + 1, kept + 3, tiles, total);
    const double middle_x = (total[0] + total[1]) / 2;
    __syncthreads();
    for (int tile = thread; tile < tiles; tile += THREADS)
        kept[KEPT * tile] = hypot(kept[KEPT * tile] - middle_y, kept[KEPT * tile + 1] - middle_x);
    __syncthreads();
    median(kept, kept + 3, tiles, total);
    const double min_distance = larger(MIN_OFFSET, smaller(SPREAD * (total[0] + total[1]) / 2, FARTHEST));
    __syncthreads();
    for (int tile = thread; tile < tiles; tile += THREADS) {
        const double* own_of = kept + KEPT * tile;
        const bool apart = own_of[0] > min_distance && own_of[2] > DEVIATIONS * DEVIATIONS;
        const bool agrees = own_of[3] == AGREES && !apart;
        said[tile] = !known || own_of[3] == SILENT ? no_number() : agrees ? 1.0 : 0.0;
    }
    if (thread == 0) said[tiles] = known && told >= FEWEST_TOLD ? resembling / fmax(told, 1.0) : no_number();

    // A motion linear in the place, half a side being one, by least squares over tiles, none of which counts for much
    // more than the others; and how sure it is, by what it leaves in each.
    const auto slopes_of = [&](int tile) {
        const double gy = of_tile(Y, tile) / bins, gx = of_tile(X, tile) / bins, rest = of_tile(R, tile) / bins;
        Equations e = {0.0, 0.0, 0.0, 0.0, 0.0, {0.0, 0.0, 0.0}};
        if (!known || !covers(tile)) return e;
        e.a = of_tile(YY, tile) / bins - gy * gy;
        e.b = of_tile(YX, tile) / bins - gy * gx;
        e.c = of_tile(XX, tile) / bins - gx * gx;
        e.p = of_tile(YR, tile) / bins - gy * rest;
        e.q = of_tile(XR, tile) / bins - gx * rest;
        return e;
    };
    own[0] = 0.0;
    for (int tile = thread; tile < tiles; tile += THREADS) {
        const Equations e = slopes_of(tile);
        own[0] += e.a + e.c;
    }
    sum_of_block<1>(own, of_warps, total);
    const double mean_shown = total[0] / tiles;
    __syncthreads();
    const auto equations = [&](int tile) {
        Equations e = slopes_of(tile);
        const double weight = 1 / fmax(e.a + e.c + mean_shown, 1e-300);
        e.a *= weight;
        e.b *= weight;
        e.c *= weight;
        e.p *= weight;
        e.q *= weight;
        e.place[0] = 1.0;
        e.place[1] = ((tile / columns + 0.5) * size - height / 2.0) / (height / 2.0);
        e.place[2] = ((tile % columns + 0.5) * size - width / 2.0) / (width / 2.0);
        return e;
    };
#pragma unroll
    for (int k = 0; k < MAX_SUMS; ++k) own[k] = 0.0;
    for (int tile = thread; tile < tiles; tile += THREADS) {
        const Equations e = equations(tile);
        int at = 0;
#pragma unroll
        for (int k = 0; k < NUMBERS; ++k) {
#pragma unroll
            for (int l = k; l < NUMBERS; ++l) {
                const double pair = k % 2 != l % 2 ? e.b : k % 2 ? e.c : e.a;
                own[at++] += pair * e.place[k / 2] * e.place[l / 2];
            }
            own[PAIRS + k] += (k % 2 ? e.q : e.p) * e.place[k / 2];
        }
    }
    sum_of_block<MAX_SUMS>(own, of_warps, total);
    bool solvable = false;
    if (thread == 0) {
        double trace = 0.0;
        for (int k = 0, at = 0; k < NUMBERS; ++k)
            for (int l = k; l < NUMBERS; ++l) matrix[k][l] = matrix[l][k] = total[at++];
        for (int k = 0; k < NUMBERS; ++k) trace += matrix[k][k];
        for (int k = 0; k < NUMBERS; ++k) matrix[k][k] += RIDGE * trace;
        for (int k = 0; k < NUMBERS; ++k)
            for (int l = 0; l < NUMBERS; ++l) inverse[k][l] = k == l;
        solvable = taken >= FEWEST_TILES && trace > 0 && trace - trace == 0.0;
        if (solvable) solve<NUMBERS, NUMBERS>(matrix, inverse);
        for (int k = 0; k < NUMBERS; ++k) {
            numbers[k] = 0.0;
            for (int l = 0; l < NUMBERS; ++l) numbers[k] += inverse[k][l] * total[PAIRS + l];
        }
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < PAIRS; ++k) own[k] = 0.0;
    for (int tile = thread; tile < tiles; tile += THREADS) {
        const Equations e = equations(tile);
        double y = 0.0, x = 0.0, score[NUMBERS];
#pragma unroll
        for (int k = 0; k < 3; ++k) {
            y += e.place[k] * numbers[2 * k];
            x += e.place[k] * numbers[2 * k + 1];
        }
        const double left_y = e.p - e.a * y - e.b * x, left_x = e.q - e.b * y - e.c * x;
#pragma unroll
        for (int k = 0; k < NUMBERS; ++k) score[k] = (k % 2 ? left_x : left_y) * e.place[k / 2];
        int at = 0;
#pragma unroll
        for (int k = 0; k < NUMBERS; ++k)
#pragma unroll
            for (int l = k; l < NUMBERS; ++l) own[at++] += score[k] * score[l];
    }
    sum_of_block<PAIRS>(own, of_warps, total);
    if (thread > 0) return;
    double edge = 0.0;
    if (solvable) {
        // Covariance: inverse times scores times inverse, of which the part beside the shift is needed.
        for (int k = 0; k < NUMBERS; ++k)
            for (int l = 0; l < NUMBERS; ++l) {
                half[k][l] = 0.0;
                for (int m = 0; m < NUMBERS; ++m) {
                    const int low = min(m, l), high = max(m, l);
                    half[k][l] += inverse[k][m] * total[low * NUMBERS - low * (low - 1) / 2 + high - low];
                }
            }
        for (int k = 0; k < 4; ++k) {
            for (int l = 0; l < 4; ++l) {
                covariance[k][l] = k == l ? 1e-300 : 0.0;
                for (int m = 0; m < NUMBERS; ++m)
                    covariance[k][l] += half[k + 2][m] * inverse[m][l + 2] * (taken / (taken - NUMBERS));
            }
            linear[k][0] = numbers[k + 2];
        }
        solve<4, 1>(covariance, linear);
        double chi_squared = 0.0;
        for (int k = 0; k < 4; ++k) chi_squared += numbers[k + 2] * linear[k][0];
        if (!(chi_squared < MIN_CHI_SQUARED))
            edge = fmax(hypot(numbers[2], numbers[3]), hypot(numbers[4], numbers[5]));
    }
    said[tiles + 1] = edge;
    said[tiles + 2] = fmax(of_frame, of_reference);
}
