// Zero-mean normalised correlation of one pair over its true overlap, from the plain sum and summed-area tables.
//
//     (Sfg - Sf Sg / n) / sqrt((Sff - Sf^2 / n) (Sgg - Sg^2 / n))
//
// A table holds, for one matrix, sums and sums of squares over all rectangles that begin in its first corner and end at a
// row edge and a column edge (summed_area.cu); a rectangle is a difference of four of them. Which edges belong to a shift
// is in `rows` and `columns`: five integers a shift, {left first, left last, right first, right last, overlapping elements}.
//
// CENTRED: the sums given are D = sum of (f - cL) (g - cR), each matrix minus its centre (scaling.cuh). The covariance
// then takes Sf - n cL and Sg - n cR for Sf and Sg, and the plain sum is Sfg = D + cL (Sg - n cR) + cR Sf.
#pragma once

#ifndef CENTRED
#define CENTRED 0
#endif
#ifndef LEFT_INTEGER
#define LEFT_INTEGER 0  // the centre of a matrix of integers is a whole number
#endif
#ifndef RIGHT_INTEGER
#define RIGHT_INTEGER 0
#endif

#define EDGES_A_SHIFT 5
#ifndef RELATIVE_VARIANCE
#define RELATIVE_VARIANCE 1e-4    // of an overlap, as a share of the whole matrix's, below which rounding would decide
#endif
#define ROUNDING_OF_SQUARES 1e-12  // variance of a constant matrix, as a share of its sum of squares

// A compiler at run time knows no INFINITY and no NAN.
#define MINUS_INFINITY __int_as_float(0xff800000)
#define NOT_A_NUMBER ((double)__int_as_float(0x7fffffff))

struct __align__(16) Moments {
    double sum, squares;
    __device__ __forceinline__ void add(double value) {
        sum += value;
        squares = fma(value, value, squares);
    }
};

#include "scaling.cuh"

struct MatrixTable {
    const Moments* table;
    int pitch;              // column edges
    double min_variance;  // of an overlap that counts
    double centre;          // what was taken from the elements before they were multiplied; for CENTRED alone

    // `rows` and `columns` are edges, `elements` is the size of the whole matrix.
    __device__ __forceinline__ MatrixTable(const Moments* of_all, int index, int rows, int columns, double elements,
                                           bool integer) {
        table = of_all + (long long)index * rows * columns;
        pitch = columns;
        const Moments whole = table[rows * columns - 1];
        const double variance = whole.squares - whole.sum * whole.sum / elements;
        min_variance = fmax(RELATIVE_VARIANCE * variance, ROUNDING_OF_SQUARES * whole.squares);
        if (CENTRED)
            centre = integer ? scaling_of<true>(whole, elements).centre : scaling_of<false>(whole, elements).centre;
    }
    __device__ __forceinline__ Moments within(int top, int bottom, int first, int last) const {
        const Moments a = table[top * pitch + first], b = table[top * pitch + last];
        const Moments c = table[bottom * pitch + first], d = table[bottom * pitch + last];
        Moments m = {(d.sum - c.sum) - (b.sum - a.sum), (d.squares - c.squares) - (b.squares - a.squares)};
        return m;
    }
};

// What the tables say of one row of shifts. The first index is the row's, the second that of the shift in it.
struct OverlapLine {
    const MatrixTable &left, &right;
    const int* columns;
    int left_top, left_bottom, right_top, right_bottom, overlapping_rows;

    __device__ __forceinline__ long long elements(int ix) const {
        return (long long)overlapping_rows * columns[ix * EDGES_A_SHIFT + 4];
    }
    __device__ __forceinline__ Moments of_left(int ix) const {
        const int* column = columns + ix * EDGES_A_SHIFT;
        return left.within(left_top, left_bottom, column[0], column[1]);
    }
    __device__ __forceinline__ Moments of_right(int ix) const {
        const int* column = columns + ix * EDGES_A_SHIFT;
        return right.within(right_top, right_bottom, column[2], column[3]);
    }
    // Sum of the products themselves, from that of centred ones.
    __device__ __forceinline__ double uncentred(double product, int ix) const {
        const double right_sum = of_right(ix).sum - (double)elements(ix) * right.centre;
        return product + left.centre * right_sum + right.centre * of_left(ix).sum;
    }
};

// Scores, zero-mean normalised.
struct NormalizedLine {
    OverlapLine overlap;
    int min_overlap_pixels;

    // What the score is made of; false where the overlap is too small or has no variance.
    template <typename Product>
    __device__ __forceinline__ bool terms(Product product, int ix, double& covariance, double& left_variance,
                                          double& right_variance) const {
        const long long pairs = overlap.elements(ix);
        if (pairs < min_overlap_pixels || pairs < 1) return false;
        const Moments f = overlap.of_left(ix), g = overlap.of_right(ix);
        const double share = 1.0 / (double)pairs;
        const double left_sum = CENTRED ? f.sum - (double)pairs * overlap.left.centre : f.sum;
        const double right_sum = CENTRED ? g.sum - (double)pairs * overlap.right.centre : g.sum;
        covariance = (double)product - left_sum * right_sum * share;
        left_variance = f.squares - f.sum * f.sum * share;
        right_variance = g.squares - g.sum * g.sum * share;
        return left_variance > overlap.left.min_variance && right_variance > overlap.right.min_variance;
    }
    // For finding the peak: single precision; minus infinity where there is no score.
    __device__ __forceinline__ float quick(Sum product, int ix) const {
        double covariance, f, g;
        if (!terms(product, ix, covariance, f, g)) return MINUS_INFINITY;
        return fminf(1.0f, fmaxf(-1.0f, (float)covariance * rsqrtf((float)f) * rsqrtf((float)g)));
    }
    // For the values around the peak: double precision; NaN where there is no score.
    template <typename Product>
    __device__ __forceinline__ double exact(Product product, int ix) const {
        double covariance, f, g;
        if (!terms(product, ix, covariance, f, g)) return NOT_A_NUMBER;
        return fmin(1.0, fmax(-1.0, covariance / sqrt(f * g)));
    }
};

// Plain sums from centred ones: every shift with enough overlap counts.
struct UncentredLine {
    OverlapLine overlap;
    int min_overlap_pixels;

    __device__ __forceinline__ bool counts(int ix) const {
        const long long pairs = overlap.elements(ix);
        return pairs >= min_overlap_pixels && pairs >= 1;
    }
    __device__ __forceinline__ float quick(Sum product, int ix) const {
        return counts(ix) ? (float)overlap.uncentred((double)product, ix) : MINUS_INFINITY;
    }
    template <typename Product>
    __device__ __forceinline__ double exact(Product product, int ix) const {
        return counts(ix) ? overlap.uncentred((double)product, ix) : NOT_A_NUMBER;
    }
};

// The lines of one pair that need its tables.
template <typename Line>
struct ByTables {
    MatrixTable left, right;
    const int *rows, *columns;
    int min_overlap_pixels;  // fewest elements at which a shift scores

    __device__ __forceinline__ Line line(int iy) const {
        const int* row = rows + iy * EDGES_A_SHIFT;
        Line line = {{left, right, columns, row[0], row[1], row[2], row[3], row[4]}, min_overlap_pixels};
        return line;
    }
};

// The plain sums themselves: every shift with enough overlap counts.
struct PlainLine {
    const int* columns;
    int overlapping_rows, min_overlap_pixels;

    __device__ __forceinline__ bool counts(int ix) const {
        const long long pairs = (long long)overlapping_rows * columns[ix * EDGES_A_SHIFT + 4];
        return pairs >= min_overlap_pixels && pairs >= 1;
    }
    __device__ __forceinline__ float quick(Sum product, int ix) const {
        return counts(ix) ? (float)product : MINUS_INFINITY;
    }
    template <typename Product>
    __device__ __forceinline__ double exact(Product product, int ix) const {
        return counts(ix) ? (double)product : NOT_A_NUMBER;
    }
};

struct PlainSums {
    const int *rows, *columns;
    int min_overlap_pixels;

    __device__ __forceinline__ PlainLine line(int iy) const {
        PlainLine line = {columns, rows[iy * EDGES_A_SHIFT + 4], min_overlap_pixels};
        return line;
    }
};

// How a kernel that finds peaks scores its shifts: NORMALIZE and CENTRED decide.
#define NORMALIZER_PARAMETERS \
    int left_rows, int left_columns, int right_rows, int right_columns, int min_overlap_pixels
#define BY_TABLES_OF_PAIR(Line, p, pair)                                                                             \
    ByTables<Line> {                                                                                                 \
        MatrixTable(left_tables, (pair) / (p).rights_per_left, left_rows, left_columns,                              \
                    (double)(p).left_height * (p).left_width, LEFT_INTEGER),                                         \
            MatrixTable(right_tables, (pair) % (p).rights, right_rows, right_columns,                                \
                        (double)(p).right_height * (p).right_width, RIGHT_INTEGER),                                  \
            shift_rows, shift_columns, min_overlap_pixels                                                                 \
    }
#if defined(NORMALIZE) && NORMALIZE
#define SCORE_OF_PAIR(p, pair) BY_TABLES_OF_PAIR(NormalizedLine, p, pair)
#elif CENTRED
#define SCORE_OF_PAIR(p, pair) BY_TABLES_OF_PAIR(UncentredLine, p, pair)
#else
#define SCORE_OF_PAIR(p, pair) \
    PlainSums { shift_rows, shift_columns, min_overlap_pixels }
#endif
