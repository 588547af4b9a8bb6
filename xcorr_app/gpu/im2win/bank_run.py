"""Banks of filters on the device: images are padded part by part and multiplied with all filters, as Im2win does."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.im2win.bank import LARGEST_KEPT, PADDED_BYTES, BankPart, BankProblem, pad_launch
from xcorr_app.gpu.im2win.options import Im2winOptions, kernel_and_macros
from xcorr_app.gpu.im2win.problem import stored_filters
from xcorr_app.gpu.im2win.run import bound_form
from xcorr_app.gpu.runtime.arrays import dense, empty
from xcorr_app.gpu.runtime.binder import BoundLaunch, bound
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.memory import with_smaller
from xcorr_app.gpu.runtime.placement import current_device, on_device_of
from xcorr_app.gpu.runtime.types import name_of

__all__ = ["PADDED_BYTES", "KernelBank", "bank_on_device"]


class KernelBank(NamedTuple):
    """A bank as kernels read it, and its bytes: an object that is kept is hashed but once."""

    values: npt.NDArray[np.float32]
    content: bytes

    @classmethod
    def of(cls, filters: npt.NDArray[Any]) -> KernelBank:
        """Convert filters (C_o, C_i, F_h, F_w) to float32."""
        values = np.ascontiguousarray(filters, np.float32)
        return cls(values, values.tobytes())


_problem = functools.lru_cache(maxsize=256)(BankProblem)  # its checks take longer than a launch


def bank_on_device(
    images: Any,
    bank: KernelBank,
    out: Any,
    *,
    kernel: str | Im2winOptions = "implicit",
    boundary: str = "reflect",
    outside: float = 0.0,
    stride: int = 1,
    padded_bytes: int = PADDED_BYTES,
) -> None:
    """Correlate images (N, C_i, H, W) with a bank of filters of as many channels into a dense `out`; no flip."""
    number, _, *filter_size = bank.values.shape
    problem = _problem(*images.shape, number, *filter_size, boundary, stride)
    with on_device_of(images, out):
        with_smaller(
            functools.partial(_run, problem, kernel, images, bank, outside, out),
            _limits(problem, padded_bytes // 4),
            "no memory for the padded images of a few rows and the filters: free some, or use NumPy arrays",
        )


def _limits(problem: BankProblem, elements: int) -> Iterator[int]:
    """Elements of a part's padded images: what was asked for, then ever less, down to a filter's rows of one image."""
    fewest = problem.padded_elements(min(problem.filter_height, problem.result_shape[0]))
    while True:
        yield elements
        elements = max(problem.padded_elements(part.rows) * part.images for part in problem.parts(elements)) // 2
        if elements < fewest:
            return


def _run(
    problem: BankProblem,
    kernel: str | Im2winOptions,
    images: Any,
    bank: KernelBank,
    outside: float,
    out: Any,
    elements: int,
) -> None:
    how: _How = (current_device(), problem, kernel, name_of(images.dtype), outside, elements)
    parts = _kept_parts(how, bank.content) if bank.values.size <= LARGEST_KEPT else _parts(how, bank.values, kept=False)
    whole = images if images.flags.c_contiguous else dense(images)
    for part in parts:
        part(whole, out)


_How: TypeAlias = tuple[int, BankProblem, str | Im2winOptions, str, float, int]
"""Device, problem, kernel, type of the images, value outside, elements of a part's padded images."""


@functools.lru_cache(maxsize=64)
def _kept_parts(how: _How, content: bytes) -> tuple[_BoundPart, ...]:
    """Prepare a bank once for many calls: to bring it to the device takes longer than the kernels of most images."""
    problem = how[1]
    shape = problem.filters, problem.channels, problem.filter_height, problem.filter_width
    bank = np.frombuffer(content, np.float32).reshape(shape)
    return _parts(how, bank, kept=True)


def _parts(how: _How, bank: npt.NDArray[np.float32], *, kept: bool) -> tuple[_BoundPart, ...]:
    _, problem, asked, image_type, outside, elements = how
    kernel, macros = kernel_and_macros(asked)
    cupy = sys.modules["cupy"]  # whose arrays the images are
    stored = stored_filters(bank)
    taps = constants(cupy, lambda: cupy.asarray(stored)) if kept else cupy.asarray(stored)
    rows, columns = problem.result_shape
    found = []
    for part in problem.parts(elements):
        layer = problem.convolution(part)
        pad = pad_launch(problem, part, image_type=image_type, outside=outside)
        pitch = rows * columns if part.rows < rows else None  # of a band's planes, which lie apart
        product = bound_form(kernel, layer, taps, plane_pitch=pitch, window_bytes=4 * elements, tuning=macros)
        padded_shape = (part.images, *problem.padded_shape(part.rows))
        found.append(_BoundPart(part, padded_shape, bound(pad, pad.extra), product))
    return tuple(found)


@dataclass(frozen=True)
class _BoundPart:
    """Launches of a part, ready for arrays."""

    part: BankPart
    padded_shape: tuple[int, ...]
    pad: BoundLaunch
    product: Callable[[Any, Any], None]

    def __call__(self, images: Any, out: Any) -> None:
        part = self.part
        padded = empty(self.padded_shape, np.float32)
        self.pad(images[part.first_image :] if part.first_image else images, padded)
        if part.first_row:
            out = out[part.first_image, 0, part.first_row :]
        elif part.first_image:
            out = out[part.first_image :]
        self.product(padded, out)
