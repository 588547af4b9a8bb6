// Shift per warp: a warp reduces one shift; its lanes stride over the overlap, then add up by shuffles.
// Document: "Occupancy improvement". For tiny inputs and few shifts, where a thread per shift leaves the device mostly
// idle.
// FMA : shuffles = overlap / 32 : 5, two loads per FMA. Floor: launch latency.
// On an H200, one pair of 16^2: 2.8 us, where an empty kernel takes 0.56.
#include "problem.cuh"
#include "warp.cuh"

#ifndef SHIFTS_PER_BLOCK
#define SHIFTS_PER_BLOCK 4
#endif

extern "C" __global__ void __launch_bounds__(SHIFTS_PER_BLOCK* WARP)
    shift_per_warp(const Left* lefts, const Right* rights_of_all, Sum* planes, PROBLEM_PARAMETERS) {
    const Problem p = PROBLEM_ARGUMENTS;
    const int lane = threadIdx.x % WARP;
    const int shifts = p.shifts_y * p.shifts_x;
    const int index = (int)blockIdx.x * SHIFTS_PER_BLOCK + threadIdx.x / WARP;
    if (index >= p.pairs * shifts) return;
    const int pair = index / shifts;
    const int shift = index % shifts;
    const int dy = p.shift_y0 + shift / p.shifts_x, dx = p.shift_x0 + shift % p.shifts_x;
    const Left* left = left_of(p, lefts, pair);
    const Right* right = right_of(p, rights_of_all, pair);
    const Span ys = overlap(p.left_height, p.right_height, dy), xs = overlap(p.left_width, p.right_width, dx);
    Sum sum = 0;
    const int width = xs.last - xs.first;
    if (width > 0 && ys.last > ys.first) {
        // Traverse the overlap in linear order: 32 elements further is `down` rows and `along` columns further.
        const int down = WARP / width, along = WARP % width;
        const int steps = ceil_div((ys.last - ys.first) * width, WARP);
        int y = ys.first + lane / width, x = lane % width;
#pragma unroll 8
        for (int step = 0; step < steps; ++step) {
            const bool inside = y < ys.last;  // false in some lanes of the last step
            const Left* left_row = left + (long long)(inside ? y + dy : 0) * p.left_width + dx + xs.first;
            const Sum product = (Sum)left_row[inside ? x : -dx - xs.first] *
                                (Sum)right[inside ? (long long)y * p.right_width + xs.first + x : 0];
            sum += inside ? product : (Sum)0;
            y += down;
            x += along;
            if (x >= width) {
                x -= width;
                ++y;
            }
        }
    }
    sum = warp_sum(sum);
    if (lane == 0) planes[index] = sum;
}
