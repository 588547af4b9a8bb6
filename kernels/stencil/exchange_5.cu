// Column reuse of five columns as the document has it: two loads and three exchanges.
// Lane t loads the elements t and t + 4 of a row. Its third element comes from two lanes away (lanes with bit 1 clear send
// their fifth, the others their first); its second and fourth come from the neighbouring lane, as in exchange_3.cu.
// Document: "Column Reuse", data exchange algorithms for the third and the second element. Two corrections: the value
// to be sent has its own variable, where the document unpacks into the first element and destroys it; and the fourth
// element, which the document omits, is exchanged like the second, between the third and the fifth. Kept for the
// ablation of reuse.cu; COLUMN_REUSE and ROW_REUSE switch either step off (exchange.cuh).
#define FILTER_WIDTH 5
#ifndef FILTER_HEIGHT
#define FILTER_HEIGHT 5
#endif
#include "exchange.cuh"

__device__ __forceinline__ void exchange_columns(Window& window, const Image* row, int x, int lane) {
    window.at[0] = (float)row[x];
    window.at[4] = (float)row[x + 4];
    window.at[2] = exchanged(window.at[0], window.at[4], 2, lane);
    window.at[1] = exchanged(window.at[0], window.at[2], 1, lane);
    window.at[3] = exchanged(window.at[2], window.at[4], 1, lane);
}

extern "C" __global__ void __launch_bounds__(WARPS* WARP)
    exchange_5(const Image* images, Result* results, unsigned long long* clipped, const __grid_constant__ Taps taps,
               FILTER_PARAMETERS) {
    const FilterProblem p = FILTER_ARGUMENTS;
    filter_sub_block(p, images, results, clipped, taps);
}
