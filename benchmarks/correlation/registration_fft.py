"""Peer: registration of frames against one reference by FFT in PyTorch, zero-mean normalised over every overlap.

A frame costs one pass for mean and variance, one that subtracts the mean into a padded array, an FFT, a product with
the reference's spectrum, and an inverse FFT. The overlap sums of a frame are its whole sums less the rows and columns
that a shift pushes out: only the frame's border is read for them.
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
from benchmarks.harness.contender import Attempt

_CHUNKS = (256, 128, 64, 32)
_GRIDS = 4


class FFTRegistration:
    """Scores of frames against a reference of the same size, and the shift of the best.

    Parameters
    ----------
    reference : torch.Tensor, shape (H, W)
        float32, of zero mean.
    layout : Layout
        Frames moving, the reference fixed; the window must stay inside the matrices.
    chunk : int
        Frames at a time.
    """

    def __init__(self, reference: Any, layout: Layout, chunk: int) -> None:
        torch = self._torch = importlib.import_module("torch")
        device = reference.device
        self._layout, self._chunk = layout, chunk
        height, width = layout.moving_shape
        padded = torch.zeros((1, *layout.grid), device=device)
        layout.place(padded, reference[None], layout.fixed_at)
        self._spectrum = torch.conj_physical(torch.fft.rfft2(padded))
        self._padded = torch.zeros((chunk, *layout.grid), device=device)
        at = layout.moving_at
        self._inside = self._padded[:, at[0] : at[0] + height, at[1] : at[1] + width]

        firsts = [fixed - moving for fixed, moving in zip(layout.fixed_at, layout.moving_at, strict=True)]
        shifts = [first + np.arange(n) for first, n in zip(firsts, layout.plane_shape, strict=True)]
        self._border = [max(1, int(abs(axis).max())) for axis in shifts]
        of_frames = [pushed_out(axis, most) for axis, most in zip(shifts, self._border, strict=True)]
        of_reference = [pushed_out(-axis, most) for axis, most in zip(shifts, self._border, strict=True)]
        self._out = [torch.as_tensor(matrix, device=device) for matrix in of_frames]
        counts = torch.as_tensor(np.outer(height - abs(shifts[0]), width - abs(shifts[1])), device=device)

        double = reference[None].double()
        whole = torch.stack((double.sum((1, 2)), (double * double).sum((1, 2))))
        out = [torch.as_tensor(matrix, device=device).double() for matrix in of_reference]
        sums, squares = self._overlap_sums(double, whole, out)
        self._inverse_counts = (1 / counts).float()
        self._mean = (sums / counts).float()
        self._variance = (squares - sums * sums / counts).float()

    def peaks(self, frames: Any) -> list[Any]:
        """Return the flat index of the best score of each frame (n, H, W), chunk by chunk."""
        starts = range(0, frames.shape[0], self._chunk)
        return [self.scores(frames[k : k + self._chunk]).flatten(1).argmax(1) for k in starts]

    def scores(self, frames: Any) -> Any:
        """Return the scores (n, ny, nx), float32, of at most a chunk of frames (n, H, W) of any type."""
        torch, layout = self._torch, self._layout
        count = frames.shape[0]
        frames = frames.float()  # no copy of what is float32
        variance, mean = torch.var_mean(frames, dim=(1, 2), correction=0, keepdim=True)
        inside = self._inside[:count]
        torch.sub(frames, mean, out=inside)
        spectra = torch.fft.rfft2(self._padded[:count])
        spectra *= self._spectrum
        products = layout.cut(torch.fft.irfft2(spectra, s=layout.grid))
        squares = variance[:, 0, 0] * (frames.shape[1] * frames.shape[2])
        sums, squares = self._overlap_sums(inside, torch.stack((torch.zeros_like(squares), squares)), self._out)
        centred = squares - sums * sums * self._inverse_counts
        return (products - sums * self._mean) * torch.rsqrt(centred * self._variance)

    def _overlap_sums(self, images: Any, whole: Any, out: list[Any]) -> tuple[Any, Any]:
        """Sums of images and of their squares over the overlap at every shift, each (n, ny, nx).

        `whole` holds those over whole images, (2, n); `out` what every shift pushes out of the border, by axis.
        """
        torch, (rows, columns), (by_row, by_column) = self._torch, self._border, out
        top_bottom = torch.cat((images[:, :rows], images[:, -rows:]), dim=1)
        left_right = torch.cat((images[:, :, :columns], images[:, :, -columns:]), dim=2)
        corners = torch.cat((top_bottom[:, :, :columns], top_bottom[:, :, -columns:]), dim=2)
        of_rows, of_columns, of_corners = (torch.stack((x, x * x)) for x in (top_bottom, left_right, corners))
        rows_out = of_rows.sum(3) @ by_row.T
        columns_out = of_columns.sum(2) @ by_column.T
        both_out = by_row @ of_corners @ by_column.T
        inside = whole[:, :, None, None] - rows_out[..., :, None] - columns_out[..., None, :] + both_out
        return inside[0], inside[1]


def pushed_out(shifts: NDArray[np.intp], border: int) -> NDArray[np.float32]:
    """Say which of the first and last `border` lines of a moving matrix lie outside the overlap, at every shift.

    Parameters
    ----------
    shifts : ndarray of int, shape (n,)
        The matrix shows the other displaced by so much: at a positive shift its first lines have no partner.
    border : int
        At least the largest shift.

    Returns
    -------
    ndarray of float32, shape (n, 2 border)
        1 where a line is pushed out, else 0.
    """
    lines = np.arange(2 * border)
    first, last = lines < shifts[:, None], lines >= 2 * border + shifts[:, None]
    return (first | last).astype(np.float32)


def torch_registration(case: Case, data: Data) -> Iterator[Attempt]:
    """Best shift of every frame, for several chunks and grids."""
    torch = importlib.import_module("torch")
    smallest = Layout.of(case.problem)
    frames, reference = (torch.as_tensor(array, device="cuda") for array in smallest.by_role(data.lefts, data.rights))
    for chunk in sorted({min(chunk, smallest.moving) for chunk in _CHUNKS}, reverse=True):
        for layout in smallest.on_grids(_GRIDS):
            registration = FFTRegistration(reference[0], layout, chunk)
            note = f"in chunks of {chunk} on {layout.grid[0]} x {layout.grid[1]}"
            yield Attempt(partial(registration.peaks, frames), layout.read_index, "torch", note)
