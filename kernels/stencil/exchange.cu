// Column and row reuse as published: a warp computes a sub-block of 32 columns, one per lane.
//
// For each input row, and each sub-filter of five, three or single columns (exchange.cuh), a lane gets its elements by
// two loads and exchanges with other lanes, and multiplies them with every filter row that applies, into FILTER_HEIGHT
// rolling sums: sum[f] = sum[f - 1] + row . filter[f]. (The document indexes its sums by the output row, which puts
// them into local memory.) Options, each 1 as published:
//     COLUMN_REUSE  elements are exchanged; 0: every lane loads all of its own
//     ROW_REUSE     a row is loaded once; 0: once for each of the filter's rows
//     SHARED_TAPS   the filter is staged in shared memory; 0: operands from constant memory
//     SHARED_LAST   what the last sub-block of a row computes, fewer than 32 columns, is divided among all lanes, each of
//                   which computes its elements directly; 0: a lane a column, some of them idle
//     EDGES_APART   sub-blocks cover the results that need nothing outside the image; warps of their own compute the
//                   others directly; 0: sub-blocks cover all results
// All of them give the same bits: a sum has one order, along the filter's rows.
// Document: "Column Reuse", "Row Reuse", "Putting Together"; block_rows is its k = 56. reuse.cu is the kernel in use.
// Floor: the larger of one read and one write of every element at the copy rate, and the multiply-adds.
#include "exchange.cuh"

#ifndef ROW_REUSE
#define ROW_REUSE 1
#endif
#ifndef SHARED_TAPS
#define SHARED_TAPS 1
#endif
#ifndef SHARED_LAST
#define SHARED_LAST 1
#endif
#ifndef EDGES_APART
#define EDGES_APART 1
#endif
#ifndef WARPS
#define WARPS 4
#endif

#define EDGE_SHARE 256  // elements of a warp at the edges; also in stencil/exchange.py

// What a block needs besides its image: sizes, and the filter.
struct Filter {
    const FilterProblem& p;
    const Taps& taps;
    const Sum* staged;
    __device__ __forceinline__ Sum tap(int f, int e) const {
        const int i = f * FILTER_WIDTH + e;
        return SHARED_TAPS ? staged[i] : taps.at[i];
    }
    // One element of an image, or what stands for it outside.
    __device__ __forceinline__ Sum element(const Image* image, int y, int x) const {
        if (BOUNDARY == BOUNDARY_CONSTANT && !(is_inside(y, p.height) && is_inside(x, p.width))) return taps.outside;
        return (Sum)image[(long long)source_index(y, p.height) * p.width + source_index(x, p.width)];
    }
    __device__ __forceinline__ Sum direct(const Image* image, int y, int x) const {
        Sum sum = 0;
#pragma unroll 1
        for (int f = 0; f < FILTER_HEIGHT; ++f)
#pragma unroll 1
            for (int e = 0; e < FILTER_WIDTH; ++e)
                sum = multiply_add(element(image, y + f - TOP, x + e - LEFT), tap(f, e), sum);
        return sum;
    }
};

// A row of an image as the lanes of a warp read it: from column x on, of this lane.
struct WarpRow {
    const Image* image;
    int y, x, lane;
    bool inner;  // all elements of all lanes are inside the image
    template <int SIZE>
    __device__ __forceinline__ SubRow<SIZE> read(const Filter& filter, int column) const {
        if (inner && COLUMN_REUSE) return exchanged_row<SIZE>(image + (long long)y * filter.p.width + x + column, lane);
        SubRow<SIZE> row;
#pragma unroll
        for (int e = 0; e < SIZE; ++e) row.at[e] = filter.element(image, y, x + column + e);
        return row;
    }
};

// Hands the elements of each sub-filter to `take(elements, first column)`, in the order of the columns.
template <typename Take>
__device__ __forceinline__ void sub_filters(const Filter& filter, const WarpRow& row, const Take& take) {
    constexpr int AT_ONCE = FIVES <= 3 ? 3 : 1;
    int column = 0;
#pragma unroll AT_ONCE
    for (int i = 0; i < FIVES; ++i, column += 5) take(row.read<5>(filter, column), column);
#pragma unroll
    for (int i = 0; i < THREES; ++i, column += 3) take(row.read<3>(filter, column), column);
#pragma unroll
    for (int i = 0; i < SINGLES; ++i, ++column) take(row.read<1>(filter, column), column);
}

template <typename Elements>
__device__ __forceinline__ Sum product(const Filter& filter, const Elements& elements, int f, int column, Sum sum) {
#pragma unroll
    for (int e = 0; e < Elements::WIDTH; ++e) sum = multiply_add(elements.at[e], filter.tap(f, column + e), sum);
    return sum;
}

// The results that sub-blocks cover; the others, if any, are the edges.
struct Region {
    int x, y, columns, rows;
};
__device__ __forceinline__ Region covered(const FilterProblem& p) {
    if (!EDGES_APART) return {0, 0, p.result_width, p.result_height};
    const int columns = p.width - FILTER_WIDTH + 1, rows = p.height - FILTER_HEIGHT + 1;
    if (columns <= 0 || rows <= 0) return {0, 0, 0, 0};
    return {LEFT, TOP, columns, rows};
}

__device__ __forceinline__ int filter_edges(const Filter& filter, const Region& region, const Image* image, Result* result,
                                            int first, int lane) {
    const FilterProblem& p = filter.p;
    const int whole = (p.result_height - region.rows) * p.result_width, beside = p.result_width - region.columns;
    const int last = min(first + EDGE_SHARE, whole + region.rows * beside);
    int mine = 0;
#pragma unroll 1
    for (int i = first + lane; i < last; i += WARP) {
        int y, x;
        if (i < whole) {  // rows above and below the region
            y = i / p.result_width;
            x = i - y * p.result_width;
            if (y >= region.y) y += region.rows;
        } else {  // columns on its left and right
            y = (i - whole) / beside;
            x = i - whole - y * beside;
            y += region.y;
            if (x >= region.x) x += region.columns;
        }
        mine += put(result + (long long)y * p.result_width + x, filter.direct(image, y, x));
    }
    return mine;
}

// `x`, `y`: the first result of a sub-block of `columns`, up to 32, and `rows`.
__device__ __forceinline__ int filter_sub_block(const Filter& filter, const Image* image, Result* result, int x, int y,
                                                int columns, int rows, int lane) {
    const FilterProblem& p = filter.p;
    int mine = 0;
    if (SHARED_LAST && columns < WARP) {
#pragma unroll 1
        for (int i = lane; i < columns * rows; i += WARP) {
            const int down = i / columns, across = i - down * columns;
            Result* to = result + (long long)(y + down) * p.result_width + x + across;
            mine += put(to, filter.direct(image, y + down, x + across));
        }
        return mine;
    }
    WarpRow row = {image, 0, x + lane - LEFT, lane, x >= LEFT && x - LEFT + WARP - 1 + FILTER_WIDTH <= p.width};
    const bool row_inside = row.inner;
    result += (long long)y * p.result_width + x + lane;
#if ROW_REUSE
    Sum sum[FILTER_HEIGHT];
#pragma unroll
    for (int f = 0; f < FILTER_HEIGHT; ++f) sum[f] = 0;
#pragma unroll 1
    for (int r = 0; r < rows + FILTER_HEIGHT - 1; ++r) {
        row.y = y + r - TOP;
        row.inner = row_inside && is_inside(row.y, p.height);
#pragma unroll
        for (int f = FILTER_HEIGHT - 1; f > 0; --f) sum[f] = sum[f - 1];
        sum[0] = 0;
        sub_filters(filter, row, [&](const auto& elements, int column) {
#pragma unroll
            for (int f = FILTER_HEIGHT - 1; f >= 0; --f) sum[f] = product(filter, elements, f, column, sum[f]);
        });
        const int o = r - (FILTER_HEIGHT - 1);
        if (o >= 0 && lane < columns) mine += put(result + (long long)o * p.result_width, sum[FILTER_HEIGHT - 1]);
    }
#else
#pragma unroll 1
    for (int o = 0; o < rows; ++o) {
        Sum sum = 0;
#pragma unroll 1
        for (int f = 0; f < FILTER_HEIGHT; ++f) {
            row.y = y + o + f - TOP;
            row.inner = row_inside && is_inside(row.y, p.height);
            sub_filters(filter, row,
                        [&](const auto& elements, int column) { sum = product(filter, elements, f, column, sum); });
        }
        if (lane < columns) mine += put(result + (long long)o * p.result_width, sum);
    }
#endif
    return mine;
}

extern "C" __global__ void __launch_bounds__(WARPS* WARP, 1)
    exchange(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Taps taps,
             FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;
    SHARED_FLOATS(shared);
    Sum* staged = reinterpret_cast<Sum*>(shared);
    if (SHARED_TAPS) {
        for (int i = threadIdx.x; i < FILTER_HEIGHT * FILTER_WIDTH; i += WARPS * WARP) staged[i] = taps.at[i];
        __syncthreads();
    }
    const Filter filter = {p, taps, staged};
    const int lane = threadIdx.x % WARP, warp = same_in_warp((int)blockIdx.x * WARPS + threadIdx.x / WARP);
    const Region region = covered(p);
    const int across = ceil_div(region.columns, WARP), sub_blocks = across * ceil_div(region.rows, p.block_rows);
    const bool at_edge = warp >= p.count * sub_blocks;
    const int edges = p.result_width * p.result_height - region.columns * region.rows;
    const int each = at_edge ? ceil_div(edges, EDGE_SHARE) : sub_blocks, own = at_edge ? warp - p.count * sub_blocks : warp;
    if (each == 0 || own >= p.count * each) return;
    const int image = own / each, part = own - image * each;
    const Image* from = images + (long long)image * p.height * p.width;
    Result* to = results + (long long)image * p.result_height * p.result_width;
    int mine;
    if (at_edge) {
        mine = filter_edges(filter, region, from, to, part * EDGE_SHARE, lane);
    } else {
        const int down = part / across, column = (part - down * across) * WARP, row = down * p.block_rows;
        mine = filter_sub_block(filter, from, to, region.x + column, region.y + row, min(WARP, region.columns - column),
                                min(p.block_rows, region.rows - row), lane);
    }
    add_clipped(clipped, mine);
}
