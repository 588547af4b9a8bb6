// Copies the operands of an Im2win product into the tiles of `product_tile.cuh`.
//
// Filters come as `stored_filters` of Python stores them, 16 bytes per copy.
// A thread keeps its columns of the output: the offset at which their values begin is computed once (and kept in shared
// memory where a thread has many). The further offset of element k, the same for all columns, is computed by TILE_K
// threads one tile ahead and passed through shared memory, so that a copy takes two additions and no division. From the
// window tensor, TILE_K neighbouring lanes read as many neighbouring elements of one column (the purpose of the window
// order); from the images, the lanes of a warp read element k of neighbouring columns.
#pragma once
#include "im2win.cuh"
#include "product_tile.cuh"

#if IMPLICIT
constexpr int COPY_SPREAD = THREADS < 2 * TILE_N ? 1 : THREADS / TILE_N < TILE_K ? THREADS / TILE_N : TILE_K;
constexpr int COPY_ROWS = (TILE_K + COPY_SPREAD - 1) / COPY_SPREAD;        // elements k of a thread, neighbours
constexpr int COPY_STEP = THREADS < TILE_N ? THREADS : TILE_N;             // columns that are copied at once
constexpr bool COPY_EVENLY = THREADS <= TILE_N || (THREADS == COPY_SPREAD * TILE_N && TILE_K % COPY_SPREAD == 0);
#else
constexpr int COPY_SPREAD = TILE_K, COPY_ROWS = 1, COPY_STEP = THREADS / TILE_K;
constexpr bool COPY_EVENLY = THREADS % TILE_K == 0;
#endif
constexpr int COPY_COLUMNS = (TILE_N + COPY_STEP - 1) / COPY_STEP;
constexpr int AT_ONCE = PREFETCH ? 8 : 4;  // offsets that a thread keeps in registers, and starts of columns:
constexpr int STARTS = COPY_COLUMNS < 4 ? COPY_COLUMNS : PREFETCH ? 4 : 2;
constexpr bool ALL_COLUMNS = TILE_N % COPY_STEP == 0 && COPY_COLUMNS % STARTS == 0;
constexpr bool STARTS_SHARED = COPY_COLUMNS > 1;
constexpr int OFFSETS = (TILE_K + 3) / 4 * 4;  // readable in whole fours
constexpr int STARTS_AT = 2 * OFFSETS;
constexpr int GATHER_INTS = STARTS_AT + (STARTS_SHARED ? TILE_N : 0);  // of shared memory, beside the tiles

struct __align__(16) FourOffsets {
    int at[4];
};

struct Im2winCopies {
    const Im2win& p;
    FilterCopies filters;
    const float* source;
    int own_start;      // where the values of the thread's only column begin there
    // Shared: of the next tile's elements, then of those of the tile after it; then starts of columns.
    int* offsets;
    int half, k_first;  // which of the two is the next tile's, and its first element

    // `shared` holds GATHER_INTS elements. Ends with a barrier.
    __device__ __forceinline__ Im2winCopies(const Im2win& problem, const float* values, const float* filter,
                                            int* shared, int m_first, int n_first, int first)
        : p(problem), filters(filter, problem.filter_pitch(), m_first, first), source(values), own_start(0), offsets(shared),
          half(0), k_first(first) {
        if (STARTS_SHARED) {
#pragma unroll 1
            for (int n = threadIdx.x; n < TILE_N; n += THREADS) offsets[STARTS_AT + n] = start_of(n_first + n);
        } else {
            own_start = start_of(n_first + column(0));
        }
        place_offsets();
        __syncthreads();
    }
    // Columns that do not exist are read as the last one is; their sums are not stored.
    __device__ __forceinline__ int start_of(int n) const {
        const int last = p.columns() - 1;
        return column_start(p, n < last ? n : last);
    }
    __device__ __forceinline__ int row() const {
        return IMPLICIT ? (int)threadIdx.x / COPY_STEP * COPY_ROWS : (int)threadIdx.x % TILE_K;
    }
    __device__ __forceinline__ int column(int j) const {
        return (IMPLICIT ? (int)threadIdx.x % COPY_STEP : (int)threadIdx.x / TILE_K) + j * COPY_STEP;
    }
    __device__ __forceinline__ void place_offsets() const {
        const int k = k_first + (int)threadIdx.x;
        if ((int)threadIdx.x >= TILE_K) return;
        offsets[half + threadIdx.x] = depth_offset(p, k < p.depth() ? k : 0);
    }

    // The barrier between two calls parts those who read a half from those who write it.
    __device__ __forceinline__ void next(float* buffer) {
        filters.next(buffer);
        if (COPY_EVENLY || (IMPLICIT ? row() < TILE_K : (int)threadIdx.x < COPY_STEP * TILE_K)) {
            float* to = buffer + TILE_K * PITCH_M + row() * PITCH_N + column(0);
            if (k_first + TILE_K <= p.depth())
                copy_values<true>(to);
            else
                copy_values<false>(to);
        }
        k_first += TILE_K;
        half = OFFSETS - half;
        place_offsets();
    }
    template <bool WHOLE>  // no element of the tile lies beyond K
    __device__ __forceinline__ void copy_values(float* to) const {
        // Reads first, copies afterwards: no later read of shared memory passes a copy.
        constexpr int FOURS = COPY_ROWS % 4 == 0 || (IMPLICIT && COPY_SPREAD == 1);  // else 4 bytes a read
        const int* own = offsets + half + row();
#pragma unroll
        for (int first = 0; first < COPY_ROWS; first += AT_ONCE) {
            FourOffsets offset[(AT_ONCE + 3) / 4];
#pragma unroll
            for (int i = 0; i < AT_ONCE; i += FOURS ? 4 : 1)
                if (first + i < COPY_ROWS) {
                    if constexpr (FOURS)
                        offset[i / 4] = *reinterpret_cast<const FourOffsets*>(own + first + i);
                    else
                        offset[i / 4].at[i % 4] = own[first + i];
                }
#pragma unroll
            for (int j_first = 0; j_first < COPY_COLUMNS; j_first += STARTS) {
                int start[STARTS];
#pragma unroll
                for (int j = 0; j < STARTS; ++j)
                    if (!STARTS_SHARED)
                        start[j] = own_start;
                    else if (ALL_COLUMNS || column(j_first + j) < TILE_N)
                        start[j] = offsets[STARTS_AT + column(j_first + j)];
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    if (first + i >= COPY_ROWS || (!COPY_EVENLY && row() + first + i >= TILE_K)) continue;
                    const bool inside = WHOLE || k_first + row() + first + i < p.depth();
#pragma unroll
                    for (int j = 0; j < STARTS; ++j)
                        if (ALL_COLUMNS || column(j_first + j) < TILE_N) {
                            const unsigned at = offset[i / 4].at[i % 4] + start[j];
                            copy_float(to + (first + i) * PITCH_N + (j_first + j) * COPY_STEP, source + at, inside);
                        }
                }
            }
        }
    }
};
