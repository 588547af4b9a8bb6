"""Plans of `shallow.cu`, for few values a result: the patch of a thread, the filters of a block, when to take it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise.convolution import Convolution
from xcorr_app.gpu.pointwise.problem import MAX_ELEMENTS, PointwiseProblem
from xcorr_app.gpu.runtime.launch import ceil_div
from xcorr_app.gpu.runtime.limits import DeviceLimits

_DEEPEST = 64
"""Products in a result up to which the kernel is chosen where a thread has enough results."""
_MIN_PIXELS = 4
"""Results of a thread from which it is: four multiply-adds or more for each of the filters' elements read."""

THREADS = 128
"""Of a block."""
_GROUP, _GROUP_OF_FEW, _FEW_PIXELS = 4, 8, 2
"""Filters that a thread sums at once; where it has so few results of each, more."""
_MAX_VALUES = 208
"""Values and sums that the registers of a thread hold, of 255; measured by the compiler's report."""
_REGISTERS_BESIDES, _ADDRESSES_BESIDES = 24, 12
"""What a thread takes besides, so many addresses of values among it."""
_REGISTERS_OF_SCALARS, _REGISTERS_OF_INTEGERS = 40, 32
"""What it takes more where it moves no vectors; and in the worst case where results are rounded."""
MAX_HELD = _MAX_VALUES + _REGISTERS_BESIDES
"""Registers that a patch may be made to take."""
_REGISTERS, _MAX_THREADS = 65536, 1024
"""Of a multiprocessor; as many threads as the smallest has."""
_FEW_PRODUCTS, _FEW_FILTERS = 40, 2
"""Products of a result up to which storing takes the time, of more filters than so few: then a thread's results are of
one row, as warps that write pieces of several rows end within lines."""
_BLOCKS = 2
"""Of a multiprocessor, at least: where there are fewer, blocks share the filters."""


def why_not_pixels(problem: PointwiseProblem) -> str | None:
    """Say why the kernel does not mix the channels of a problem, if it does not."""
    if problem.interleaved:
        return f"shallow mixes planes, not channels that lie side by side: {problem}"
    if problem.channels * problem.inner > MAX_ELEMENTS:
        return f"one image has more than {MAX_ELEMENTS} elements: cut it into parts ({problem})"
    return None


@dataclass(frozen=True)
class ShallowProblem:
    """Sizes and types; a pointwise problem's planes are single rows.

    Attributes
    ----------
    layer : Convolution
        Sizes.
    image_type, result_type : str
        NumPy names, of `POINTWISE_TYPES`.
    density, clip, count : bool
        As in `PointwiseProblem`.
    bank : bool
        Whether filters come as a bank holds them, not as a matrix.
    """

    layer: Convolution
    image_type: str = "float32"
    result_type: str = "float32"
    density: bool = False
    clip: bool = False
    count: bool = False
    bank: bool = False

    @classmethod
    def of_pixels(cls, problem: PointwiseProblem) -> ShallowProblem:
        """Return a pointwise problem of planes."""
        if refusal := why_not_pixels(problem):
            raise ArgumentError(refusal)
        layer = Convolution(problem.outer, problem.channels, 1, problem.inner, problem.filters, 1, 1)
        types = (problem.image_type, problem.result_type)
        return cls(layer, *types, problem.density, problem.clip, problem.count)

    @classmethod
    def of_bank(cls, layer: Convolution) -> ShallowProblem:
        """Return a convolution of float32 images; filters of one element see planes as rows."""
        if layer.filter_height == layer.filter_width == layer.stride == 1:
            layer = Convolution(layer.images, layer.channels, 1, layer.height * layer.width, layer.filters, 1, 1)
        return cls(layer, bank=True)

    @property
    def flat(self) -> bool:
        """Whether a plane may be seen as rows of any width."""
        return self.layer.height == self.layer.filter_height == self.layer.filter_width == self.layer.stride == 1

    @property
    def element_bytes(self) -> tuple[int, int]:
        """Of an element of the images and of the results."""
        return np.dtype(self.image_type).itemsize, np.dtype(self.result_type).itemsize


@dataclass(frozen=True)
class Patch:
    """A thread's results: `columns` x `rows` of them, and the vectors that it reads and writes.

    Attributes
    ----------
    columns, rows : int
        Along a row and down a plane.
    vector_in, vector_out : int
        Elements.
    """

    columns: int
    rows: int
    vector_in: int
    vector_out: int

    @property
    def pixels(self) -> int:
        """Results of a filter."""
        return self.columns * self.rows

    def values(self, layer: Convolution) -> int:
        """Return how many values of the images it takes."""
        rows = (self.rows - 1) * layer.stride + layer.filter_height
        return layer.channels * rows * ((self.columns - 1) * layer.stride + layer.filter_width)

    def registers(self, layer: Convolution, group: int) -> int:
        """Return what the values and the sums of a group take, and the addresses on the way to the values."""
        values = self.values(layer)
        addresses = values // (layer.channels * self.vector_in)
        return values + group * self.pixels + max(0, addresses - _ADDRESSES_BESIDES) * 3 // 4

    def widths(self, problem: ShallowProblem) -> tuple[int, int]:
        """Return the elements of a row of images and of results, as the kernel sees them."""
        if not problem.flat:
            return problem.layer.width, problem.layer.out_width
        width = ceil_div(problem.layer.width, self.pixels) * self.columns
        return width, width

    def grid(self, problem: ShallowProblem) -> tuple[int, int]:
        """Return how many of them lie along a row and down a plane."""
        rows = 1 if problem.flat else ceil_div(problem.layer.out_height, self.rows)
        return ceil_div(self.widths(problem)[1], self.columns), rows

    def defines(self) -> dict[str, int]:
        """Return the kernel's macros."""
        sizes = {"PIXELS_X": self.columns, "PIXELS_Y": self.rows}
        return {**sizes, "VECTOR_IN": self.vector_in, "VECTOR_OUT": self.vector_out}


def is_shallow(problem: ShallowProblem, alignment: int = 16) -> bool:
    """Whether a problem is one for this kernel: the rule that decides between it and a tiled product."""
    patches = _patches(problem, alignment)
    return problem.layer.depth <= _DEEPEST and any(patch.pixels >= _MIN_PIXELS for patch in patches)


@functools.lru_cache(maxsize=1024)
def plan_for(
    problem: ShallowProblem,
    device: DeviceLimits,
    *,
    alignment: int = 16,
    group: int | None = None,
    threads: int = THREADS,
) -> tuple[Patch, int]:
    """Choose the patch of a thread and the filters of a block."""
    patches = list(_patches(problem, alignment, group))
    if not patches:
        raise ArgumentError(f"shallow keeps all values of a result in registers: {problem.layer.depth} are too many")
    layer = problem.layer
    is_stored = not problem.flat and layer.depth < _FEW_PRODUCTS and layer.filters > _FEW_FILTERS
    patch = next((patch for patch in patches if patch.rows == 1 or not is_stored), patches[0])
    together, (along, down) = group or group_of(problem, patch), patch.grid(problem)
    of_pixels = ceil_div(layer.images * along * down, threads)
    shares = _shares(layer.filters, together)
    fitting = [share for share in shares if shared_bytes_of(problem, share, together) <= device.shared_bytes]
    wanted = _BLOCKS * device.multiprocessors
    enough = [share for share in fitting if of_pixels * ceil_div(layer.filters, share) >= wanted]
    return patch, next(iter(enough), fitting[-1])


def group_of(problem: ShallowProblem, patch: Patch) -> int:
    """Return the filters that a thread sums at once: enough multiply-adds between stores, where it has few results."""
    return _GROUP_OF_FEW if patch.pixels <= _FEW_PIXELS and not problem.flat else _GROUP


def _shares(filters: int, group: int) -> list[int]:
    """Return the filters that a block may have: whole groups, shared evenly."""
    groups = ceil_div(filters, group)
    return list(dict.fromkeys(ceil_div(groups, n) * group for n in range(1, groups + 1)))


def _patches(problem: ShallowProblem, alignment: int, given: int | None = None) -> Iterator[Patch]:
    """Patches whose values and sums fit the registers, the largest first; as wide as rows allow vectors."""
    layer, widest = problem.layer, 1
    row = layer.width if problem.flat else layer.out_width
    for vector in (2, 4):
        if row % vector == 0 and _allows(problem, alignment, vector):
            widest = vector
    for pixels in (8, 4, 2, 1):
        patch = patch_of(problem, min(widest, pixels), max(1, pixels // widest), alignment)
        group = given or group_of(problem, patch)
        most = _MAX_VALUES - (0 if problem.result_type == "float32" else _REGISTERS_OF_INTEGERS)
        # Many results a thread are worth less than many warps.
        crowded = pixels > _MIN_PIXELS and patch.values(layer) + group * pixels > most // 2
        if patch.registers(layer, group) <= most and not crowded:
            yield patch


def patch_of(problem: ShallowProblem, columns: int, rows: int, alignment: int) -> Patch:
    """Return a patch with vectors as wide as it, the alignment and the rows allow."""
    layer = problem.layer
    row = layer.width if problem.flat else layer.out_width
    whole = row % columns == 0 and columns in (1, 2, 4) and _allows(problem, alignment, columns)
    vector, span = 4, (columns - 1) * layer.stride + layer.filter_width
    while vector > 1 and (
        any(number % vector for number in (layer.width, columns * layer.stride, span))
        or alignment % (vector * problem.element_bytes[0])
        or vector * problem.element_bytes[0] > 16
    ):
        vector //= 2
    return Patch(columns, rows, vector, columns if whole else 1)


def _allows(problem: ShallowProblem, alignment: int, vector: int) -> bool:
    """Whether planes of the results begin where vectors may."""
    step = vector * problem.element_bytes[1]
    return step <= 16 and alignment % step == 0 and problem.layer.out_height * problem.layer.out_width % vector == 0


def shared_bytes_of(problem: ShallowProblem, share: int, group: int) -> int:
    """Return what the filters of a block take, `GROUP_PITCH` in the kernel."""
    return 4 * (problem.layer.depth | 1) * ceil_div(share, group) * group


def resident_blocks(problem: ShallowProblem, patch: Patch, group: int, threads: int) -> int:
    """Return how many blocks the registers of a multiprocessor hold."""
    registers = patch.registers(problem.layer, group) + _REGISTERS_BESIDES
    if 1 in (patch.vector_in, patch.vector_out):
        registers += _REGISTERS_OF_SCALARS
    return max(1, min(_REGISTERS // (threads * registers), _MAX_THREADS // threads))


def why_not_shallow(problem: ShallowProblem, device: DeviceLimits, alignment: int = 16) -> str | None:
    """Say why the kernel does not compute a problem, if it does not: no thread holds the values of one result."""
    try:
        plan_for(problem, device, alignment=alignment)
    except ArgumentError as error:
        return str(error)
    return None
