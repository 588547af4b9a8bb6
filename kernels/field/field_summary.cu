// What a frame's field comes to, from the fields and standard errors of all frames: the median of all its errors, those of
// each component, and the means of both components. A block takes one frame; a value's rank is how many are smaller.
//
// Floor: of the order of a microsecond for all frames.
// Document: none.
#define THREADS 128
#define SUMMARY 5

#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    field_summary(const double* fields, const double* sigmas, double* summaries, int nodes) {
    SHARED_FLOATS(shared);
    double* value = reinterpret_cast<double*>(shared);  // [2 * nodes]
    double* middle = value + 2 * nodes;                 // [3][2]: the values below and above each middle
    double* sums = middle + 6;                          // [2][THREADS]
    const int number = (int)blockIdx.x, numbers = 2 * nodes;
    fields += (long long)number * numbers;
    for (int k = (int)threadIdx.x; k < numbers; k += THREADS) value[k] = sigmas[(long long)number * numbers + k];
    if (threadIdx.x < 6) middle[threadIdx.x] = (double)__int_as_float(0x7fffffff);
    double sum[2] = {0, 0};
    for (int k = (int)threadIdx.x; k < nodes; k += THREADS) {
        sum[0] += fields[k];
        sum[1] += fields[nodes + k];
    }
    sums[threadIdx.x] = sum[0];
    sums[THREADS + threadIdx.x] = sum[1];
    __syncthreads();
    for (int k = (int)threadIdx.x; k < numbers; k += THREADS) {
        const double own = value[k];
        const int component = k >= nodes;
        int rank[2] = {0, 0};  // among those of each component
        for (int i = 0; i < numbers; ++i) rank[i >= nodes] += value[i] < own || (value[i] == own && i < k);
        const int of_all = rank[0] + rank[1], of_own = rank[component];
        if (of_all == (numbers - 1) / 2) middle[0] = own;
        if (of_all == numbers / 2) middle[1] = own;
        if (of_own == (nodes - 1) / 2) middle[2 + 2 * component] = own;
        if (of_own == nodes / 2) middle[3 + 2 * component] = own;
    }
    __syncthreads();
    double* summary = summaries + (long long)number * SUMMARY;
    if (threadIdx.x < 3) summary[threadIdx.x] = 0.5 * (middle[2 * threadIdx.x] + middle[2 * threadIdx.x + 1]);
    if (threadIdx.x >= 3 && threadIdx.x < SUMMARY) {
        double total = 0;
        for (int i = 0; i < THREADS; ++i) total += sums[((int)threadIdx.x - 3) * THREADS + i];
        summary[threadIdx.x] = total / nodes;
    }
}
