// Frames of a stack moved by their shifts: out[y, x] = frame[y - dy, x - dx], one launch for all of them.
//
// A translation has the same weights everywhere in a frame: TAPS along the rows times TAPS down the columns. Two threads
// of a block work them out in float64 from the frame's shift (axis_move.cuh) and leave them in shared memory. A thread
// computes COLUMNS neighbouring columns of a strip of rows and advances down: it reads a row's window once, one row
// ahead, forms COLUMNS sums along the row, and adds each to TAPS - 1 rolling sums down the columns, of which one is
// complete: every pixel is read once (and the TAPS - 1 rows between strips twice), and nothing passes through memory.
// A frame is shifted by any number of pixels, so that its windows begin anywhere: pixels of one or two bytes are read as
// the aligned words that hold them, which a funnel shift puts in order. Windows that reach beyond a frame's edge read
// each pixel by itself, the edge's in place of those outside. Results are written STORE_BYTES at a time.
//
// Floating point distinguishes axes that move by whole pixels, along which NaN must not spread; of integers, weights of
// zero and one give the same bits. TAPS 1 copies bits, whatever they mean.
//
// Documents: Keys, IEEE Trans. ASSP 1981, doi:10.1109/TASSP.1981.1163711 (cubic convolution); Duchon, J. Appl. Meteorol.
// 1979, doi:10.1175/1520-0450(1979)018<1016:LFIOAT>2.0.CO;2 (Lanczos).
// Floor: one read and one write of every pixel at the copy rate: 512 x 512 of uint16 on an H200 (4.1 TB/s) 0.255 us. A
// pixel takes 2 * TAPS multiply-adds: linear and cubic stay below the copy rate's 29 instructions a pixel, Lanczos does not.
#include "pixel.cuh"

#include "axis_move.cuh"

#ifndef COLUMNS  // neighbouring pixels of a thread
#define COLUMNS 4
#endif
#ifndef STORE_BYTES  // written at once: divides the bytes of COLUMNS pixels and of a row, and the address of the result
#define STORE_BYTES 4
#endif
#ifndef COUNTS  // 1: pixels that had to be clipped are counted, frame by frame
#define COUNTS 0
#endif
#ifndef THREADS
#define THREADS 128
#endif
#ifndef BLOCKS  // of a multiprocessor at once: bounds the registers, of which compute capability 10.0 takes some more
#if TAPS > 4
#define BLOCKS 2
#elif TAPS > 2
#define BLOCKS 4
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define BLOCKS 6
#else
#define BLOCKS 7
#endif
#endif

#define PIECE (STORE_BYTES / (int)sizeof(Pixel))  // pixels written at once
static_assert(COLUMNS % PIECE == 0 && PIECE > 0, "a thread writes whole pieces");

struct Frames {
    unsigned long long outside;  // bits of what lies outside, where it is filled
    int height, width;           // of a frame
    int groups;                  // of COLUMNS pixels in a row
    int rows;                    // of a strip
    int blocks;                  // of a frame
    int fills_outside;           // 0: the frame goes on with the values of its edge
};

struct alignas(STORE_BYTES) Piece {
    Pixel at[PIECE];
};

__device__ __forceinline__ float smaller(float a, float b) { return fminf(a, b); }
__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double smaller(double a, double b) { return fmin(a, b); }
__device__ __forceinline__ double larger(double a, double b) { return fmax(a, b); }

// The pixels of a row under COLUMN_TAPS taps for COLUMNS results.
template <int COLUMN_TAPS>
struct Window {
    enum {
        PIXELS = COLUMNS + COLUMN_TAPS - 1,
        WORDS = (PIXELS + PIXELS_A_WORD - 1 + PIXELS_A_WORD - 1) / PIXELS_A_WORD,  // at the worst alignment
        HELD = PIXELS > WORDS ? PIXELS : WORDS,
        BEFORE = PIXELS_A_WORD - 1,               // pixels that the words may hold on either side
        BEHIND = WORDS * PIXELS_A_WORD - PIXELS,
    };
    Word held[HELD];  // words as they lie; beyond an edge a pixel in each
    unsigned bits;    // by which the first pixel lies off a word

    __device__ __forceinline__ void load(const Pixel* row, int begin, int width, bool together) {
        if (!together) {
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) {
                const Pixel pixel = row[min(max(begin + i, 0), width - 1)];
                if constexpr (sizeof(Pixel) < 4) {
                    held[i] = 0;
                    memcpy(&held[i], &pixel, sizeof pixel);
                } else {
                    held[i] = same_bits<Word>(pixel);
                }
            }
        } else if constexpr (sizeof(Pixel) < 4) {
            const unsigned long long address = (unsigned long long)(row + begin);
            const Word* words = reinterpret_cast<const Word*>(address & ~3ull);
            bits = (unsigned)(address & 3) * 8;
#pragma unroll
            for (int i = 0; i < WORDS; ++i) held[i] = words[i];
        } else {
            const Word* words = reinterpret_cast<const Word*>(row + begin);
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) held[i] = words[i];
        }
    }
    // Pixels in their order, PIXELS_A_WORD in each word; of those read one by one the first of each.
    __device__ __forceinline__ void put_in_order() {
        if constexpr (sizeof(Pixel) < 4) {
#pragma unroll
            for (int i = 0; i < WORDS; ++i) {
                const Word next = i + 1 < WORDS ? held[i + 1] : 0;
#if defined(__CUDA_ARCH__)
                held[i] = __funnelshift_r(held[i], next, bits);
#else
                held[i] = (Word)(((unsigned long long)next << 32 | held[i]) >> bits);
#endif
            }
        }
    }
    template <typename Take>
    __device__ __forceinline__ void each(bool together, Take take) const {
        if (together) {
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) take(i, held[i / PIXELS_A_WORD], i % PIXELS_A_WORD);
        } else {
#pragma unroll
            for (int i = 0; i < PIXELS; ++i) take(i, held[i], 0);
        }
    }
};

// Where a thread writes.
struct Target {
    Pixel* row;              // of its first column
    int width, columns;      // of the frame; of the thread, fewer at the frame's right edge
    int first, stop;         // columns of its own that are inside
    Pixel outside;

    __device__ __forceinline__ void write(int y, Pixel (&pixel)[COLUMNS]) const {
        Pixel* to = row + (long long)y * width;
        if (first > 0 || stop < COLUMNS) {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                if (i < first || i >= stop) pixel[i] = outside;
        }
        if (columns == COLUMNS) {
#pragma unroll
            for (int i = 0; i < COLUMNS; i += PIECE) {
                Piece piece;
#pragma unroll
                for (int k = 0; k < PIECE; ++k) piece.at[k] = pixel[i + k];
                *reinterpret_cast<Piece*>(to + i) = piece;
            }
        } else {
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i)
                if (i < columns) to[i] = pixel[i];
        }
    }
    __device__ __forceinline__ void fill(int from, int to) const {
        Pixel pixel[COLUMNS];
#pragma unroll
        for (int i = 0; i < COLUMNS; ++i) pixel[i] = outside;
        for (int y = from; y < to; ++y) write(y, pixel);
    }
};

// Rows [y, stop) of a thread's columns; returns how many pixels were clipped.
template <int ROW_TAPS, int COLUMN_TAPS>
__device__ __forceinline__ int move_rows(const Pixel* frame, const Frames& p, const Target& target, const AxisMove* move,
                                         int x, int y, int stop) {
    constexpr bool copies = ROW_TAPS == 1 && COLUMN_TAPS == 1;
    const int begin = x + move[1].start + (COLUMN_TAPS == 1 ? CENTRE : 0);
    const int above = y + move[0].start + (ROW_TAPS == 1 ? CENTRE : 0);
    typedef Window<COLUMN_TAPS> Row;
    const bool together = begin >= Row::BEFORE && begin + Row::PIXELS + Row::BEHIND <= p.width;
    Sum down[ROW_TAPS], along[COLUMN_TAPS];
#pragma unroll
    for (int k = 0; k < ROW_TAPS; ++k) down[k] = ROW_TAPS == 1 ? (Sum)1 : move[0].weight[k % TAPS];
#pragma unroll
    for (int k = 0; k < COLUMN_TAPS; ++k) along[k] = COLUMN_TAPS == 1 ? (Sum)1 : move[1].weight[k % TAPS];

    auto row_at = [&](int r) { return frame + (long long)min(max(above + r, 0), p.height - 1) * p.width; };
    Sum rolling[ROW_TAPS][COLUMNS];  // of the results to come: those of taps 0 ... k
#pragma unroll
    for (int i = 0; i < ROW_TAPS * COLUMNS; ++i) (&rolling[0][0])[i] = 0;
    int clipped = 0;
    Row ahead;
    ahead.bits = 0;
    ahead.load(row_at(0), begin, p.width, together);
    const int rows = stop - y + ROW_TAPS - 1;
#pragma unroll 1  // two rows at once would take the registers of many warps
    for (int r = 0; r < rows; ++r) {
        Row row = ahead;
        if (r + 1 < rows) ahead.load(row_at(r + 1), begin, p.width, together);
        if (together) row.put_in_order();
        Pixel pixel[COLUMNS];
        if constexpr (copies) {
            row.each(together, [&](int i, Word word, int place) { pixel[i] = pixel_of(word, place); });
        } else {
            Sum value[Row::PIXELS], result[COLUMNS];
            row.each(together, [&](int i, Word word, int place) { value[i] = value_of(word, place); });
#pragma unroll
            for (int i = 0; i < COLUMNS; ++i) {
                Sum across = COLUMN_TAPS == 1 ? value[i] : value[i] * along[0];
#pragma unroll
                for (int k = 1; k < COLUMN_TAPS; ++k) across = fused(value[i + k], along[k], across);
                result[i] = ROW_TAPS == 1 ? across : fused(across, down[ROW_TAPS - 1], rolling[ROW_TAPS - 1][i]);
#pragma unroll
                for (int k = ROW_TAPS - 1; k > 1; --k) rolling[k][i] = fused(across, down[k - 1], rolling[k - 1][i]);
                if (ROW_TAPS > 1) rolling[ROW_TAPS > 1][i] = across * down[0];
                pixel[i] = stored(result[i]);
            }
            if constexpr (COUNTS) {
                // Few rows hold such a pixel: their extremes tell in half the instructions.
                Sum lowest = result[0], highest = result[0];
#pragma unroll
                for (int i = 1; i < COLUMNS; ++i) {
                    lowest = smaller(lowest, result[i]);
                    highest = larger(highest, result[i]);
                }
                if ((is_clipped(lowest) || is_clipped(highest)) && r >= ROW_TAPS - 1) {
#pragma unroll
                    for (int i = 0; i < COLUMNS; ++i)
                        clipped += is_clipped(result[i]) && i >= target.first && i < target.stop;
                }
            }
        }
        if (r >= ROW_TAPS - 1) target.write(y + r - (ROW_TAPS - 1), pixel);
    }
    return clipped;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    translate(const Pixel* frames, Pixel* results, unsigned long long* clipped, const double* shifts,
              const __grid_constant__ Frames p) {
    SHARED_FLOATS(shared);
    AxisMove* move = reinterpret_cast<AxisMove*>(shared);
    const int number = (int)blockIdx.x / p.blocks;
    if (threadIdx.x < 2)
        set_axis_move(move[threadIdx.x], threadIdx.x == 0 ? p.height : p.width, shifts[2 * (long long)number + threadIdx.x],
                      p.fills_outside);
    __syncthreads();

    const int thread = ((int)blockIdx.x - number * p.blocks) * THREADS + (int)threadIdx.x;
    const int strip = thread / p.groups, x = (thread - strip * p.groups) * COLUMNS;
    const int y = min(strip * p.rows, p.height), stop = min(y + p.rows, p.height);
    int mine = 0;  // clipped pixels
    if (y < stop) {
        const long long first_pixel = (long long)number * p.height * p.width;
        const Pixel* frame = frames + first_pixel;
        const int columns = min(COLUMNS, p.width - x);
        const int first = max(move[1].first - x, 0), last = min(move[1].stop - x, columns);
        const Target target = {results + first_pixel + x, p.width, columns, first, min(move[1].stop - x, COLUMNS),
                               same_bits<Pixel>(p.outside)};
        int inside = min(max(y, move[0].first), stop), beyond = max(min(stop, move[0].stop), inside);
        if (first >= last) inside = beyond = stop;
        target.fill(y, inside);
        if (inside < beyond) {
            const bool rows_whole = !Is<Pixel>::INTEGER && TAPS > 1 && move[0].is_whole;
            const bool columns_whole = !Is<Pixel>::INTEGER && TAPS > 1 && move[1].is_whole;
            if constexpr (Is<Pixel>::INTEGER || TAPS == 1) {
                mine = move_rows<TAPS, TAPS>(frame, p, target, move, x, inside, beyond);
            } else if (rows_whole && columns_whole) {
                move_rows<1, 1>(frame, p, target, move, x, inside, beyond);
            } else if (rows_whole) {
                move_rows<1, TAPS>(frame, p, target, move, x, inside, beyond);
            } else if (columns_whole) {
                move_rows<TAPS, 1>(frame, p, target, move, x, inside, beyond);
            } else {
                move_rows<TAPS, TAPS>(frame, p, target, move, x, inside, beyond);
            }
        }
        target.fill(beyond, stop);
    }
    if constexpr (COUNTS) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(ALL_LANES, mine, distance);
        if (threadIdx.x % 32 == 0 && mine) atomicAdd(clipped + number, (unsigned long long)mine);
    }
}
