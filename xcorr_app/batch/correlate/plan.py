"""What ``xcorr correlate`` will do with two files, and how a form lays them out; nothing is computed here."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.batch.correlate.options import CorrelateOptions
from xcorr_app.correlation.arrangement import engine_dtypes
from xcorr_app.correlation.choice import decide_planes
from xcorr_app.correlation.engines import choose_engine, limits_of
from xcorr_app.correlation.find_shifts import handed_dtypes
from xcorr_app.correlation.pair_peaks import decide_shifts
from xcorr_app.correlation.problem import problem_of
from xcorr_app.correlation.window import ShiftWindow, as_window
from xcorr_app.decision import Decision
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io.matrices import MatrixFile, scan_matrices
from xcorr_app.io.writing.plane_file import check_plane_name
from xcorr_app.pipeline.output import check_output_file

_ELEMENTS_AT_ONCE = 2**22
"""Elements of planes, or of padded matrices, that are in work together: some 400 MB of work arrays."""

_ELEMENTS_READ_AT_ONCE = 2**25
"""Elements of matrices that are in work together where their planes are not kept."""


@dataclass(frozen=True)
class CorrelationPlan:
    """Two files that were checked, and what will be made of them."""

    left: MatrixFile
    right: MatrixFile
    left_shape: tuple[int, ...]
    right_shape: tuple[int, ...]
    window: ShiftWindow
    dtype: np.dtype[Any]
    """Of the planes."""
    engine: str
    """Name of the engine for all planes: what ``auto`` means here."""
    pairs_at_once: int
    """How many planes are in work together."""
    device: Device
    out: Path
    options: CorrelateOptions

    def problem(self) -> Problem:
        """Return what the first block of pairs is; the others are as large or smaller."""
        lefts, rights = next(blocks(self.left_shape, self.right_shape, self.pairs_at_once))
        left_count, per_left = (part.stop - part.start for part in (lefts, rights[-1]))
        right_count = per_left * (left_count if len(rights) > 1 else 1)
        (*_, left_rows, left_columns), (*_, right_rows, right_columns) = self.left_shape, self.right_shape
        sizes = (left_rows, left_columns), (right_rows, right_columns)
        return problem_of(*sizes, self.window, left_count, right_count, per_left)

    def decision(self) -> Decision:
        """Decide what makes the planes of a block, or finds peaks; DeviceError where what was asked for cannot run."""
        settings, limits = self.options.settings, limits_of(self.device.xp)
        if settings.normalization == "phase":
            return Decision("fft", reason="phase correlation is computed by the FFT alone")
        types, problem = (self.left.dtype, self.right.dtype, settings.normalization), self.problem()
        how: dict[str, Any] = {"engine": settings.engine, "options": settings.kernel_options, "limits": limits}
        if self.options.peaks:
            subpixel = settings.subpixel
            decided, _ = decide_shifts(problem, handed_dtypes(*types), settings.normalization, subpixel=subpixel, **how)
        else:
            decided = decide_planes(problem, dtypes=engine_dtypes(*types), **how)
        choose_engine(decided.engine, self.device.xp, problem, settings.kernel_options)
        return decided

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of planes, as :func:`xcorr_app.cross_correlate` says."""
        leading = {"one-to-one": (), "one-to-many": (self.right_shape[0],)}
        both = (self.left_shape[0], self.right_shape[-3])
        return (*leading.get(self.options.form, both), *self.window.shape)


def plan_correlation(left: Path, right: Path, out: Path, options: CorrelateOptions) -> CorrelationPlan:
    """Check both files and the output's name, and choose the device; no pixel is read, nothing is written."""
    settings = options.settings
    (check_peaks_name if options.peaks else check_plane_name)(out)
    check_output_file(out, (left, right), overwrite=options.overwrite)
    lefts, rights = (scan_matrices(path, options.channel, options.limits) for path in (left, right))
    if options.channel not in (None, 0, "gray") and lefts.channels == rights.channels == 1:
        raise ArgumentError(f"channel {options.channel} was asked for, and neither file has channels")
    left_shape, right_shape = operand_shapes(lefts, rights, options.form)
    left_size, right_size = (left_shape[-2], left_shape[-1]), (right_shape[-2], right_shape[-1])
    window = as_window(settings.max_shift, left_size, right_size)
    if settings.normalization == "phase" and left_size != right_size:
        raise ArgumentError(f"normalization 'phase' needs images of one size, got {left_size} and {right_size}")
    dtype = np.dtype(engine_dtypes(lefts.dtype, rights.dtype, "zncc")[0])
    padded = (left_size[0] + right_size[0]) * (left_size[1] + right_size[1])
    at_once = max(1, _ELEMENTS_AT_ONCE // max(math.prod(window.shape), padded))
    if options.peaks:
        at_once = max(1, _ELEMENTS_READ_AT_ONCE // max(math.prod(left_size), math.prod(right_size)))
    device = select_device(options.device)
    plan = CorrelationPlan(lefts, rights, left_shape, right_shape, window, dtype, "fft", at_once, device, out, options)
    return replace(plan, engine=plan.decision().engine)


def check_peaks_name(path: Path) -> None:
    """Refuse a name that does not say which kind of file is wanted."""
    if path.suffix.lower() != ".csv":
        raise ArgumentError(f"{path}: peaks are written as .csv")


def operand_shapes(left: MatrixFile, right: MatrixFile, form: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shapes in which two files are correlated: (N, H, W), and (M, H', W'), or (N, M, H', W') for ``n-to-mn``.

    N is 1 for the forms with one left matrix. Raises ShapeError where the numbers of images belong to another form, and
    says to which.
    """
    lefts, left_size = left.shape[:-2], left.shape[-2:]
    rights, right_size = right.shape[:-2], right.shape[-2:]
    own = form == "n-to-mn"
    for side, file in (("LEFT", left), ("RIGHT", right)):
        if len(file.shape) > 3 and not (own and file is right):
            raise ShapeError(
                f"{file.path}: holds {file.shape[0]} x {file.shape[1]} images along two axes; {side} takes a stack "
                "along one (only RIGHT of --form n-to-mn takes two): save a part of it"
            )
    n, m = math.prod(lefts), math.prod(rights)
    if own and len(rights) > 1 and rights[0] != n:
        raise ShapeError(f"{right.path}: holds {rights[0]} sets of {rights[1]} images for {n} left ones (n-to-mn)")
    if own and m % n:
        raise ShapeError(
            f"{right.path}: its {m} images cannot be shared out evenly among {n} left ones; form n-to-mn takes N left "
            "and N x M right images, form n-to-m every left with every right"
        )
    if own:
        return (n, *left_size), (n, m // n, *right_size)
    if (form == "one-to-one" and (n, m) != (1, 1)) or (form == "one-to-many" and n != 1):
        every = "use --form n-to-m for every left with every right"
        each = "" if m % n else f", or --form n-to-mn for each left with {m // n} of its own"
        raise ShapeError(
            f"form {form} takes one image from LEFT{' and one from RIGHT' if form == 'one-to-one' else ''}; "
            f"{left.path} holds {n}, {right.path} {m}: {'use --form one-to-many' if n == 1 else every + each}"
        )
    return (n, *left_size), (m, *right_size)


def blocks(
    left_shape: tuple[int, ...], right_shape: tuple[int, ...], pairs_at_once: int
) -> Iterator[tuple[slice, tuple[slice, ...]]]:
    """Cut the pairs of two operands into blocks, in the order of the planes: slices of their leading axes."""
    own = len(right_shape) == 4
    lefts, rights = left_shape[0], right_shape[-3]
    across = max(1, min(rights, pairs_at_once))
    # Several lefts only where each takes all its rights: the planes of a block then follow each other in the file.
    down = max(1, pairs_at_once // rights)
    for i in range(0, lefts, down):
        some_lefts = slice(i, min(i + down, lefts))
        for j in range(0, rights, across):
            some_rights = slice(j, min(j + across, rights))
            yield some_lefts, (some_lefts, some_rights) if own else (some_rights,)
