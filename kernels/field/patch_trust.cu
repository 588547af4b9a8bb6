// Which patches of every frame are to be trusted, and what they say of other places: a block takes one frame.
//
// A patch is trusted that is good by itself and passes the normalised median test of Westerweel and Scarano 2005 against
// its good neighbours. At a place, the plane that fits the trusted patches best, weighted by a Gaussian of their distance
// (Gaussian-weighted local-linear regression, xcorr_app/registration/motion/smooth_field.py).
//
// FIELD 0: the places are the patches that are not trusted, which get offsets to be looked for once more, no farther than
// `limit` from the offset of their frame; the others are not searched again, and none is where nothing is trusted, or
// everything. FIELD 1: the places are the nodes of a field, and a patch's weight is that of its score; where none is
// trusted the field is the shift of the frame.
//
// Floor: of the order of a microsecond for all frames: their records are read from the cache.
// Document: Westerweel and Scarano 2005, doi:10.1007/s00348-005-0016-6
#ifndef FIELD
#define FIELD 0
#endif
#define THREADS 128
#define RECORD 5
#define NOT_SEARCHED (-(1 << 30))
#define OUTLIER 3.0
#define NOISE 0.5  // pixels
#define SLOPE_PRIOR 1e-3

#ifndef SHARED_FLOATS  // a host build defines its own
#define SHARED_FLOATS(name) extern __shared__ __align__(16) float name[]
#endif

// Median of the values of eight that are a number.
__device__ __forceinline__ double median_of(const double (&value)[8]) {
    int count = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) count += value[i] == value[i];
    const int below = count > 1 ? (count - 1) / 2 : 0, above = count / 2;
    double sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        int rank = 0;
#pragma unroll
        for (int k = 0; k < 8; ++k) rank += value[k] < value[i] || (value[k] == value[i] && k < i);
        if (value[i] == value[i]) sum += (rank == below ? value[i] : 0.0) + (rank == above ? value[i] : 0.0);
    }
    return 0.5 * sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    patch_trust(const double* records, const double* middles, const double* places, const double* lengths,
                const double* shifts, int* offsets, unsigned char* trusted, double* fields, int rows, int columns,
                int nodes, int smaller, int limit) {
    SHARED_FLOATS(shared);
    const int number = (int)blockIdx.x, count = rows * columns;
    double* weights = reinterpret_cast<double*>(shared);  // [count], zero of what is not trusted
    const double* record = records + (long long)number * count * RECORD;
    const double step = lengths[0], reach = lengths[1];
    for (int k = (int)threadIdx.x; k < count; k += THREADS) {
        const int i = k / columns, j = k - i * columns;
        bool good = record[k * RECORD + 4] != 0;
        if (good) {
            double worst = 0;
            int neighbours = 0;
#pragma unroll
            for (int component = 0; component < 2; ++component) {
                double around[8];
#pragma unroll
                for (int n = 0; n < 8; ++n) {
                    const int m = n < 4 ? n : n + 1, y = i + m / 3 - 1, x = j + m % 3 - 1;
                    around[n] = (double)__int_as_float(0x7fffffff);
                    if (y < 0 || y >= rows || x < 0 || x >= columns) continue;
                    const double* other = record + (y * columns + x) * RECORD;
                    if (other[4] == 0) continue;
                    around[n] = smaller * other[component];
                    neighbours += component == 0;
                }
                const double middle = median_of(around);
#pragma unroll
                for (int n = 0; n < 8; ++n) around[n] = fabs(around[n] - middle);
                const double away = fabs(smaller * record[k * RECORD + component] - middle) / (median_of(around) + NOISE);
                worst = away > worst ? away : worst;
            }
            good = neighbours < 3 || worst <= OUTLIER;
        }
        double weight = good ? 1.0 : 0.0;
        if (FIELD && good) {
            double score = record[k * RECORD + 2];
            score = score < 0.01 ? 0.01 : score > 0.99 ? 0.99 : score;
            weight = score * score / (1 - score * score);
        }
        weights[k] = weight;
        if (FIELD) trusted[(long long)number * count + k] = good;
    }
    __syncthreads();
    int known = 0;  // 1: some are trusted, 2: some are not
    for (int k = 0; k < count; ++k) known |= weights[k] > 0 ? 1 : 2;
    for (int m = (int)threadIdx.x; m < nodes; m += THREADS) {
        double found[2] = {0, 0};
        const bool searched = FIELD || (known == 3 && weights[m] == 0);
        if (searched && (known & 1)) {
            const double y = places[2 * m], x = places[2 * m + 1], unit = FIELD ? reach : step;
            double nearest = 1e300;
            for (int k = 0; k < count; ++k) {
                const double down = middles[2 * k] - y, across = middles[2 * k + 1] - x;
                const double away = down * down + across * across;
                if (weights[k] > 0 && away < nearest) nearest = away;
            }
            double sum = 0, sy = 0, sx = 0, syy = 0, syx = 0, sxx = 0;
            double right[3][2] = {{0, 0}, {0, 0}, {0, 0}};
            for (int k = 0; k < count; ++k) {
                if (!(weights[k] > 0)) continue;
                const double down = middles[2 * k] - y, across = middles[2 * k + 1] - x;
                const double away = down * down + across * across;
                const double weight = weights[k] * exp((nearest - away) / (2 * unit * unit));
                const double v = down / unit, u = across / unit;
                sum += weight;
                sy += weight * v;
                sx += weight * u;
                syy += weight * v * v;
                syx += weight * v * u;
                sxx += weight * u * u;
#pragma unroll
                for (int component = 0; component < 2; ++component) {
                    const double value = weight * smaller * record[k * RECORD + component];
                    right[0][component] += value;
                    right[1][component] += value * v;
                    right[2][component] += value * u;
                }
            }
            syy += SLOPE_PRIOR * sum;
            sxx += SLOPE_PRIOR * sum;
            // First row of the inverse of the symmetric matrix.
            const double a = syy * sxx - syx * syx, b = sx * syx - sy * sxx, c = sy * syx - sx * syy;
            const double determinant = sum * a + sy * b + sx * c;
#pragma unroll
            for (int component = 0; component < 2; ++component)
                found[component] =
                    (a * right[0][component] + b * right[1][component] + c * right[2][component]) / determinant;
        } else if (FIELD) {
            found[0] = shifts[2 * number];
            found[1] = shifts[2 * number + 1];
        }
#pragma unroll
        for (int component = 0; component < 2; ++component) {
            if (FIELD) {
                fields[((long long)number * 2 + component) * nodes + m] = found[component];
            } else {
                const double start = rint(shifts[2 * number + component] / smaller), place = found[component] / smaller;
                const double least = start - limit, most = start + limit;
                const double held = rint(place < least ? least : place > most ? most : place);
                offsets[((long long)number * nodes + m) * 2 + component] = searched ? (int)held : NOT_SEARCHED;
            }
        }
    }
}
