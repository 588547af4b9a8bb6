// Parts of images that show the same of a scene (xcorr_app/registration/pattern/one_layer.py): means of SIDE x SIDE
// pixels, and sums over their rows. A block takes a row of an image. Floor: one read of the parts.
// Document: none.
#include "aligned.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    aligned_bins(const Right* stack, const double* places, float* bins, double* sums, int height, int width,
                 int frame_height, int frame_width) {
    SHARED_FLOATS(shared);
    const int image = (int)blockIdx.x / height, row = (int)blockIdx.x % height;
    const double* place = places + image * OF_IMAGE;
    const long long first = (long long)place[NUMBER] * frame_height + ((int)place[TOP] + row) * SIDE;
    const Right* pixels = stack + first * frame_width + (int)place[LEFT] * SIDE;
    float* out = bins + (long long)blockIdx.x * width;
    double sum[1] = {0.0};
    for (int x = (int)threadIdx.x; x < width; x += THREADS) {
        float value = 0.0f;
#pragma unroll
        for (int y = 0; y < SIDE; ++y)
#pragma unroll
            for (int k = 0; k < SIDE; ++k) value += (float)pixels[(long long)y * frame_width + x * SIDE + k];
        out[x] = value / (SIDE * SIDE);
        sum[0] += out[x];
    }
    sum_over_block(sum, reinterpret_cast<double*>(shared), sums + blockIdx.x);
}
