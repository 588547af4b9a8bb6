"""Peer: the strongest FFT for a window of shifts. Only the window is transformed back, as products of matrices.

Of the inverse transform, rows are one product with a (2 ny, grid rows) matrix and columns one with a
(4 half-spectrum, nx) matrix, both on tensor cores in TF32; the planes are good to about a thousandth.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.correlation.fft_geometry import Layout
from benchmarks.correlation.padded_fft import PaddedFFT
from benchmarks.harness.contender import Attempt

_CHUNKS = (4096, 1024, 512, 250, 100)
_GRIDS = 4


def inverse_matrices(
    grid: tuple[int, int], plane_shape: tuple[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Make the two matrices that transform a half spectrum back to the corner of its plane.

    With the spectrum's real and imaginary parts interleaved as ``P`` (grid rows, 2 half-spectrum), the corner is
    ``(R @ P).reshape(ny, -1) @ X``.

    Parameters
    ----------
    grid : tuple of int
        Rows and columns of the transform.
    plane_shape : tuple of int
        Rows and columns of the corner.

    Returns
    -------
    R : ndarray of float32, shape (2 ny, grid rows)
        Cosines and sines of a row of the corner in turn.
    X : ndarray of float32, shape (4 half-spectrum, nx)
        First what multiplies the cosines' product, then the sines'.
    """
    (height, width), (rows, columns) = grid, plane_shape
    turn = 2 * np.pi / height * np.outer(np.arange(rows), np.arange(height))
    by_row = np.stack((np.cos(turn), np.sin(turn)), axis=1).reshape(2 * rows, height) / height
    frequencies = np.arange(width // 2 + 1)
    # Every frequency but the first, and the last of an even length, stands for its mirror image too.
    weight = np.where((frequencies == 0) | (2 * frequencies == width), 1.0, 2.0)[:, None] / width
    turn = 2 * np.pi / width * np.outer(frequencies, np.arange(columns))
    cosine, sine = weight * np.cos(turn), weight * np.sin(turn)
    by_column = np.stack((np.stack((cosine, -sine), axis=1), np.stack((-sine, -cosine), axis=1)))
    return by_row.astype(np.float32), by_column.reshape(-1, columns).astype(np.float32)


class PrunedFFT(PaddedFFT):
    """`PaddedFFT` through PyTorch whose inverse is pruned to the window.

    Parameters
    ----------
    layout : Layout
        Of the problem.
    chunk : int
        Moving matrices at a time.
    device : str
        Of PyTorch.
    """

    def __init__(self, layout: Layout, chunk: int, device: str) -> None:
        torch = importlib.import_module("torch")
        super().__init__(torch, lambda shape: torch.zeros(shape, device=device), layout, chunk)
        by_row, by_column = inverse_matrices(layout.grid, layout.plane_shape)
        self._by_row = torch.as_tensor(by_row, device=device)
        self._by_column = torch.as_tensor(by_column, device=device)

    def planes(self, moving: Any, fixed: Any) -> list[Any]:
        """Return the window of every pair's plane, chunk by chunk, (pairs, ny, nx)."""
        before = self._library.get_float32_matmul_precision()
        self._library.set_float32_matmul_precision("high")
        try:
            return super().planes(moving, fixed)
        finally:
            self._library.set_float32_matmul_precision(before)

    def _inverse(self, product: Any) -> Any:
        pairs, (rows, columns) = product.shape[0], self._layout.plane_shape
        parts = self._library.view_as_real(product).reshape(pairs, product.shape[1], -1)
        halfway = self._library.bmm(self._by_row.expand(pairs, -1, -1), parts)
        return (halfway.view(pairs * rows, -1) @ self._by_column).view(pairs, rows, columns)


def pruned_fft(case: Case, data: Data) -> Iterator[Attempt]:
    """Largest element of every window, for several chunks and grids."""
    torch = importlib.import_module("torch")
    smallest = Layout.of(case.problem)
    moving, fixed = (torch.as_tensor(array, device="cuda") for array in smallest.by_role(data.lefts, data.rights))
    for chunk in sorted({min(chunk, smallest.moving) for chunk in _CHUNKS}, reverse=True):
        for layout in smallest.on_grids(_GRIDS):
            fft = PrunedFFT(layout, chunk, "cuda")
            note = f"in chunks of {chunk} on {layout.grid[0]} x {layout.grid[1]}"
            yield Attempt(partial(fft.peaks, moving, fixed), layout.read_index, "torch", note)
