"""From a launch to a call: the kernel compiled and its numbers made arguments once; only arrays are left to give.

A launch costs a few microseconds of host time; compiling, looking up and making arguments costs a hundred.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from xcorr_app.gpu.runtime.compile import kernel_function
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.placement import current_device


@dataclass(frozen=True)
class BoundLaunch:
    """One kernel, ready to start on given arrays."""

    function: Any
    grid: tuple[int]
    block: tuple[int]
    numbers: tuple[Any, ...]
    shared_bytes: int

    @classmethod
    def of(cls, launch: Launch, numbers: Sequence[int]) -> BoundLaunch:
        """Compile a launch for the current device; `numbers` are the 32-bit integers that follow the arrays."""
        function = kernel_function(launch.kernel, launch.defines, launch.shared_bytes)
        arguments = tuple(as_number(np.int32(value)) for value in numbers)
        return cls(function, (launch.blocks,), (launch.threads,), arguments, launch.shared_bytes)

    def __call__(self, *arrays: Any, last: tuple[Any, ...] = ()) -> None:
        """Start the kernel in the current stream; `last` are arguments that follow the numbers."""
        self.function(self.grid, self.block, (*arrays, *self.numbers, *last), self.shared_bytes)


class BoundPart(NamedTuple):
    """The launch of a part of a stack, which begins at image `first`."""

    first: int
    launch: BoundLaunch


def start(launch: Launch, arrays: tuple[Any, ...], numbers: tuple[int, ...]) -> None:
    """Start a launch on arrays and integers; what can be prepared is prepared once and kept."""
    bound(launch, numbers)(*arrays)


def bound(launch: Launch, numbers: tuple[int, ...]) -> BoundLaunch:
    """Bind a launch for the current device, or take what was bound before."""
    return _bound(current_device(), launch, numbers)


@functools.lru_cache(maxsize=1024)
def _bound(_device: int, launch: Launch, numbers: tuple[int, ...]) -> BoundLaunch:
    return BoundLaunch.of(launch, numbers)


def as_number(value: np.generic) -> Any:
    """Make a kernel argument of a number.

    CuPy does it for every number of every launch, which takes a third of the launch's time; so it is done beforehand
    where CuPy lends its own way (an internal class), and left to CuPy where it does not.
    """
    return _number_type()(value)


def as_struct(element: npt.NDArray[Any]) -> Any:
    """Make a kernel argument of a structured element, as `as_number` does of a number."""
    return _struct_type()(element)


@functools.cache
def null_pointer() -> Any:
    """Return what stands for an array that a kernel does not touch."""
    return as_number(np.uint64(0))


@functools.cache
def _number_type() -> Callable[[np.generic], Any]:
    try:
        found: Callable[[np.generic], Any] = importlib.import_module("cupy._core._scalar").CScalar
        found(np.int32(1))
    except (ImportError, AttributeError, TypeError):
        return lambda number: number
    return found


@functools.cache
def _struct_type() -> Callable[[npt.NDArray[Any]], Any]:
    try:
        found: Callable[[npt.NDArray[Any]], Any] = importlib.import_module("cupy.cuda.function").CNumpyArray
        found(np.zeros(()))
    except (ImportError, AttributeError, TypeError):
        return lambda element: element
    return found
