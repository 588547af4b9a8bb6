// Im2win convolution, high-performance form: a block multiplies tiles of filters and of the window tensor.
//
// For the product itself, its tunables and the steps of the ablation see `product_tile.cuh`; for how its operands are
// loaded see `im2win_gather.cuh`. IMPLICIT 1 takes the window tensor's elements from the images as they are needed, so
// that the tensor is neither written nor read; both give the same bits.
// Where there are too few tiles to fill the device, blocks split K: each sums `segment_tiles` tiles of it. The first
// stores its sums in the output, the others in a workspace that `add_segments.cu` adds to it afterwards, in order.
//
// Document: Im2win, Algorithm 3, corrected: sums of M_T x N_T, the last product filter x window, a final store, and
// masks.
// Floor: the FMA rate; the copy rate (the output) where K is small.
#include "im2win_gather.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    im2win_convolve(const float* source, const float* filter, float* output, float* workspace, IM2WIN_PARAMETERS, int segment_tiles) {
    const Im2win p = IM2WIN_ARGUMENTS;
    SHARED_FLOATS(buffers);  // BUFFERS tiles, later at least MICRO_N floats a thread; then offsets
    constexpr int FLOATS = BUFFERS * BUFFER_FLOATS > THREADS * MICRO_N ? BUFFERS * BUFFER_FLOATS : THREADS * MICRO_N;
    // Tiles of filters fastest: the blocks that share columns run at the same time.
    const int m_tiles = (p.filters + TILE_M - 1) / TILE_M, n_tiles = (p.columns() + TILE_N - 1) / TILE_N;
    // Divisions are dear where K is small: often there is one tile of filters, and one segment.
    const int tile = m_tiles == 1 ? (int)blockIdx.x : (int)blockIdx.x / m_tiles;
    const int segment = tile < n_tiles ? 0 : tile / n_tiles;
    const int m_first = ((int)blockIdx.x - tile * m_tiles) * TILE_M, n_first = (tile - segment * n_tiles) * TILE_N;
    const int k_tiles = (p.depth() + TILE_K - 1) / TILE_K, tiles = k_tiles - segment * segment_tiles;
    const TilePlace place = tile_place();

    float sum[MICRO_M][MICRO_N];
    Im2winCopies copies(p, source, filter, reinterpret_cast<int*>(buffers + FLOATS), m_first, n_first,
                        segment * segment_tiles * TILE_K);
    multiply_depth(copies, buffers, tiles < segment_tiles ? tiles : segment_tiles, place, sum);
    const int columns = p.columns(), plane = p.plane();
    const long long outputs = (long long)p.images * p.filters * p.plane_pitch;
    float* to = segment == 0 ? output : workspace + (segment - 1) * outputs;
    store_sums(to, p.filters, columns, plane, p.plane_pitch, buffers, m_first, n_first, place, sum);
}
