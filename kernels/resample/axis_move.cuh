// How one axis is moved: a shift split into whole pixels, which only copy, and a fraction, which gives the weights.
//
// The same in float64 as `plan_axis` of xcorr_app/registration/moving/interpolation.py, which explains it.
#pragma once

#ifndef TAPS  // 1: nearest (the shift is rounded), 2: linear, 4: cubic convolution with a = -1/2, 8: Lanczos with radius 4
#define TAPS 2
#endif

#define WHOLE_PIXEL_TOLERANCE 1e-9  // a shift this close to a whole number is that number
#define EDGE_TOLERANCE 1e-3         // pixels beyond an edge that still count as inside
#define FURTHEST 8                  // pixels beyond the frame's length at which a shift is cut: every tap is outside there

struct AxisMove {
    int start;        // input index under the first tap for output index 0
    int first, stop;  // output indices whose position is inside the frame
    int is_whole;     // only copies: the pixel under the first tap plus CENTRE
    SUM_TYPE weight[TAPS];
};

#define CENTRE (TAPS / 2 > 0 ? TAPS / 2 - 1 : 0)  // tap at or before the position

__device__ __forceinline__ double whole_or(double shift) {
    const double whole = rint(shift);
    return fabs(shift - whole) <= WHOLE_PIXEL_TOLERANCE ? whole : shift;
}

__device__ __forceinline__ void sine_and_cosine_of_pi(double x, double* sine, double* cosine) {
#if defined(__CUDA_ARCH__)
    sincospi(x, sine, cosine);
#else
    *sine = sin(3.14159265358979323846 * x);
    *cosine = cos(3.14159265358979323846 * x);
#endif
}

// Weights of the fraction t, 0 <= t < 1.
__device__ __forceinline__ void set_weights(SUM_TYPE* weight, double t) {
    typedef SUM_TYPE W;
#if TAPS == 1
    weight[0] = (W)1;
#elif TAPS == 2
    weight[0] = (W)(1.0 - t);
    weight[1] = (W)t;
#elif TAPS == 4
    weight[0] = (W)(((-0.5 * t + 1.0) * t - 0.5) * t);
    weight[1] = (W)((1.5 * t - 2.5) * t * t + 1.0);
    weight[2] = (W)(((-1.5 * t + 2.0) * t + 0.5) * t);
    weight[3] = (W)((0.5 * t - 0.5) * t * t);
#else
    // sinc(u) sinc(u / 4) at u = t - j is (-1)^j sin(pi u / 4) / u^2 but for a factor, which dividing by the sum removes.
    double sine, cosine, each[TAPS], sum = 0;
    sine_and_cosine_of_pi(0.25 * t, &sine, &cosine);
    const double diagonal = 0.70710678118654752440 * (sine + cosine), other = 0.70710678118654752440 * (sine - cosine);
    // sin(pi (t - j) / 4) for j = -3 ... 4, with its sign.
    const double with_sign[TAPS] = {-(cosine - sine) * 0.70710678118654752440, cosine, -diagonal, sine,
                                    -other, -cosine, diagonal, -sine};
#pragma unroll
    for (int i = 0; i < TAPS; ++i) {
        const double u = t - (i - CENTRE);
        each[i] = t == 0 ? (i == CENTRE ? 1.0 : 0.0) : with_sign[i] / (u * u);
        sum += each[i];
    }
    const double factor = 1.0 / sum;
#pragma unroll
    for (int i = 0; i < TAPS; ++i) weight[i] = (W)(each[i] * factor);
#endif
}

__device__ __forceinline__ void set_axis_move(AxisMove& move, int length, double shift, bool fills_outside) {
    const double reach = (double)length + FURTHEST;
    shift = shift < -reach ? -reach : shift > reach ? reach : shift;
    shift = whole_or(shift);
    if (TAPS == 1) shift = rint(shift);
    const double start = floor(-shift), fraction = -shift - start;
    const double first = ceil(shift - EDGE_TOLERANCE), stop = floor((double)(length - 1) + shift + EDGE_TOLERANCE) + 1.0;
    move.first = fills_outside && first > 0 ? (int)first : 0;
    move.stop = fills_outside && stop < length ? (int)stop : length;
    move.start = (int)start - CENTRE;
    move.is_whole = fraction == 0;
    set_weights(move.weight, fraction);
}
