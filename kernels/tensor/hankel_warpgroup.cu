// Windows of shifts on tensor cores, by products of four warps: for moving matrices that share a fixed one, on sm_90a.
//
// The mapping: `hankel.cuh`. Each of the four warps of a group holds the Hankel fragments of its own moving matrix, and
// a product sums 16 ex x 8 N_TILES ey of all four at once; the next 16 ex are another product with the same fixed rows.
// These are already in fp16 (to_fp16.cu) and are stored in shared memory as columns of B, one after the other, so that
// the next moving row uses them at an offset 16 bytes lower; a block stages those of STEP_ROWS moving rows at a time.
// WARPS groups share the moving rows. Each warp reads only its own rows: it converts them to fp16 in its own two
// buffers, while the products of four times 16 columns run, and has fetched their elements one row earlier. Tensor
// cores truncate sums: after STEP_ROWS rows they are added to a second set in single precision.
//
// Document: none; "Correlation on tensor cores" (docs/tensor_cores.md). Floor: the rate of `wgmma` with 32 columns and
// fragments from shared memory, 480 TFMA/s on an H200; 278 of it at 32 x 32 shifts of 512 x 512, 340 at 64 x 64 of 1024 x
// 1024.
#define TEAMS 4
#ifndef WARPS
#define WARPS 3  // groups of four warps
#endif
#ifndef STEP_ROWS
#define STEP_ROWS 24  // a multiple of WARPS
#endif
#ifndef MIN_BLOCKS
#define MIN_BLOCKS 1
#endif
#include "hankel.cuh"
#include "mma_fp16.cuh"
#include "wgmma.cuh"
#include "packed.cuh"

constexpr int BATCH = 4;                          // steps of 16 columns whose products run together
constexpr int FRAGMENTS = BATCH + M_TILES - 1;    // Hankel fragments of a batch
constexpr int BATCHES = PANEL / (16 * BATCH);     // of a row
constexpr int PLACES = STEP_ROWS + WINDOW - 1;    // fixed rows that a step needs
constexpr int CHUNK = 4 * PLACES, FIXED_BUFFER = PANEL / 8 * CHUNK;  // words
constexpr int VECTORS = (MOVING_VECTORS + 31) / 32;     // a lane's of a row
constexpr int CHUNKS_A_ROW = PANEL / 8, FIXED_WARPS = 4 * WARPS;
static_assert(STEP_ROWS % WARPS == 0 && BATCHES % 2 == 0, "groups share rows evenly, fragments have two places");

struct __align__(8) TwoWords {
    unsigned first, second;
};
struct Fragment {
    unsigned a[4];
};

// A warp's own rows on their way to fp16.
struct RowOfMember {
    const Moving* matrix;
    int height, width, x, wide;  // x: column of this lane's first float4
    float factor, offset;
    Moving centre;
    Packed<Moving> vector[VECTORS];

    __device__ __forceinline__ void fetch(int y) {
#pragma unroll
        for (int i = 0; i < VECTORS; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) vector[i].set(e, centre);  // becomes zero
        if (y >= height) return;
        const Moving* from = matrix + (long long)y * width + x;
#pragma unroll
        for (int i = 0; i < VECTORS; ++i) {
            if (wide) {
                if ((unsigned)(x + 128 * i) < (unsigned)width)
                    vector[i] = *reinterpret_cast<const Packed<Moving>*>(from + 128 * i);
            } else {
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if ((unsigned)(x + 128 * i + e) < (unsigned)width) vector[i].set(e, from[128 * i + e]);
            }
        }
    }
    // `row`: both copies, at this lane's first float4.
    __device__ __forceinline__ void keep(unsigned* row, int lane) const {
        float value[VECTORS + 1][4];
#pragma unroll
        for (int i = 0; i < VECTORS; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) value[i][e] = fmaf(vector[i].as_float(e), factor, offset);
        value[VECTORS][0] = 0.0f;
#pragma unroll
        for (int i = 0; i < VECTORS; ++i) {
            // Behind a float4 follows the next lane's, and behind the last lane's the first lane's next.
            const float following = __shfl_sync(0xffffffffu, lane == 0 ? value[i + 1][0] : value[i][0], (lane + 1) % 32);
            if (MOVING_VECTORS % 32 && i == VECTORS - 1 && lane >= MOVING_VECTORS % 32) break;
            const TwoWords words = {half_pair(value[i][0], value[i][1]), half_pair(value[i][2], value[i][3])};
            const TwoWords shifted = {half_pair(value[i][1], value[i][2]), half_pair(value[i][3], following)};
            *reinterpret_cast<TwoWords*>(row + 64 * i) = words;
            *reinterpret_cast<TwoWords*>(row + 64 * i + MOVING_WORDS) = shifted;
        }
    }
};

// Starts the copy of the fixed rows that a step needs, the last of them first: a warp copies rows, a lane a chunk of them.
// `first_row`: of the matrix; `chunk`: of this lane, counted from the row's begin.
__device__ __forceinline__ void start_fixed(unsigned* buffer, const unsigned* fp16, int first_row, int height, int pitch,
                                            int first_chunk, int warp, int lane) {
#pragma unroll
    for (int i = 0; i < (PLACES + FIXED_WARPS - 1) / FIXED_WARPS; ++i) {
        const int place = warp + i * FIXED_WARPS, row = first_row + PLACES - 1 - place;
        if (PLACES % FIXED_WARPS && place >= PLACES) break;
        const bool row_inside = (unsigned)row < (unsigned)height;
        const unsigned* from = fp16 + (long long)(row_inside ? row : 0) * pitch;
#pragma unroll
        for (int chunk = lane; chunk < CHUNKS_A_ROW; chunk += 32) {
            const int word = (first_chunk + chunk) * 4;
            const bool inside = row_inside && word < pitch;
            copy_four_words(buffer + chunk * CHUNK + place * 4, from + (inside ? word : 0), inside);
        }
    }
}

// The fragments of a batch; `moving`: this lane's first word. The first `known` are there, the last of the batch before.
// A fragment lies in four neighbouring registers. `nothing` is zero, which the compiler must not know: where it sees that
// words of two fragments are the same, it copies fragments from place to place.
__device__ __forceinline__ void read_fragments(Fragment (&fragment)[FRAGMENTS], const unsigned* moving, int known,
                                               unsigned nothing) {
    unsigned begin = known > 0 ? fragment[known - 1].a[3] : moving[0];
#pragma unroll
    for (int i = 0; i < FRAGMENTS; ++i) {
        if (i < known) continue;
        const unsigned middle = moving[8 * i + 4], end = moving[8 * i + 8];
        fragment[i].a[0] = begin | nothing;
        fragment[i].a[1] = middle;
        fragment[i].a[2] = middle | nothing;
        fragment[i].a[3] = begin = end;
    }
}

typedef float WarpSums[M_TILES][4 * N_TILES];

__device__ __forceinline__ void multiply_batch(WarpSums& sum, const Fragment (&fragment)[FRAGMENTS], const Columns& fixed) {
    open_products();
#pragma unroll
    for (int m = 0; m < M_TILES; ++m)
#pragma unroll
        for (int step = 0; step < BATCH; ++step)
            multiply_add_warpgroup(sum[m], fragment[step + m].a, moved(fixed, step * (2 * PLACES)));
    close_products();
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    hankel_warpgroup(const Left* lefts, const Right* rights_of_all, const unsigned* fixed_fp16, float* planes,
                     float* workspace, int* arrived, const Moments* left_tables, const Moments* right_tables,
                     PROBLEM_PARAMETERS, int left_cells, int right_cells, int tiles_y, int tiles_x, int segments,
                     int segment_rows, int fixed_pitch) {
    SHARED_FLOATS(shared);
    Work& work = *reinterpret_cast<Work*>(shared);
    unsigned* const fixed_buffers = reinterpret_cast<unsigned*>(shared + WORK_FLOATS);
    // The same in all lanes, and the compiler knows.
    const int lane = (int)threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    const int group = warp / TEAMS, team = warp % TEAMS;
    unsigned* const moving_buffers = fixed_buffers + 2 * FIXED_BUFFER + warp * (2 * MOVING_ROW);
    if (threadIdx.x == 0) {
        const Problem p = PROBLEM_ARGUMENTS;
        const int part = (int)blockIdx.x / segments, tiles = tiles_y * tiles_x;
        describe(work, p, lefts, rights_of_all, left_tables, right_tables, left_cells, right_cells, part % tiles, part / tiles,
                 tiles_x, (int)blockIdx.x % segments, segment_rows);
    }
    __syncthreads();

    WarpSums sum, total;
#pragma unroll
    for (int i = 0; i < SUMS; ++i) (&sum[0][0])[i] = (&total[0][0])[i] = 0.0f;
    const unsigned nothing = work.nothing;
    RowOfMember member;
    member.matrix = MOVING_MATRICES + work.moving[team].start;
    member.height = work.row_last;
    member.width = work.moving_width;
    member.wide = work.moving_wide;
    member.centre = (Moving)work.moving[team].scaling.centre;
    member.factor = work.moving[team].scaling.factor;
    member.offset = -(work.moving[team].scaling.centre + magic<Moving>()) * member.factor;
    // The fp16 copy begin at multiples of 8 columns, and so do panels.
#pragma unroll 1
    for (int x = work.column_first & ~7; x < work.column_last; x += PANEL) {
        const int moving_x = (x + work.first_ex) & ~3, begin = x + work.first_ex - moving_x + lane / 4 + lane % 4 * 2;
        const unsigned* const own = moving_buffers + begin % 2 * MOVING_WORDS + begin / 2;
        unsigned* const kept = moving_buffers + 2 * lane;
        const unsigned* fp16 = fixed_fp16 + (long long)work.fixed_index * work.fixed_height * fixed_pitch;
        int row = work.row_first + group, buffer = 0;
        // The first fixed row that a step needs is that of its first moving row and the last ey.
        int fixed_row = work.row_first - work.first_ey - (WINDOW - 1);
        start_fixed(fixed_buffers, fp16, fixed_row, work.fixed_height, fixed_pitch, x / 8, warp, lane);
        member.x = moving_x + 4 * lane;
        member.fetch(row);
        member.keep(kept, lane);
        member.fetch(row + WARPS);
        __syncwarp();
        Fragment fragment[2][FRAGMENTS];
        read_fragments(fragment[0], own, 0, nothing);
        staged();
        publish_to_products();
        __syncthreads();
        const int last = work.row_last;
#pragma unroll 1
        for (int first = work.row_first, of_fixed = 0; first < last; first += STEP_ROWS, of_fixed ^= 1) {
            fixed_row += STEP_ROWS;
            if (first + STEP_ROWS < last)
                start_fixed(fixed_buffers + (of_fixed ^ 1) * FIXED_BUFFER, fp16, fixed_row, work.fixed_height, fixed_pitch,
                            x / 8, warp, lane);
            Columns fixed = columns_at(fixed_buffers + of_fixed * FIXED_BUFFER + (STEP_ROWS - 1 - group) * 4, 4 * CHUNK);
#pragma unroll 1
            for (int i = 0; i < STEP_ROWS / WARPS; ++i, row += WARPS, fixed = moved(fixed, -WARPS)) {
                if (row >= last) break;  // for the whole group
                const unsigned* from = own + buffer * MOVING_ROW;
                buffer ^= 1;
#pragma unroll
                for (int batch = 0; batch < BATCHES; ++batch) {
                    multiply_batch(sum, fragment[batch % 2], moved(fixed, batch * (2 * BATCH * PLACES)));
                    if (batch == 0) {
                        member.keep(kept + buffer * MOVING_ROW, lane);
                        member.fetch(row + 2 * WARPS);
                        __syncwarp();
                    }
                    Fragment(&next)[FRAGMENTS] = fragment[(batch + 1) % 2];
                    if (batch + 1 < BATCHES) {
#pragma unroll
                        for (int known = 0; known < M_TILES - 1; ++known) next[known] = fragment[batch % 2][BATCH + known];
                        read_fragments(next, from + (batch + 1) * (8 * BATCH), M_TILES - 1, nothing);
                    } else {
                        read_fragments(next, own + buffer * MOVING_ROW, 0, nothing);
                    }
                    await_products();
                }
                __syncwarp();  // before the row is replaced
            }
#pragma unroll
            for (int i = 0; i < SUMS; ++i) {
                (&total[0][0])[i] += (&sum[0][0])[i];
                (&sum[0][0])[i] = 0.0f;
            }
            staged();
            publish_to_products();
            __syncthreads();
        }
    }
    finish(work, shared + WORK_FLOATS, *reinterpret_cast<float(*)[SUMS]>(&total), team, group, lane, planes, workspace, arrived,
           shifts_y, shifts_x, segments);
}
