// From what frame_peaks.cu has written of all frames, by how many whole pixels those with given numbers are moved, and
// what is left of their shifts, as tile_bins.cu and tile_sums.cu take them, so that nothing waits for the host in
// between: no pixels, and no number, where there is no shift. References, which follow the frames, are not moved. A
// thread takes a frame or a reference. Floor: the time of a launch.
// Document: none.
#include "no_number.cuh"
#include "problem.cuh"

#define THREADS 32
#define WRITTEN 48
#define SHIFT 31

extern "C" __global__ void __launch_bounds__(THREADS)
    tile_places(const double* written, const long long* numbers, int* places, double* offsets, int count,
                int references) {
    const int image = (int)blockIdx.x * THREADS + (int)threadIdx.x;
    if (image >= count + references) return;
    places[2 * image] = places[2 * image + 1] = 0;
    if (image >= count) return;
    const double* shift = written + WRITTEN * numbers[image] + SHIFT;
    const bool known = shift[0] - shift[0] + (shift[1] - shift[1]) == 0.0;
    for (int axis = 0; axis < 2; ++axis) {
        const double whole = rint(shift[axis]);
        if (known) places[2 * image + axis] = (int)whole;
        offsets[2 * image + axis] = known ? shift[axis] - whole : no_number();
    }
}
