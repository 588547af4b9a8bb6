// Images less their means, that fade to zero towards all sides (Tukey's window, of whose sides RIM fades), in place. A
// block takes a row of an image, of which sums over all rows are known. Floor: one read and one write of the images.
// Document: none; Harris 1978, windows for the discrete Fourier transform: Tukey's.
#include "aligned.cuh"

__device__ __forceinline__ double weight(int k, int size) {
    const double place = (k + 0.5) / size;
    double root, other;
    sine_and_cosine(0.5 * fmin(fmin(place, 1.0 - place) / RIM, 1.0), &root, &other);
    return root * root;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    faded_images(const double* sums, float* images, int height, int width) {
    SHARED_FLOATS(shared);
    double* whole = reinterpret_cast<double*>(shared);
    const int image = (int)blockIdx.x / height, row = (int)blockIdx.x % height;
    double sum[1] = {0.0};
    for (int y = (int)threadIdx.x; y < height; y += THREADS) sum[0] += sums[image * height + y];
    sum_over_block(sum, whole + 1, whole);
    __syncthreads();
    const double mean = whole[0] / ((double)height * width), down = weight(row, height);
    float* values = images + (long long)blockIdx.x * width;
    for (int x = (int)threadIdx.x; x < width; x += THREADS)
        values[x] = (float)((values[x] - mean) * (down * weight(x, width)));
}
