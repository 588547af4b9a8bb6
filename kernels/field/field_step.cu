// One step of Gauss-Newton for the field of every frame, from the sums of slope_sums.cu: a block takes one frame.
//
//     (N / v + P / t^2) e = sum G B r / v + P d / t^2
//
// is solved by modes in which both matrices are diagonal (xcorr_app/registration/motion/field_fit.py): N is that of the
// reference, so that frames share the modes and a step is two products of a matrix and a vector. Then t, the expected
// bend of the frame, follows by the evidence, and a frame is settled where its nodes hardly change. The bending P is a
// sum of three products of a matrix of the rows and one of the columns.
//
// `begins` 0 takes a step; otherwise the field is only multiplied by begins / 2, for frames of another size, and taken up
// again. Either way the coefficients of its splines are written. `first` is the first step at a size.
//
// Floor: reading both matrices from the cache: 100 nodes 0.32 MB a frame, 0.06 us on an H200.
// Document: MacKay 1992, doi:10.1162/neco.1992.4.3.415 (evidence); Baker and Matthews 2004,
// doi:10.1023/B:VISI.0000011205.11775.fd
#ifndef THREADS
#define THREADS 256
#endif
#include "field.cuh"

#ifndef NEAR  // root mean square of the changes, in standard errors, below which a frame is settled
#define NEAR 0.7
#endif
#define SETTLED 0.004  // largest change of a node in pixels, below which it is too
#define MIN_BEND 1e-3
#define MAX_BEND 1e3
#define BLOCKS 2  // of a multiprocessor at once: bounds the registers, so that none is spilled
#define SUMS (2 * NODES * NODES + 1)

struct Grid {
    int rows, columns;                  // of nodes
    int spline_rows, spline_columns;    // of coefficients
};

__device__ __forceinline__ double of_block(double value, bool largest, double* shared) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, value, distance);
        value = largest ? (other > value ? other : value) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int w = 1; w < WARPS; ++w) value = largest ? (shared[w] > value ? shared[w] : value) : value + shared[w];
    return value;
}

// Matrices of the bending: second differences along an axis, and first ones, which make the mixed.
struct Bending {
    const double *rows, *mixed_rows, *columns, *mixed_columns;
};

// P times a field of both components; `mixed` takes as many numbers as a field.
__device__ __forceinline__ void bending_of(const Bending& of, const double* field, const Grid& grid, double* mixed,
                                           double* found) {
    const int nodes = grid.rows * grid.columns;
    for (int k = (int)threadIdx.x; k < 2 * nodes; k += THREADS) {
        const int line = k / grid.columns, b = k - line * grid.columns;
        double sum = 0;
        for (int j = 0; j < grid.columns; ++j)
            sum += field[line * grid.columns + j] * of.mixed_columns[j * grid.columns + b];
        mixed[k] = sum;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < 2 * nodes; k += THREADS) {
        const int component = k / nodes, line = k / grid.columns, a = line - component * grid.rows;
        const int b = k - line * grid.columns, first = component * nodes;
        double sum = 0;
        for (int j = 0; j < grid.columns; ++j)
            sum += field[line * grid.columns + j] * of.columns[j * grid.columns + b];
        for (int i = 0; i < grid.rows; ++i) {
            const int at = first + i * grid.columns + b;
            sum += of.rows[a * grid.rows + i] * field[at] + 2 * of.mixed_rows[a * grid.rows + i] * mixed[at];
        }
        found[k] = sum;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    field_step(const float* slope_sums, const float* alike_sums, const double* pixels, const Part* row_parts,
               const Part* column_parts, const double* to_rows, const double* to_columns, const double* bending_rows,
               const double* mixed_rows, const double* bending_columns, const double* mixed_columns,
               const int* mode_of, const float* shapes, const float* shapes_across, const double* bends, double* fields,
               double* expected, double* alike, int* settled, double* sigmas, Vector* splines, int parts_down,
               int parts_across, int rows, int columns, int spline_rows, int spline_columns, int ways_to_bend,
               int begins, int first) {
    SHARED_FLOATS(floats);
    const Grid grid = {rows, columns, spline_rows, spline_columns};
    const int number = (int)blockIdx.x, nodes = rows * columns, numbers = 2 * nodes;
    const int of_splines = spline_rows * spline_columns, room = numbers > 2 * of_splines ? numbers : 2 * of_splines;
    double* scratch = reinterpret_cast<double*>(floats);  // [WARPS]
    double* field = scratch + WARPS;                      // [numbers]
    double* bent = field + numbers;                       // [numbers]
    double* one = bent + numbers;                         // [room]
    double* other = one + room;                           // [room]
    float* searched = reinterpret_cast<float*>(other + room);  // [numbers]
    float* spread = searched + numbers;                        // [numbers]
    if (!begins && settled[number]) return;
    fields += (long long)number * numbers;
    for (int k = (int)threadIdx.x; k < numbers; k += THREADS) field[k] = begins ? fields[k] * (0.5 * begins) : fields[k];
    __syncthreads();
    if (begins) {
        if (threadIdx.x == 0) {
            expected[number] *= 0.25 * begins * begins;
            settled[number] = 0;
        }
    } else {
        const int tiles = parts_down * parts_across;
        const float* sums = slope_sums + (long long)number * tiles * SUMS;
        // Sums for the coefficients of the splines, [component][row][column].
        for (int k = (int)threadIdx.x; k < 2 * of_splines; k += THREADS) {
            const int component = k / of_splines, i = (k - component * of_splines) / spline_columns;
            const int j = k - component * of_splines - i * spline_columns;
            double sum = 0;
            for (int p = 0; p < parts_down; ++p) {
                const int row = i - row_parts[p].start;
                if ((unsigned)row >= NODES) continue;
                for (int q = 0; q < parts_across; ++q) {
                    const int column = j - column_parts[q].start;
                    if ((unsigned)column >= NODES) continue;
                    sum += sums[(long long)(p * parts_across + q) * SUMS + NODES * (NODES * component + row) + column];
                }
            }
            one[k] = sum;
        }
        double squares = 0, neighbours = 0;
        for (int tile = (int)threadIdx.x; tile < tiles; tile += THREADS) {
            squares += sums[(long long)tile * SUMS + SUMS - 1];
            if (first) neighbours += alike_sums[(long long)number * tiles + tile];
        }
        squares = of_block(squares, false, scratch);
        if (first) {
            neighbours = of_block(neighbours, false, scratch);
            const double times = squares > 0 ? neighbours / squares : 1.0;
            if (threadIdx.x == 0) alike[number] = times > 1 ? times : 1.0;
        }
        __syncthreads();
        // From coefficients to nodes, rows first.
        for (int k = (int)threadIdx.x; k < 2 * rows * spline_columns; k += THREADS) {
            const int line = k / spline_columns, j = k - line * spline_columns;
            const int component = line / rows, a = line - component * rows;
            double sum = 0;
            for (int i = 0; i < spline_rows; ++i)
                sum += to_rows[i * rows + a] * one[component * of_splines + i * spline_columns + j];
            other[k] = sum;
        }
        __syncthreads();
        const double of_pixel = squares / (pixels[number] > 1 ? pixels[number] : 1.0) * alike[number];
        const double variance = of_pixel > 1e-12 ? of_pixel : 1e-12, bend = expected[number];
        bending_of({bending_rows, mixed_rows, bending_columns, mixed_columns}, field, grid, one, bent);
        for (int k = (int)threadIdx.x; k < numbers; k += THREADS) {
            const int line = k / columns, b = k - line * columns;
            double sum = 0;
            for (int j = 0; j < spline_columns; ++j) sum += other[line * spline_columns + j] * to_columns[j * columns + b];
            one[k] = sum / variance + bent[k] / bend;
        }
        __syncthreads();
        const long long of_modes = mode_of[number];
        const float* shape = shapes + of_modes * numbers * numbers;
        const float* across = shapes_across + of_modes * numbers * numbers;
        double stiffness = 0;
        for (int k = (int)threadIdx.x; k < numbers; k += THREADS) {
            const double energy = bends[of_modes * numbers + k], way = 1 / (1 / variance + energy / bend);
            double sum = 0;
#pragma unroll 8
            for (int i = 0; i < numbers; ++i) sum += shape[(long long)i * numbers + k] * one[i];
            stiffness += energy * way;
            spread[k] = (float)way;
            searched[k] = (float)(way * sum);
        }
        stiffness = of_block(stiffness, false, scratch);
        double largest = 0, errors = 0;
        for (int k = (int)threadIdx.x; k < numbers; k += THREADS) {
            float change = 0, square = 0;
#pragma unroll 8
            for (int i = 0; i < numbers; ++i) {
                const float value = across[(long long)i * numbers + k];
                change = fmaf(value, searched[i], change);
                square = fmaf(value * value, spread[i], square);
            }
            field[k] -= change;
            const double size = change < 0 ? -change : change, sigma = sqrt((double)square);
            sigmas[(long long)number * numbers + k] = sigma;
            errors += size * size / square;
            largest = size > largest ? size : largest;
        }
        largest = of_block(largest, true, scratch);
        errors = of_block(errors, false, scratch) / numbers;
        if (ways_to_bend > 0) {
            bending_of({bending_rows, mixed_rows, bending_columns, mixed_columns}, field, grid, one, bent);
            double energy = 0;
            for (int k = (int)threadIdx.x; k < numbers; k += THREADS) energy += field[k] * bent[k];
            energy = of_block(energy, false, scratch);
            double ways = ways_to_bend - stiffness / bend;
            ways = energy / (ways > 1e-3 ? ways : 1e-3);
            ways = ways > MIN_BEND * MIN_BEND ? ways : MIN_BEND * MIN_BEND;
            if (threadIdx.x == 0) expected[number] = ways < MAX_BEND * MAX_BEND ? ways : MAX_BEND * MAX_BEND;
        }
        if (threadIdx.x == 0) settled[number] = largest < SETTLED || errors < NEAR * NEAR;
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < numbers; k += THREADS) fields[k] = field[k];
    for (int k = (int)threadIdx.x; k < 2 * spline_rows * columns; k += THREADS) {
        const int line = k / columns, b = k - line * columns, component = line / spline_rows;
        const int i = line - component * spline_rows;
        double sum = 0;
        for (int a = 0; a < rows; ++a) sum += to_rows[i * rows + a] * field[component * nodes + a * columns + b];
        one[k] = sum;
    }
    __syncthreads();
    splines += (long long)number * of_splines;
    for (int k = (int)threadIdx.x; k < of_splines; k += THREADS) {
        const int i = k / spline_columns, j = k - i * spline_columns;
        double down = 0, across = 0;
        for (int b = 0; b < columns; ++b) {
            const double weight = to_columns[j * columns + b];
            down += weight * one[i * columns + b];
            across += weight * one[(spline_rows + i) * columns + b];
        }
        splines[k] = {(float)down, (float)across};
    }
}
