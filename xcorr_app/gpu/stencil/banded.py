"""Launch parameters of separable taps on tensor cores: which problems, strip, rows, grid, defines and taps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.runtime.launch import WARP, Launch, ceil_div, refuse_unknown
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.stencil.separable import SeparableProblem, Vector

__all__ = ["LONGEST", "TUNABLES", "banded_argument", "banded_launch", "fits_banded", "is_faster_banded"]

TUNABLES = frozenset(("WARPS", "WARP_COLUMNS", "BLOCKS", "BLOCK_ROWS"))
"""Macros that a caller may set; BLOCK_ROWS is the number of rows of a block."""

LONGEST = 65
"""Most taps of a column or a row."""

_LARGEST_WIDTH = 2**25
"""Sixteen rows' bytes are counted in 31 bits."""
_TOP_EXPONENT = 9  # as in the kernel: scaled values and sums lie below 2^9
_TAP_EXPONENT = 3
"""The largest tap of a column or a row is brought to [2^3, 2^4): its second half is a normal number."""
_SUB_BLOCK_WORDS = 8
_RESERVED = 1024
"""Bytes of shared memory that the driver keeps of every block."""
_ROW_TILE = 16
_WIDE, _NARROW = 32, 16
"""Columns of a warp. Twice as many share what a block stages and fetches; half as many make more blocks."""
_WARPS = 4
_BLOCKS = {
    _WIDE: {True: {2: 5, 3: 4, 4: 3, 5: 3, 6: 2}, False: {2: 4, 3: 3, 4: 2, 5: 2, 6: 2}},
    _NARROW: {True: {2: 6, 3: 5, 4: 4, 5: 4, 6: 3}, False: {2: 6, 3: 4, 4: 3, 5: 3, 6: 2}},
}
"""Blocks of a multiprocessor, by the columns of a warp, whether both axes have the same taps, and the products of 16
along the longer one: as many as leave registers enough."""
_ROW_TILES_OF_NARROW = {2: 4, 3: 4, 4: 16, 5: 16, 6: 16}
"""Tiles of 16 rows of a stack for each multiprocessor, by those products, up to which narrow blocks are faster: many
where the registers leave room for few wide ones."""
_WAITED = 3.0
"""What a multiprocessor waits for a row tile, whatever the number of its blocks, in the time that each of them adds."""
_MAX_ROW_TILES = 24
"""Of a block's rows: with longer ones nothing evens out what blocks take. 64 images of 1024 x 1024 and 33 taps took 250
us with 64, 233 with 16."""
_MIN_RESULTS, _FEW_RESULTS = 2**16, 2**20
"""Of a stack: the smallest that was measured, and the largest that does not fill a device, where `separable` waits."""
_SHORTEST_SIDE, _LARGEST_IMAGE = 100, 2**26
"""Of results: the shortest that was measured, and the most of an image: `separable` looks through its blocks' marks."""
_FILLED = {"few": 10.0, "unaligned": 8.5, "many": 11.0, "full": 13.0}
"""Taps of a column for each product of 16 along it, from which on tensor cores are the faster ones: 33 taps have 11, as
they fill three products, 41 have 10.25 and 65 have 13. By whether results are few, and whether rows of images begin off
multiples of four, which slows `separable` down most."""
_SOME_RESULTS, _LONG_TAPS = 2**22, 33
"""Results up to which taps of the axes may differ, if they fill their products wholly and both are so many."""
_VECTOR = 4
_GAINS = range(-40, 1)
"""Exponents of the sums' scale against the results' that leave room for values of every size."""


def fits_banded(problem: SeparableProblem, column: Vector, row: Vector, image_type: str, result_type: str) -> bool:
    """Whether the kernel computes a problem: one term of 2 to `LONGEST` taps an axis, float32 to float32."""
    if problem.terms != 1 or (image_type, result_type) != ("float32", "float32"):
        return False
    if not 2 <= min(problem.filter_shape) <= max(problem.filter_shape) <= LONGEST:
        return False
    if problem.image_shape[1] >= _LARGEST_WIDTH:
        return False
    sizes = [float(np.abs(taps).max()) * taps.size for taps in (column, row)]
    if not all(0 < size < math.inf for size in sizes):
        return False
    return _gain(column, row) in _GAINS


def banded_launch(
    problem: SeparableProblem,
    *,
    same_taps: bool = False,
    device: DeviceLimits | None = None,
    tuning: Mapping[str, int] | None = None,
) -> Launch:
    """Choose grid and defines.

    Examples
    --------
    >>> banded_launch(SeparableProblem((1024, 1024), (65, 65)), same_taps=True).entry
    'banded'
    """
    device = device or DeviceLimits()
    rows, columns = problem.filter_shape
    same = int(same_taps and rows == columns)
    chosen = _tuning_of(problem, device, same_taps=bool(same))
    refuse_unknown("banded", tuning or (), TUNABLES)
    chosen |= tuning or {}
    block_bytes = _block_bytes(problem, chosen, same_taps=bool(same))
    steps = _steps(problem, same_taps=bool(same))[0]
    # A multiprocessor's shared memory is that of the largest block, and what is reserved for it.
    resident = min(chosen["BLOCKS"], (device.shared_bytes + _RESERVED) // (block_bytes + _RESERVED))
    block_rows = chosen.pop("BLOCK_ROWS", 0)
    if not block_rows:
        block_rows = _block_rows(problem, chosen, steps, max(1, resident), device.multiprocessors)
    defines: dict[str, str | int] = {
        **problem.defines(),
        "FILTER_WIDTH": columns,
        "SAME_TAPS": same,
        "BLOCK_BYTES": block_bytes,
        **chosen,
    }
    height, width = problem.result_shape
    strips = ceil_div(width, chosen["WARPS"] * chosen["WARP_COLUMNS"])
    blocks = problem.count * strips * ceil_div(height, block_rows)
    threads = chosen["WARPS"] * WARP
    return Launch("stencil/banded", defines, blocks, threads, block_bytes, problem.numbers(block_rows))


def banded_argument(column: Vector, row: Vector, outside: float) -> npt.NDArray[np.void]:
    """Pack taps as the kernel takes them: a struct by value, scaled by powers of two that it takes back."""
    fields = [("column", np.float32, column.shape), ("row", np.float32, row.shape), ("outside", np.float32)]
    exponents = [(name, np.int32) for name in ("reach", "gain", "lowest")]
    packed = np.zeros((), np.dtype([*fields, *exponents]))
    packed["column"] = np.ldexp(column, _TAP_EXPONENT - _exponent(np.abs(column).max()))
    packed["row"] = np.ldexp(row, _TAP_EXPONENT - _exponent(np.abs(row).max()))
    packed["outside"] = outside
    packed["reach"] = _reach(row) + _TAP_EXPONENT - _exponent(np.abs(row).max())
    packed["gain"] = _gain(column, row)
    # Sums of smaller elements would come back, or they be scaled, by a power of two that is no number.
    packed["lowest"] = max(-126 - _gain(column, row), _TOP_EXPONENT - 1 - 127)
    return packed


def is_faster_banded(problem: SeparableProblem, *, same_taps: bool) -> bool:
    """Whether tensor cores are faster than `separable`: columns whose taps fill their products of 16.

    The time of `separable` grows with every tap, most with those of columns; that of tensor cores with every sixteenth.
    """
    results = problem.count * math.prod(problem.result_shape)
    of_image = math.prod(problem.result_shape)
    if results < _MIN_RESULTS or min(problem.result_shape) < _SHORTEST_SIDE or of_image > _LARGEST_IMAGE:
        return False
    filled = problem.filter_shape[0] / _steps(problem, same_taps=same_taps)[0]
    if results <= _FEW_RESULTS:
        return filled >= _FILLED["few"]
    if problem.image_shape[1] % _VECTOR:
        return filled >= _FILLED["unaligned"]
    if results <= _SOME_RESULTS and min(problem.filter_shape) >= _LONG_TAPS and filled >= _FILLED["full"]:
        return True
    return same_taps and filled >= _FILLED["many"]


def _exponent(value: float) -> int:
    """Return e with 2^e <= value < 2^(e + 1)."""
    return math.frexp(value)[1] - 1


def _reach(row: Vector) -> int:
    """Return e for which 2^e is more than the sum of all |row|."""
    return _exponent(float(np.abs(row).sum())) + 1


def _gain(column: Vector, row: Vector) -> int:
    """Exponent that brings the kernel's sums back, of values scaled by 2^0."""
    return _reach(row) + (1 - _TOP_EXPONENT) - (_TAP_EXPONENT - _exponent(float(np.abs(column).max())))


def _steps(problem: SeparableProblem, *, same_taps: bool) -> tuple[int, int]:
    """Products of 16 along a column and along a row, as ``banded.cu`` counts them."""
    (rows, columns), skipped = problem.filter_shape, _skipped(problem)
    return ceil_div(15 + rows + (skipped if same_taps else 0), 16), ceil_div(15 + columns + skipped, 16)


def _skipped(problem: SeparableProblem) -> int:
    """Columns before the first that is needed: a block's begin at a multiple of four."""
    return -problem.first[1] % 4


def _tuning_of(problem: SeparableProblem, device: DeviceLimits, *, same_taps: bool) -> dict[str, int]:
    """Warps of a block, columns of a warp, and blocks of a multiprocessor, as registers allow.

    Warps are narrow where that leaves out a quarter of the columns, or wide blocks would be too few.
    """
    steps = max(_steps(problem, same_taps=same_taps))
    height, width = problem.result_shape
    wide, narrow = (ceil_div(width, _WARPS * columns) * columns for columns in (_WIDE, _NARROW))
    row_tiles = problem.count * (wide // _WIDE) * ceil_div(height, _ROW_TILE)
    is_narrow = 4 * narrow <= 3 * wide or row_tiles <= _ROW_TILES_OF_NARROW[steps] * device.multiprocessors
    columns = _NARROW if is_narrow else _WIDE
    return {"WARPS": _WARPS, "WARP_COLUMNS": columns, "BLOCKS": _BLOCKS[columns][same_taps][steps]}


def _block_rows(
    problem: SeparableProblem, chosen: Mapping[str, int], steps: int, resident: int, processors: int
) -> int:
    """Rows of a block's results, whole row tiles: many, as each block begins with `steps` - 1 row tiles of its own.

    But waves are whole, of `resident` blocks of every multiprocessor; the last takes less where it has fewer.
    """
    height, width = problem.result_shape
    strips = problem.count * ceil_div(width, chosen["WARPS"] * chosen["WARP_COLUMNS"])
    row_tiles = ceil_div(height, _ROW_TILE)

    def time(each: int) -> float:
        waves, rest = divmod(strips * ceil_div(row_tiles, each), resident * processors)
        last = _WAITED + ceil_div(rest, processors) if rest else 0
        return (each + steps - 1) * (waves * (_WAITED + resident) + last)

    return _ROW_TILE * min(range(1, min(row_tiles, _MAX_ROW_TILES) + 1), key=time)


def _block_bytes(problem: SeparableProblem, chosen: Mapping[str, int], *, same_taps: bool) -> int:
    """Shared memory of a block, as ``banded.cu`` lays it out."""
    warps, (down, across) = chosen["WARPS"], _steps(problem, same_taps=same_taps)
    vectors = (warps * chosen["WARP_COLUMNS"] - 16 + 16 * across) // 4
    pitch = (vectors + 3) // 8 * 8 + 4
    loads = ceil_div(16 // warps * vectors, WARP)
    arrivals = loads * warps * WARP
    rest = (down + 1) * warps + 4 * vectors + 2 * loads * warps * WARP + sum(problem.filter_shape) + _SUB_BLOCK_WORDS
    return 16 * (2 * 16 * pitch + arrivals + ceil_div(rest, 4))
