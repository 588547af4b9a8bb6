// Taps of rank 1 or 2 in one pass: every element is read once and every result written once, no intermediate image. A
// warp processes a strip of columns and advances down its rows, STEP_ROWS at a time. It stages the rows in its own
// shared memory; a lane forms ROW_SUMS neighbouring sums of one row from 16-byte loads of the window (taps are operands
// from constant memory); the sums go back to shared memory and are read again as the lane's own columns, where
// FILTER_HEIGHT rolling sums per column stay in registers: sum[f] = sum[f - 1] + row sum * column tap f, from the last
// f to the first, without register moves. Several rows enter together (TOGETHER), so that a tap is fetched once for all
// of them: for two rows p and q, sum[f] = sum[f - 2] + p * tap f - 1 + q * tap f. Meanwhile the next rows are being
// loaded. Two terms share rows, window and sums.
// Documents: "Row Reuse" for the rolling sums; column reuse is through shared memory, (FILTER_WIDTH + 7) / 4 loads for
// 8 columns where shuffles would be 2 * (FILTER_WIDTH - 1). The sums take TERMS * (FILTER_WIDTH + FILTER_HEIGHT)
// multiply-adds per element instead of FILTER_WIDTH * FILTER_HEIGHT.
// Floor: the larger of one read and one write of every element at the copy rate, and those multiply-adds at the FMA rate.
#include "centre.cuh"
#include "filter.cuh"
#include "separable.cuh"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers
#define BLOCKS 2
#endif
// 2: the two halves of a row's taps are summed separately, which halves the rounding error of integer images
#define ROW_PARTS (USES_MAGIC && FILTER_WIDTH > 4 ? 2 : 1)
#ifndef TOGETHER  // most rows that enter the rolling sums at once: a tap is fetched once for them; a power of two
#define TOGETHER 8
#endif
#define AT_ONCE (TOGETHER < STEP_ROWS ? TOGETHER : STEP_ROWS)
// 1: they are summed separately first, which halves the rounding error of long columns of integer images
#define APART (USES_MAGIC && FILTER_HEIGHT > 48)
#define MIN_BLOCKS (TAKES_MORE && APART && BLOCKS > 6 ? 6 : BLOCKS)
static_assert(STEP_ROWS % AT_ONCE == 0, "rows of a step are shared out evenly");

extern "C" __global__ void __launch_bounds__(WARPS* WARP, MIN_BLOCKS)
    separable(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Terms terms,
              int height, int width, int result_height, int result_width, int count, int block_rows) {
    SHARED_FLOATS(shared);
    const FilterProblem p = {height, width, result_height, result_width, count, block_rows};
    const int lane = threadIdx.x % WARP;
    WarpMemory& memory = reinterpret_cast<WarpMemory*>(shared)[threadIdx.x / WARP];
    const SubBlock block = sub_block_of<LANE_COLUMNS>(p, images, results, (int)blockIdx.x * WARPS + threadIdx.x / WARP);
    if (block.rows == 0) return;

    const int left = block.x - LEFT_PAD;
    const bool whole_vec4s = is_aligned_to<VEC4>(images) && width % VEC4 == 0;
    const Copies copies = whole_vec4s ? copies_beyond_border(left, width) : Copies{0, 0, 0};
    for (int c = lane; c < STAGED_COLUMNS; c += WARP)
        memory.source[c] = source_index(left + c, width) - (left + c / VEC4 * VEC4);
    __syncwarp();

    auto column_of = [&](int i) { return left + vec4_of_load(i, lane) * VEC4; };
    auto is_inside_row = [&](int i) { return column_of(i) >= 0 && column_of(i) + VEC4 <= width; };
    auto source_of = [&](int column) {  // of a float4 that copies replace: any inside
        return source_of_vec4(copies.count > 0 ? min(max(column, 0), width - VEC4) : column, width, whole_vec4s);
    };
    const Vec4Source own_source = source_of(column_of(0)), rest_source = source_of(column_of(STEP_ROWS));
    const Image* own = in_register(block.image + own_source.column);  // of row 0, as if columns outside were there
    const Image* rest = in_register(block.image + rest_source.column);

    int reads_vec4s = (own_source.order != SCATTERED || lane >= STAGED_VEC4S) &&
                      (rest_source.order != SCATTERED || !is_load_needed(STEP_ROWS, lane));
    int as_they_lie = own_source.order == ONWARDS && rest_source.order == ONWARDS;
#pragma unroll
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        reads_vec4s &= __shfl_xor_sync(ALL_LANES, reads_vec4s, distance);
        as_they_lie &= __shfl_xor_sync(ALL_LANES, as_they_lie, distance);
    }
    const int pitch = in_register(width * (int)sizeof(Image));

    Group<Image, VEC4> ahead[LOADS];
    auto load = [&](int y) {
        if (reads_vec4s && y >= 0 && y + STEP_ROWS <= height) {  // one load a float4
#pragma unroll
            for (int i = 0; i < LOADS; ++i)
                if (is_load_needed(i, lane))
                    ahead[i] = group_at<VEC4>(rows_on(i < STEP_ROWS ? own : rest, y + row_of_load(i, lane), pitch));
            return;
        }
        const int source_row = source_index(y + lane % STEP_ROWS, height);
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            const int row = __shfl_sync(ALL_LANES, source_row, row_of_load(i, lane) % STEP_ROWS);
            if (!is_load_needed(i, lane)) continue;
            const Image* from = rows_on(i < STEP_ROWS ? own : rest, row, pitch);
            if ((i < STEP_ROWS ? own_source : rest_source).order == SCATTERED) {
                // Small integers are packed as they come: the warp waits for each.
                const Group<int, VEC4> source = group_at<VEC4>(memory.source + vec4_of_load(i, lane) * VEC4);
#pragma unroll
                for (int k = 0; k < VEC4; ++k) ahead[i].at[k] = from[source.at[k]];
            } else {
                ahead[i] = group_at<VEC4>(from);
            }
        }
    };
    const int first = block.y - TOP, rows = block.rows + FILTER_HEIGHT - 1;
    load(first);

    Level level = level_of(0, 0.0);
    if (USES_MAGIC) {  // the mean of 32 elements spread over the strip
        const int y = block.y + (int)((long long)block.rows * lane / WARP);
        const int x = min(block.x + lane * 13 % WARP * LANE_COLUMNS, width - 1);
        level = level_of(mean_of((int)block.image[(long long)y * width + x]), terms.weight);
    }

    // sum[f]: of the result whose last row comes FILTER_HEIGHT - 1 - f rows on.
    Sum sum[FILTER_HEIGHT > 1 ? FILTER_HEIGHT - 1 : 1][LANE_COLUMNS];
#pragma unroll
    for (int f = 0; f < FILTER_HEIGHT - 1; ++f)
#pragma unroll
        for (int k = 0; k < LANE_COLUMNS; ++k) sum[f][k] = level.fraction;

    const int column = block.x + LANE_COLUMNS * lane;
    const int whole_result = in_register((int)(is_aligned_to<LANE_COLUMNS>(results) && result_width % LANE_COLUMNS == 0 &&
                                        column + LANE_COLUMNS <= result_width));
    Result* const result = in_register(block.result + (long long)block.y * result_width + column);
    const int result_pitch = in_register(result_width * (int)sizeof(Result));
    const Sum* window = memory.staged + in_register(row_of_sums(lane) * STAGED_PITCH + column_of_sums(lane));
    Sum* passed = memory.passed + in_register(row_of_sums(lane) * PASSED_PITCH + column_of_sums(lane));
    unsigned lost = 0;
    auto store = [&](int o, const Sum* sums) {
        Result* to = rows_on(result, o, result_pitch);
        Group<Result, LANE_COLUMNS> group;
        unsigned out_of_range = 0;
#pragma unroll
        for (int k = 0; k < LANE_COLUMNS; ++k)
            out_of_range |= (finish(&group.at[k], sums[k], level) != 0 ? 1u : 0u) << k;
        if (whole_result) {
            *reinterpret_cast<Group<Result, LANE_COLUMNS>*>(to) = group;
        } else {
#pragma unroll
            for (int k = 0; k < LANE_COLUMNS; ++k)
                if (column + k < result_width) to[k] = group.at[k];
        }
        if (IsInteger<Result>::VALUE && CLIPS && out_of_range) {
#pragma unroll
            for (int k = 0; k < LANE_COLUMNS; ++k) lost += (out_of_range >> k & 1) && column + k < result_width;
        }
    };

#pragma unroll 1
    for (int r = 0; r < rows; r += STEP_ROWS) {
        const bool is_step_inside = first + r >= 0 && first + r + STEP_ROWS <= height;
        if (!as_they_lie) {
#pragma unroll
            for (int i = 0; i < LOADS; ++i) put_in_order(ahead[i], (i < STEP_ROWS ? own_source : rest_source).order);
        }
#pragma unroll
        for (int i = 0; i < LOADS; ++i) {
            if (!is_load_needed(i, lane)) continue;
            Group<Sum, VEC4> vec4;
#pragma unroll
            for (int k = 0; k < VEC4; ++k) vec4.at[k] = counted(ahead[i].at, k, level);
            if (BOUNDARY == BOUNDARY_CONSTANT && !(as_they_lie && is_step_inside)) {
                const bool row_inside = is_inside(first + r + row_of_load(i, lane), height);
                if (!row_inside || !is_inside_row(i)) {
#pragma unroll
                    for (int k = 0; k < VEC4; ++k)
                        if (!row_inside || !is_inside(column_of(i) + k, width)) vec4.at[k] = terms.outside - level.base;
                }
            }
            Sum* to = memory.staged + row_of_load(i, lane) * STAGED_PITCH + vec4_of_load(i, lane) * VEC4;
            *reinterpret_cast<Group<Sum, VEC4>*>(to) = vec4;
        }
        if (BOUNDARY == BOUNDARY_MIRROR && copies.count > 0) {
            __syncwarp();
#pragma unroll 1
            for (int c = lane; c < copies.count; c += WARP) {
                const Sum* from = memory.staged + copies.from - c;
                Sum* to = memory.staged + copies.to + c;
#pragma unroll
                for (int i = 0; i < STEP_ROWS; ++i) to[i * STAGED_PITCH] = from[i * STAGED_PITCH];
            }
        }
        __syncwarp();  // rows are staged, and those passed before have been read
        if (r + STEP_ROWS < rows) load(first + r + STEP_ROWS);

        Sum across[TERMS][ROW_PARTS][ROW_SUMS];
#pragma unroll
        for (int i = 0; i < TERMS * ROW_PARTS * ROW_SUMS; ++i) (&across[0][0][0])[i] = 0;
#pragma unroll
        for (int q = 0; q < WINDOW_VEC4S; ++q) {
            const Group<Sum, VEC4> vec4 = group_at<VEC4>(window + q * VEC4);
#pragma unroll
            for (int k = 0; k < VEC4; ++k)
#pragma unroll
                for (int o = 0; o < ROW_SUMS; ++o) {
                    const int e = q * VEC4 + k - SKIP - o;
                    if (e < 0 || e >= FILTER_WIDTH) continue;
#pragma unroll
                    for (int t = 0; t < TERMS; ++t) {
                        Sum& half = across[t][ROW_PARTS > 1 && e > FILTER_WIDTH / 2][o];
                        half = multiply_add(vec4.at[k], terms.row[t][e], half);
                    }
                }
        }
#pragma unroll
        for (int t = 0; t < TERMS; ++t)
#pragma unroll
            for (int o = 0; o < ROW_SUMS; o += VEC4) {
                Group<Sum, VEC4> vec4;
#pragma unroll
                for (int k = 0; k < VEC4; ++k) {
                    vec4.at[k] = across[t][0][o + k];
                    if (ROW_PARTS > 1) vec4.at[k] += across[t][ROW_PARTS - 1][o + k];
                }
                *reinterpret_cast<Group<Sum, VEC4>*>(passed + t * STEP_ROWS * PASSED_PITCH + o) = vec4;
            }
        __syncwarp();  // rows are passed, and the staged ones have been read

#pragma unroll 1
        for (int s = 0; s < STEP_ROWS; s += AT_ONCE) {
            Group<Sum, LANE_COLUMNS> down[TERMS][AT_ONCE];
#pragma unroll
            for (int t = 0; t < TERMS; ++t)
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i)
                    down[t][i] = group_at<LANE_COLUMNS>(memory.passed + (t * STEP_ROWS + s + i) * PASSED_PITCH +
                                                        LANE_COLUMNS * lane);
            // The sum of column k that had `begun` rows before these (fewer than none: it begins among them), with the rows
            // up to `last`.
            auto rolled = [&](int begun, int last, int k) {
                const Sum before = begun > 0 ? sum[begun - 1][k] : level.fraction;
                Sum total = APART ? (Sum)0 : before;
#pragma unroll
                for (int i = 0; i <= last; ++i)
#pragma unroll
                    for (int t = 0; t < TERMS; ++t)
                        if (begun + i >= 0) total = multiply_add(down[t][i].at[k], terms.column[t][begun + i], total);
                return APART ? before + total : total;
            };
            Sum complete[AT_ONCE][LANE_COLUMNS];
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i)
#pragma unroll
                for (int k = 0; k < LANE_COLUMNS; ++k) complete[i][k] = rolled(FILTER_HEIGHT - 1 - i, i, k);
#pragma unroll
            for (int f = FILTER_HEIGHT - 2; f >= 0; --f)
#pragma unroll
                for (int k = 0; k < LANE_COLUMNS; ++k) sum[f][k] = rolled(f - AT_ONCE + 1, AT_ONCE - 1, k);
#pragma unroll
            for (int i = 0; i < AT_ONCE; ++i) {
                const int o = r + s + i - (FILTER_HEIGHT - 1);
                if (o >= 0 && o < block.rows) store(o, complete[i]);
            }
        }
    }
    if (IsInteger<Result>::VALUE && CLIPS && clipped) {
        lost = warp_sum(lost);
        if (lane == 0 && lost) atomicAdd(clipped, (unsigned long long)lost);
    }
}
