"""`align`: the whole of ``xcorr align`` as one call."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.result import Alignment
from xcorr_app.batch.align.run import Align
from xcorr_app.batch.option import options_of
from xcorr_app.cluster.connect import workers_of
from xcorr_app.pipeline.output import prepared_output
from xcorr_app.pipeline.run import run_stacks
from xcorr_app.pipeline.work import plan_stacks
from xcorr_app.registration.progress_bar import shown
from xcorr_app.registration.stack.passes import Progress


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
    plan = plan_stacks(Align, paths, folder, asked, elsewhere=asked.cluster is not None)
    with (
        prepared_output(plan.out, resume=asked.resume, overwrite=asked.overwrite),
        shown(progress) as told,
        workers_of(asked.cluster) as elsewhere,
    ):
        watcher = None if told is None else partial(_named, told)
        run = run_stacks(Align(plan), watcher=watcher, elsewhere=elsewhere)
        return Alignment.of(run, plan.out)


def _named(told: Progress, name: str) -> Progress:
    """Progress of a stack, whose name goes before each stage."""
    return lambda stage, done, total: told(f"{name}: {stage}", done, total)


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
