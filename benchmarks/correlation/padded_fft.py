"""Peers: zero-padded batched FFTs through CuPy and PyTorch, for planes and for their largest element."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.correlation.fft_geometry import Layout
from benchmarks.harness.contender import Attempt, Clocking

_CHUNKS = (256, 1024, 4096)
"""Matrices transformed at a time, besides all at once: small chunks stay in the device's cache."""


class PaddedFFT:
    """Forward transforms of both, product, inverse transform, window; padded arrays are kept.

    Parameters
    ----------
    library : module
        numpy, cupy or torch.
    zeros : callable
        Makes float32 zeros of a shape in the library.
    layout : Layout
        Of the problem.
    chunk : int
        Moving matrices at a time.
    """

    def __init__(self, library: Any, zeros: Callable[..., Any], layout: Layout, chunk: int) -> None:
        self._library, self._layout, self._chunk = library, layout, chunk
        fixed = layout.fixed if layout.fixed == layout.fixed_per_moving else chunk * layout.fixed_per_moving
        self._moving = zeros((chunk, *layout.grid))
        self._fixed = zeros((fixed, *layout.grid))

    def planes(self, moving: Any, fixed: Any) -> list[Any]:
        """Return the window of every pair's plane, chunk by chunk, as views (pairs, ny, nx)."""
        fft, layout = self._library.fft, self._layout
        conjugated = getattr(self._library, "conj_physical", self._library.conj)
        results, spectrum, transformed = [], None, None
        for of_moving, of_fixed in layout.chunks(self._chunk):
            count = of_moving.stop - of_moving.start
            layout.place(self._moving, moving[of_moving], layout.moving_at)
            product = fft.rfft2(self._moving[:count])
            if spectrum is None or of_fixed != transformed:
                theirs = fixed[of_fixed]
                layout.place(self._fixed, theirs, layout.fixed_at)
                spectrum, transformed = conjugated(fft.rfft2(self._fixed[: theirs.shape[0]])), of_fixed
            if layout.fixed_per_moving == 1:
                product *= spectrum
            else:
                sets = 1 if layout.fixed == layout.fixed_per_moving else count
                pairs = product[:, None] * spectrum.reshape(sets, layout.fixed_per_moving, *spectrum.shape[1:])
                product = pairs.reshape(-1, *pairs.shape[2:])
            results.append(layout.cut(fft.irfft2(product, s=layout.grid)))
        return results

    def peaks(self, moving: Any, fixed: Any) -> list[Any]:
        """Return the flat index of every pair's largest element, chunk by chunk."""
        return [window.reshape(window.shape[0], -1).argmax(1) for window in self.planes(moving, fixed)]


def cupy_fft(case: Case, data: Data) -> Iterator[Attempt]:
    """FFTs through CuPy, all at once."""
    cupy = importlib.import_module("cupy")
    moving, fixed = Layout.of(case.problem).by_role(data.lefts, data.rights)
    yield from _attempts(case, cupy, lambda shape: cupy.zeros(shape, "float32"), moving, fixed, "cupy", ())


def torch_fft(case: Case, data: Data) -> Iterator[Attempt]:
    """FFTs through PyTorch, all at once and in chunks."""
    torch = importlib.import_module("torch")
    moving, fixed = Layout.of(case.problem).by_role(data.lefts, data.rights)
    moving, fixed = (torch.as_tensor(array, device="cuda") for array in (moving, fixed))
    zeros = lambda shape: torch.zeros(shape, device="cuda")  # noqa: E731 - one of the two makers of zeros
    yield from _attempts(case, torch, zeros, moving, fixed, "torch", _CHUNKS)


def _attempts(
    case: Case,
    library: Any,
    zeros: Callable[..., Any],
    moving: Any,
    fixed: Any,
    clocking: Clocking,
    chunks: tuple[int, ...],
) -> Iterator[Attempt]:
    layout = Layout.of(case.problem)
    for chunk in (layout.moving, *(size for size in chunks if size < layout.moving)):
        fft = PaddedFFT(library, zeros, layout, chunk)
        note = "" if chunk == layout.moving else f"in chunks of {chunk}"
        if case.task == "plane":
            yield Attempt(partial(fft.planes, moving, fixed), layout.read_plane, clocking, note)
        else:
            yield Attempt(partial(fft.peaks, moving, fixed), layout.read_index, clocking, note)
