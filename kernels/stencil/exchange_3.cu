// Column reuse of three columns as the document has it: two loads and one exchange between neighbouring lanes.
// Lane t loads the elements t and t + 2 of a row. Its second element, t + 1, is the first of lane t + 1 where t is even,
// and the third of lane t - 1 where t is odd: even lanes send their third, odd lanes their first.
// Document: "Column Reuse", data exchange algorithm for the second element. One correction: the document unpacks into
// the first element, which destroys it; here the value to be sent has its own variable. Kept for the ablation of
// reuse.cu; COLUMN_REUSE and ROW_REUSE switch either step off (exchange.cuh).
#define FILTER_WIDTH 3
#include "exchange.cuh"

__device__ __forceinline__ void exchange_columns(Window& window, const Image* row, int x, int lane) {
    window.at[0] = (float)row[x];
    window.at[2] = (float)row[x + 2];
    window.at[1] = exchanged(window.at[0], window.at[2], 1, lane);
}

extern "C" __global__ void __launch_bounds__(WARPS* WARP)
    exchange_3(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Taps taps,
               FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;
    filter_sub_block(p, images, results, clipped, taps);
}
