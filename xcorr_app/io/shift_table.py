"""Shifts of frames as files hold them: the ``shifts.csv`` of ``xcorr align``, other tables of that kind, arrays."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from xcorr_app.errors import ArgumentError, DamagedFileError, InputError, ShapeError
from xcorr_app.io.images.npy import read_numbers
from xcorr_app.io.opened import bounded_int, opened, parsing, text_of
from xcorr_app.io.source import runs_of

Missing = Literal["refuse", "interpolate"]
"""What becomes of a frame that a table lacks."""

_MAX_BYTES = 1 << 28
_LAST_FRAME = 10**8
_FORM = "shifts are (frames, 2) real numbers"
_ELEMENTS = ("m00", "m01", "m02", "m10", "m11", "m12")
_COLUMNS = (_ELEMENTS, ("applied_dy", "applied_dx"), ("dy", "dx"))
"""Columns that may hold what is applied: matrices, shifts that were applied, shifts that were measured."""


@dataclass(frozen=True, eq=False)
class ShiftTable:
    """Shifts of frames, in the order of the table.

    Attributes
    ----------
    frames : ndarray of int64, shape (n,)
        Numbers of the frames, from 0; none appears twice.
    shifts : ndarray of float64, shape (n, 2)
        Rows, columns in pixels to add to each; NaN where a frame was left out.
    files : tuple of str
        Name of the file that each frame came from; empty where the table does not say.
    """

    frames: NDArray[np.int64]
    shifts: NDArray[np.float64]
    files: tuple[str, ...] = ()
    matrices: NDArray[np.float64] | None = None
    """(n, 3, 3) of frames that are turned or scaled, too: from places (row, column, 1) of the result to places of the
    frame; `shifts` only say then which frames are left out."""

    def scaled(self, factor: float) -> Self:
        """Return the shifts of the same frames with pixels `factor` times as many: 0.5 where 2 x 2 were binned."""
        matrices = self.matrices
        if matrices is not None:
            # Pixels are squares: the middle of the first is half a pixel from the edge.
            scale = np.diag([factor, factor, 1.0])
            scale[:2, 2] = (factor - 1) / 2
            matrices = scale @ matrices @ np.linalg.inv(scale)
        return replace(self, shifts=self.shifts * factor, matrices=matrices)

    def inverted(self) -> Self:
        """Return the shifts that undo these."""
        matrices = self.matrices
        if matrices is not None:
            known = np.isfinite(matrices).all(axis=(1, 2))
            matrices = matrices.copy()
            matrices[known] = np.linalg.inv(matrices[known])
        return replace(self, shifts=-self.shifts, matrices=matrices)

    def for_frames(self, count: int, missing: Missing = "refuse") -> NDArray[np.float64]:
        """Shifts (count, 2), or matrices (count, 3, 3), of frames 0 to count - 1, by number.

        Raises
        ------
        ShapeError
            The table lacks a frame, unless it is interpolated, or has one beyond the last.
        """
        beyond = self.frames[self.frames >= count]
        if beyond.size:
            raise ShapeError(
                f"the table has frames {runs_of(sorted(beyond.tolist()))}, the stack {count} in all: take a table of "
                "this stack, or leave those lines out"
            )
        return self._placed(self.frames, count, missing)

    def for_files(self, names: Sequence[str], missing: Missing = "refuse") -> NDArray[np.float64]:
        """Shifts or matrices of frames that are a file each, by the names of the files.

        Raises ShapeError as `for_frames` does.
        """
        if len(set(self.files)) < len(self.files) or len(set(names)) < len(names):
            raise ShapeError("several frames come from one file")
        at = {name: i for i, name in enumerate(names)}
        unknown = [name for name in self.files if name not in at]
        if unknown:
            raise ShapeError(f"the table has a frame of {unknown[0]}, which is none of the stack's {len(names)} files")
        return self._placed(np.array([at[name] for name in self.files]), len(names), missing)

    def _placed(self, frames: NDArray[np.int64], count: int, missing: Missing) -> NDArray[np.float64]:
        values = self.shifts if self.matrices is None else self.matrices.reshape(-1, 9)
        placed = np.full((count, values.shape[1]), np.nan)
        placed[frames] = values
        absent = np.setdiff1d(np.arange(count), frames)
        known = np.sort(frames[np.isfinite(values).all(axis=1)])
        if absent.size and (missing == "refuse" or known.size == 0):
            raise ShapeError(
                f"the table lacks frames {runs_of(absent.tolist())} of {count}"
                f"{': take a table of this stack, or interpolate them (--missing interpolate)' if known.size else ''}"
            )
        for column in placed.T:
            column[absent] = np.interp(absent, known, column[known]) if absent.size else column[absent]
        return placed if self.matrices is None else placed.reshape(-1, 3, 3)


def load_shifts(path: Path | str, *, missing: Missing = "refuse") -> NDArray[np.float64]:
    """Read shifts of frames from a file, ready for :func:`xcorr_app.apply_shifts`.

    Parameters
    ----------
    path
        ``shifts.csv`` as ``xcorr align`` writes it, or another table with columns ``dy`` and ``dx`` and, if it names
        frames, ``frame``; a ``.npy`` array of (T, 2); or the ``.npz`` of :meth:`xcorr_app.ShiftResult.save`. Where a
        table has ``applied_dy`` and ``applied_dx``, those are taken.
    missing : {'refuse', 'interpolate'}
        What becomes of frames that a table lacks between those that it has.

    Returns
    -------
    ndarray of float64, shape (T, 2)
        Row, column in pixels to add to each frame; NaN for frames that were left out.

    Raises
    ------
    InputError
        The file is missing, or of another kind.
    DamagedFileError
        It holds something else than numbers of frames and of pixels.
    ShapeError
        A frame is missing.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(folder + "/drift.npy", [(0, 0), (0.5, -1)])
    ...     load_shifts(folder + "/drift.npy")
    array([[ 0. ,  0. ],
           [ 0.5, -1. ]])
    """
    table = read_shift_table(Path(path))
    if table.matrices is not None:
        raise InputError(f"{path}: holds motions, not shifts; `xcorr apply` applies them")
    try:
        return table.for_frames(int(table.frames.max()) + 1, missing)
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from error


def read_shift_table(path: Path) -> ShiftTable:
    """Read the shifts in a file: see `load_shifts`."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return _of_array(path, read_numbers(path, (2,), _FORM))
    if suffix == ".npz":
        return _of_archive(path)
    if suffix in (".csv", ".txt"):
        return _of_text(path, text_of(path, _MAX_BYTES))
    raise InputError(f"{path}: shifts are read from .csv, .txt, .npy or .npz")


def _of_array(path: Path, array: NDArray[np.float64]) -> ShiftTable:
    if array.ndim != 2 or array.shape[1] != 2 or array.shape[0] == 0:
        raise InputError(f"{path}: holds {array.dtype} of shape {array.shape}; {_FORM}")
    return ShiftTable(np.arange(len(array)), _finite_or_nan(path, array))


def _of_archive(path: Path) -> ShiftTable:
    with opened(path) as descriptor, open(descriptor, "rb", closefd=False) as file, parsing(path, "holds no shifts"):
        shifts = np.array(np.load(file, allow_pickle=False)["applied"], np.float64)
    return _of_array(path, shifts)


def _of_text(path: Path, text: str) -> ShiftTable:
    frames, shifts, files = [], [], []
    with parsing(path, "is no table of shifts"):
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
        names = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = names
        columns = next((kind for kind in _COLUMNS if set(kind) <= set(names)), None)
        if columns is None:
            raise ArgumentError(f"its first line has no columns dy and dx: {','.join(names)[:80]}")
        for number, row in enumerate(reader):
            try:
                frames.append(bounded_int(row["frame"]) if "frame" in names else number)
                shifts.append([float(row[column].strip() or "nan") for column in columns])
            except (ValueError, AttributeError) as error:
                raise ValueError(f"line {reader.line_num}: {error}") from error
            files.append(row.get("source") or "")
        if not frames:
            raise ValueError("it has no line of numbers")
        if len(set(frames)) < len(frames):
            raise ValueError("a frame appears twice")
        if max(frames) > _LAST_FRAME:
            raise ValueError(f"frame {max(frames)} is beyond {_LAST_FRAME}")
    values = _finite_or_nan(path, np.array(shifts))
    names_of_files = tuple(files) if all(files) and files else ()
    if columns is not _ELEMENTS:
        return ShiftTable(np.array(frames), values, names_of_files)
    last = np.broadcast_to([0.0, 0.0, 1.0], (len(values), 3))
    matrices = np.concatenate([values, last], axis=1).reshape(-1, 3, 3)
    matrices[~np.isfinite(values).all(axis=1)] = np.nan
    return ShiftTable(np.array(frames), -matrices[:, :2, 2], names_of_files, matrices)


def _finite_or_nan(path: Path, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    if np.isinf(shifts).any():
        raise DamagedFileError(f"{path}: holds an infinite shift")
    shifts[~np.isfinite(shifts).all(axis=1)] = np.nan
    return shifts
