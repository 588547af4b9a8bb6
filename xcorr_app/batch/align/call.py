"""`align`: the whole of ``xcorr align`` as one call, and what it returns."""

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.run import Align, report_of
from xcorr_app.batch.option import options_of
from xcorr_app.cluster.connect import workers_of
from xcorr_app.io.outputs import ENDINGS
from xcorr_app.pipeline.output import prepared_output
from xcorr_app.pipeline.run import run_stacks
from xcorr_app.pipeline.work import Run, plan_stacks
from xcorr_app.registration.assessment import Assessment
from xcorr_app.registration.quality import is_trusted
from xcorr_app.registration.results.frame_table import array_of, columns_of
from xcorr_app.registration.results.result_display import FrameResult
from xcorr_app.registration.stack.passes import Progress, shown
from xcorr_app.report.records import FrameRow, StackReport
from xcorr_app.shown import html_table


@dataclass(frozen=True, eq=False, repr=False)
class AlignedStack(FrameResult):
    """One stack of a run. Arrays are NumPy arrays with one entry a frame, as ``shifts.csv`` has them."""

    name: str
    rows: tuple[FrameRow, ...]
    """Lines of the table of shifts; none where the stack failed."""
    assessment: Assessment | None
    """How good the result is: correlation, crispness and residual shift, before and after."""
    notes: tuple[str, ...]
    """Sentences about the whole stack."""
    failure: str | None
    """Why nothing came of it."""
    failed: bool
    """Nothing came of it, or it counts as failed: frames disagree with the check, or lie no better than before."""
    table: Path | None
    """``shifts.csv``."""
    path: Path | None
    """The aligned stack; None where nothing was to be written."""

    @property
    def shifts(self) -> NDArray[np.float64]:
        """(T, 2) row, column in pixels to add to each frame, as measured; NaN where there is none."""
        return array_of(self.rows, "dy", "dx")

    @property
    def applied(self) -> NDArray[np.float64]:
        """(T, 2) row, column in pixels that each frame was moved by; NaN where it was dropped."""
        return array_of(self.rows, "applied_dy", "applied_dx")

    @property
    def sigma(self) -> NDArray[np.float64]:
        """(T, 2) standard error of each shift in pixels."""
        return array_of(self.rows, "sigma_y", "sigma_x")

    @property
    def score(self) -> NDArray[np.float64]:
        """(T,) zero-mean normalised correlation at the peak."""
        return array_of(self.rows, "score")[:, 0]

    @property
    def flags(self) -> tuple[tuple[str, ...], ...]:
        """Words that say what is doubtful about each frame."""
        return tuple(row.flags for row in self.rows)

    @property
    def trusted(self) -> NDArray[np.bool_]:
        """(T,) whether a frame has a shift and nothing speaks against it."""
        known = np.isfinite(self.shifts).all(axis=1)
        return np.array([is_trusted(flags) for flags in self.flags], dtype=bool) & known

    def to_dataframe(self) -> Any:
        """Return the table as a ``pandas.DataFrame``; needs pandas."""
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        return pd.DataFrame(columns_of(self.rows))

    def summary(self) -> str:
        """Say in a line what came of the stack."""
        return f"{self.name}: {self.failure or super().summary()}"


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(Mapping[str, AlignedStack]):
    """What a run did: its stacks by name, in the order of the inputs, and its files."""

    stacks: tuple[AlignedStack, ...]
    """Stacks, and files that could not be used."""
    out: Path
    report: Path | None
    """``report.html``, where one was asked for."""
    record: Path
    """``run.json``."""

    @classmethod
    def of(cls, run: Run, out: Path) -> Self:
        """Gather the result of a run."""
        stacks = tuple(_stack(report_of(outcome), out, failed=outcome.failed) for outcome in run.outcomes)
        return cls(stacks, out, run.report, run.record)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the stacks that failed or count as failed; empty when all is good."""
        return tuple(stack.name for stack in self.stacks if stack.failed)

    def __getitem__(self, name: str) -> AlignedStack:
        for stack in self.stacks:
            if stack.name == name:
                return stack
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (stack.name for stack in self.stacks)

    def __len__(self) -> int:
        return len(self.stacks)

    def __repr__(self) -> str:
        return f"Alignment({self.summary()})"

    def _repr_html_(self) -> str:
        rows = [_row(stack) for stack in self.stacks]
        names = ("stack", "frames", "trusted", "largest shift", "result")
        return html_table(repr(self), {name: [row[i] for row in rows] for i, name in enumerate(names)})

    def summary(self) -> str:
        """Say in a line how many stacks there are, and where."""
        return f"{len(self.stacks)} stacks, {len(self.failed)} failed, {self.out}"


def _stack(report: StackReport, out: Path, *, failed: bool) -> AlignedStack:
    folder = out / report.name
    there = report.failure is None
    written = (folder / f"{report.name}_aligned{ending}" for ending in ENDINGS.values())
    return AlignedStack(
        report.name,
        report.rows,
        report.assessment,
        report.notes,
        report.failure,
        failed,
        folder / "shifts.csv" if there else None,
        next((path for path in written if there and path.exists()), None),
    )


def _row(stack: AlignedStack) -> tuple[str, ...]:
    known = stack.applied[np.isfinite(stack.applied).all(axis=1)]
    largest = f"{np.hypot(*known.T).max():.2f} px" if known.size else ""
    state = stack.failure or ("failed" if stack.failed else "")
    return stack.name, str(len(stack.rows)), str(int(stack.trusted.sum())), largest, state


def align(
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Alignment:
    """Align stacks in files and write what ``xcorr align`` writes: tables, aligned stacks, report, ``run.json``.

    Parameters
    ----------
    inputs : path or sequence of paths
        Folders, files or globs of images.
    out : path
        Folder for the results.
    progress : callable or bool, optional
        ``progress(stage, done, total)``, or True for a bar on the terminal.
    **options
        Those of the command (``xcorr align --help-all``), by the same names with underscores: ``max_shift=20``,
        ``reference="template"``, ``interpolation="cubic"``, ``apply=False``, ``resume=True``. Those that measure are
        explained at :func:`xcorr_app.estimate_shifts`. A script that starts workers of its own machine
        (``cluster="local:4"``) needs ``if __name__ == "__main__":``.

    Returns
    -------
    Alignment
        A stack that fails does not stop the others: look at ``result.failed``.

    Raises
    ------
    ArgumentError
        An option is unknown or out of range.
    InputError
        Nothing is found.
    OutputError
        `out` cannot be used.
    ClusterError
        The cluster cannot be reached, or is lost.
    DeviceError
        The device that is asked for cannot be used.

    Examples
    --------
    >>> import numpy as np, tempfile, xcorr_app as xc
    >>> from pathlib import Path
    >>> from scipy.ndimage import gaussian_filter
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(100, 100)), 2)
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "movie.npy", np.stack([scene[10:74, 10:74], scene[13:77, 8:72]]).astype(np.float32))
    >>> result = xc.align(folder / "movie.npy", folder / "out", max_shift=8, device="cpu", report="none")
    >>> result["movie"].shifts.round(1) + 0.0
    array([[ 0.,  0.],
           [ 3., -2.]])
    """
    asked: AlignOptions = AlignOptions.of_keywords(options)
    paths = [Path(path) for path in ([inputs] if isinstance(inputs, (str, Path)) else inputs)]
    folder = Path(out)
    if asked.cluster is not None:
        # The current folder of workers may be another one.
        paths, folder = [Path(os.path.abspath(path)) for path in paths], Path(os.path.abspath(folder))  # noqa: PTH100
    work = plan_stacks(Align, paths, folder, asked, elsewhere=asked.cluster is not None)
    with (
        prepared_output(work.out, resume=asked.resume, overwrite=asked.overwrite),
        shown(progress) as display,
        workers_of(asked.cluster) as elsewhere,
    ):
        watcher = None if display is None else partial(_named, display)
        run = run_stacks(work, watcher=watcher, elsewhere=elsewhere)
        return Alignment.of(run, work.out)


def _named(display: Progress, name: str) -> Progress:
    """Progress of a stack, whose name goes before each stage."""
    return lambda stage, done, total: display(f"{name}: {stage}", done, total)


def _signature() -> inspect.Signature:
    """That of `align` with every option by its name, for those who ask."""
    known = inspect.signature(align)
    given = [each for each in known.parameters.values() if each.kind is not each.VAR_KEYWORD]
    named = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
        for each, _ in options_of(AlignOptions)
        if each.name in AlignOptions.keywords()
    ]
    return known.replace(parameters=[*given, *named])


align.__signature__ = _signature()  # type: ignore[attr-defined]  # mypy does not know that functions have one
