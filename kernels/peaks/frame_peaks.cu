// All that is said of a frame by its peak, so that the host waits for the device once: shift, score, whether another peak
// is as likely, how much of the frame is no noise, and what the standard error of the shift follows from. By the record of
// the peak (see plane_peak.cu), the scores near it over one overlap (common_overlap.cu), sums over tiles (tile_products.cu),
// over the frame, and over pixels next to each other (noise_sums.cu). The rules are those of xcorr_app/correlation/subpixel.py,
// registration/measuring/device_matcher.py, quality.py and uncertainty.py, in double precision. A warp takes a frame; its record comes
// first in what is written. Floor: the time of a launch.
// Document: none.
#include "problem.cuh"
#include "clean_fraction.cuh"
#include "numbers.cuh"
#include "tile_scatter.cuh"

#define WARPS 4
#define RECORD 29
#define SIDE 5
#define WRITTEN 48  // the record, and what is said below
#ifndef TIE  // the callers define them
#define TIE 1e-6
#define AMBIGUOUS 1.1
#define FP16_ERROR 0.0
#define FROM_EDGE 2
#define LARGEST_OFFSET 1e3
#define LOWEST 1e-12
#define HIGHEST 1e12
#define MIN_LOGARITHM 0.02
#define FLAT 1e-12
#define AT_EDGES 0.04
#define FEWEST_TILES 6
#endif
enum { PLACE_Y = RECORD, PLACE_X, SHIFT_Y, SHIFT_X, SCORE, RATIO, OPEN, CLEAN, HESSIAN, QUARTIC = HESSIAN + 3,
       SCATTER = QUARTIC + 2, HEIGHT = SCATTER + 3, SUM, SQUARES };
enum { NONE, PARABOLIC, QUADRATIC, GAUSSIAN };

__device__ __forceinline__ double infinity() { return (double)__int_as_float(0x7f800000); }
__device__ __forceinline__ bool is_finite(double value) { return value - value == 0.0; }
__device__ __forceinline__ double within_one(double value) { return value < -1.0 ? -1.0 : value > 1.0 ? 1.0 : value; }

// Vertex of the parabola through values at -1, 0 and 1, and by how much it is higher; 0 where it has no maximum.
__device__ __forceinline__ void vertex(double before, double middle, double after, double* place, double* rise) {
    const double curvature = before - 2 * middle + after;
    *place = *rise = 0.0;
    if (!(curvature < -FLAT * fabs(middle))) return;
    const double slope = (after - before) / 2;
    *place = within_one(-slope / curvature);
    *rise = *place * slope + *place * *place * curvature / 2;
}

// The polynomial of second order fitted to 3 x 3 values by least squares: b y + c x + d y^2 + e x y + f x^2.
struct Polynomial {
    double b, c, d, e, f;
    __device__ explicit Polynomial(const double* v) {
        b = (v[6] + v[7] + v[8] - v[0] - v[1] - v[2]) / 6;
        c = (v[2] + v[5] + v[8] - v[0] - v[3] - v[6]) / 6;
        d = (v[0] + v[1] + v[2] + v[6] + v[7] + v[8] - 2 * (v[3] + v[4] + v[5])) / 6;
        e = (v[0] + v[8] - v[2] - v[6]) / 4;
        f = (v[0] + v[3] + v[6] + v[2] + v[5] + v[8] - 2 * (v[1] + v[4] + v[7])) / 6;
    }
};
__device__ __forceinline__ void maximum(const double* near, double* dy, double* dx) {
    const Polynomial fit(near);
    double largest = 0.0;
    for (int k = 0; k < 9; ++k) largest = fmax(largest, fabs(near[k]));
    const double determinant = 4 * fit.d * fit.f - fit.e * fit.e, flat = FLAT * largest;
    const bool concave = determinant > flat * flat && fit.d < -flat;
    *dy = concave ? within_one((fit.e * fit.c - 2 * fit.f * fit.b) / determinant) : 0.0;
    *dx = concave ? within_one((fit.e * fit.b - 2 * fit.d * fit.c) / determinant) : 0.0;
}

// Place and height of the peak of 3 x 3 values, as `refine` finds them.
__device__ void refine(const double* near, int method, double* dy, double* dx, double* height) {
    *dy = *dx = 0.0;
    *height = near[4];
    if (method == NONE) return;
    double rise_y, rise_x;
    vertex(near[1], near[4], near[7], dy, &rise_y);
    vertex(near[3], near[4], near[5], dx, &rise_x);
    *height += rise_y + rise_x;
    bool finite = true, positive = true;
    for (int k = 0; k < 9; ++k) {
        finite = finite && is_finite(near[k]);
        positive = positive && near[k] > MIN_LOGARITHM * near[4];
    }
    if (method == PARABOLIC || !finite) return;
    double values[9];
    for (int k = 0; k < 9; ++k) values[k] = method == GAUSSIAN && positive ? log(near[k]) : near[k];
    maximum(values, dy, dx);
}

// Fourth over second derivative of the logarithm of five values; NaN where there is none.
__device__ __forceinline__ double quartic(const double* values, int step) {
    double logarithm[SIDE];
    const double middle = values[SIDE / 2 * step];
    bool usable = middle > 0;
    for (int k = 0; k < SIDE; ++k) usable = usable && values[k * step] > MIN_LOGARITHM * middle;
    if (!usable) return no_number();
    for (int k = 0; k < SIDE; ++k) logarithm[k] = log(values[k * step]);
    const double ends = logarithm[0] + logarithm[4], beside = logarithm[1] + logarithm[3];
    const double bend = (16 * beside - 30 * logarithm[2] - ends) / 12;
    return bend < 0 ? (ends - 4 * beside + 6 * logarithm[2]) / bend : no_number();
}

extern "C" __global__ void __launch_bounds__(WARPS * WARP, 1)
    frame_peaks(const double* records, const int* peaks, const double* nearest, const double* products,
                const double* of_tiles, const double* noise, const double* tables, const double* noise_sums,
                double* written, int count, int height, int width, int references, int tiles, int tile_pixels,
                int table_size, int noise_groups, int noise_parts, int window_rows, int window_columns, int shift_y0,
                int shift_x0, int method) {
    const int lane = (int)threadIdx.x % WARP, frame = (int)blockIdx.x * WARPS + (int)threadIdx.x / WARP;
    if (frame >= count) return;
    const double* record = records + (long long)RECORD * frame;
    double* said = written + (long long)WRITTEN * frame;
    const int dy = peaks[2 * frame], dx = peaks[2 * frame + 1];
    const double value = record[2], rival = record[3];
    const bool valid = is_finite(value);
    double oy, ox, top;
    refine(nearest + 9 * (long long)frame, method, &oy, &ox, &top);
    const double overlap = (double)max(height - (dy < 0 ? -dy : dy), 0) * max(width - (dx < 0 ? -dx : dx), 0);
    const OfReference reference = {of_tiles, noise, references, references > 1 ? frame : 0, true};
    const double* around = record + 4;
    double near[9];
    for (int k = 0; k < 9; ++k) near[k] = around[(k / 3 + 1) * SIDE + k % 3 + 1];
    const Polynomial fit(near);
    const double a = 2 * fit.d, b = fit.e, c = 2 * fit.f;
    if (!valid) oy = ox = 0.0;
    const double fall = -(oy * (a * oy + b * ox) + ox * (b * oy + c * ox)) / 2;
    const double rise = near[4] > 0 ? 1 + fmax(fall, 0.0) / near[4] : 1.0;
    const Scatter scatter = scatter_of(products + (long long)frame * tiles * FROM_FRAME, reference, tiles, tile_pixels, overlap,
                                       oy, ox, rise, lane);
    const double* whole = tables + ((long long)frame + 1) * table_size - 2;  // sum and sum of squares come last
    const double pixels = (double)height * width, level = whole[0] / pixels, power = whole[1] / pixels;
    const double variance = power - level * level;
    const double* of_noise = noise_sums + (long long)frame * noise_parts * NOISE_SUMS;
    const double clean = clean_fraction(of_noise, noise_groups, noise_parts, width, variance, lane);
    if (lane < RECORD) said[lane] = record[lane];
    if (lane != 0) return;

    // Of equal peaks the one of the smallest shift counts, not the one found first; a rival that fp16 found must not
    // decide whether a peak is ambiguous; the window is not computed beyond its edge; products of values far from zero
    // would round badly.
    const int row = dy - shift_y0, column = dx - shift_x0;
    const bool plain = power >= LOWEST * LOWEST && power <= HIGHEST * HIGHEST &&
                       level * level <= LARGEST_OFFSET * LARGEST_OFFSET * variance;
    bool open = record[0] < 0 || rival >= value - TIE * fabs(value) || !plain;
    open = open || row < FROM_EDGE || row >= window_rows - FROM_EDGE || column < FROM_EDGE ||
           column >= window_columns - FROM_EDGE;
    if (FP16_ERROR > 0)
        open = open || rival > value - 2 * FP16_ERROR || fabs(value - AMBIGUOUS * rival) < AMBIGUOUS * FP16_ERROR;
    said[PLACE_Y] = dy;
    said[PLACE_X] = dx;
    said[SHIFT_Y] = valid ? dy + oy : no_number();
    said[SHIFT_X] = valid ? dx + ox : no_number();
    said[SCORE] = valid ? within_one(top) : no_number();
    said[RATIO] = !valid ? no_number() : rival > 0 ? value / rival : infinity();
    said[OPEN] = open;
    said[CLEAN] = clean;

    const double of_rows = AT_EDGES / height * (AT_EDGES / height), of_columns = AT_EDGES / width * (AT_EDGES / width);
    const bool known = scatter.tiles >= FEWEST_TILES;
    said[HESSIAN] = a;
    said[HESSIAN + 1] = b;
    said[HESSIAN + 2] = c;
    said[QUARTIC] = quartic(around + SIDE / 2, SIDE);
    said[QUARTIC + 1] = quartic(around + SIDE / 2 * SIDE, 1);
    said[SCATTER] = known ? scatter.yy + a * a * of_rows + b * b * of_columns : no_number();
    said[SCATTER + 1] = known ? scatter.yx + a * b * of_rows + b * c * of_columns : no_number();
    said[SCATTER + 2] = known ? scatter.xx + b * b * of_rows + c * c * of_columns : no_number();
    said[HEIGHT] = near[4];
    said[SUM] = whole[0];
    said[SQUARES] = whole[1];
}
