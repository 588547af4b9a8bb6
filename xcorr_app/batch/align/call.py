"""`align`: the whole of ``xcorr align`` as one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.result import Alignment
from xcorr_app.batch.align.run import align_device, plan_align, run_align
from xcorr_app.cluster.connect import check_cluster, connected
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.io import Limits, MemoryBudget, read_stack
from xcorr_app.io.single_channel import Channel
from xcorr_app.pipeline.output import prepared_output
from xcorr_app.pipeline.resources import Resources, default_memory
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.patches.patch_fit import PatchOptions
from xcorr_app.registration.progress_bar import shown
from xcorr_app.registration.settings import Roi, Settings, Subpixel
from xcorr_app.registration.stack.contrast import Contrast
from xcorr_app.registration.stack.passes import Progress
from xcorr_app.registration.stack.prefilter import Prefilter

if TYPE_CHECKING:
    from xcorr_app.cluster.workers import Workers


class AlignKeywords(TypedDict, total=False):
    """Options of ``xcorr align``, by the names of the command with underscores."""

    reference: str | int | Path
    max_shift: float | tuple[float, float] | None
    normalization: Literal["zncc", "none", "phase"]
    subpixel: Subpixel
    upsample: int
    weighting: Literal["auto", "none"]
    prefilter: str | None
    contrast: str
    roi: Roi | None
    engine: str
    kernel_options: KernelOptions | None
    min_overlap: float | None
    min_score: float
    tolerance: float
    max_sigma: float | None
    smooth_time: int
    device: str
    verify: Literal["auto", "all", "none"] | int
    apply: bool
    doubtful: Literal["interpolate", "apply", "leave", "drop"]
    interpolation: Literal["nearest", "linear", "cubic", "fourier"]
    border: Literal["constant", "nearest", "crop"]
    layout: Literal["auto", "frames", "stacks"]
    axis: Literal["T", "Z"] | None
    align_channel: int | Literal["sum"] | Sequence[int]
    mask: str | Path | None
    mask_moves: bool
    motion: Literal["translation", "rigid", "similarity", "affine", "patches"]
    patch: int
    patch_overlap: float
    max_deviation: float
    field_csv: bool
    field_ome_tiff: bool
    flat: Path | None
    dark: Path | None
    background: str | Path | None
    correct: bool
    format: Literal["same", "ome-tiff", "ome-zarr"]
    pyramid: int
    channel: Channel | None
    report: Literal["none", "quick", "full"]
    max_pixels: int


def align(
    inputs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    memory: int | None = None,
    compression: str | None = None,
    cluster: str | None = None,
    progress: Progress | bool | None = None,
    **options: Unpack[AlignKeywords],
) -> Alignment:
    """Align stacks in files and write what ``xcorr align`` writes: tables, aligned stacks, report, ``run.json``.

    Parameters
    ----------
    inputs : path or sequence of paths
        Folders, files or globs of images.
    out : path
        Folder for the results.
    resume, overwrite : bool
        Continue an interrupted run in `out`, or replace its results; without either, a folder that is not empty is
        refused.
    memory : int, optional
        Bytes of main memory for keeping stacks: of any that fits, each frame is read once. By default an eighth of
        main memory, at most 1 GiB; on a CPU a single plain TIFF of more than 64 MiB is not kept but read again.
    compression : str, optional
        Of the TIFF files that are written, as ``--compression``.
    cluster : str, optional
        Workers that compute the stacks: ``local:N``, ``gpus``, the address of a scheduler, or its file, as
        ``--cluster``. A script that starts workers of its own machine needs ``if __name__ == "__main__":``.
    progress : callable or bool, optional
        ``progress(stage, done, total)``, or True for a bar on the terminal.
    **options
        Those of the command (``xcorr align --help``), by the same names with underscores: ``max_shift=20``,
        ``reference="template"``, ``interpolation="cubic"``, ``apply=False``. Those that measure are explained at
        :func:`xcorr_app.estimate_shifts`.

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
    asked = _options(options)
    paths = [Path(path) for path in ([inputs] if isinstance(inputs, (str, Path)) else inputs)]
    folder = Path(out)
    if cluster is not None:
        check_cluster(cluster)
        # The current folder of workers may be another one.
        paths, folder = [Path(os.path.abspath(path)) for path in paths], Path(os.path.abspath(folder))  # noqa: PTH100
    modes: Any = {"resume": resume, "overwrite": overwrite}
    plan = plan_align(paths, folder, asked, **modes, elsewhere=cluster is not None)
    budget = default_memory() if memory is None else MemoryBudget(memory)
    resources = Resources(budget, compression, pyramid=options.get("pyramid", 1))
    how: Any = {"resume": resume, "resources": resources}
    with prepared_output(plan.out, **modes), shown(progress) as told, _workers(cluster) as elsewhere:
        watcher = None if told is None else partial(_named, told)
        return Alignment.of(run_align(plan, **how, watcher=watcher, elsewhere=elsewhere), plan.out)


def _workers(cluster: str | None) -> AbstractContextManager[Workers | None]:
    return nullcontext() if cluster is None else connected(cluster, align_device)


def _named(told: Progress, name: str) -> Progress:
    """Progress of a stack, whose name goes before each stage."""
    return lambda stage, done, total: told(f"{name}: {stage}", done, total)


def _options(given: AlignKeywords) -> AlignOptions:
    """Sort what was given into the measurement's settings and the rest."""
    values: dict[str, Any] = dict(given)
    measured, others = ({field.name for field in fields(kind)} for kind in (Settings, AlignOptions))
    known = set(AlignKeywords.__annotations__)
    if unknown := sorted(set(values) - known):
        raise ArgumentError(f"unknown option {', '.join(unknown)}: the options are {', '.join(sorted(known))}")
    settings = {name: value for name, value in values.items() if name in measured}
    if "prefilter" in settings:
        settings["prefilter"] = Prefilter.parse(settings["prefilter"])
    if "contrast" in settings:
        settings["contrast"] = Contrast.parse(settings["contrast"])
    mask = values.pop("mask", None)
    moves = values.pop("mask_moves", False)
    if mask is not None:
        image = read_stack(mask).data if isinstance(mask, Path) else mask
        settings["masks"] = Masks.of(image, moves=moves)
    settings["min_overlap"] = Settings.overlap(settings.get("min_overlap"), settings.get("masks"))
    rest = {name: value for name, value in values.items() if name in others} | {"mask": mask}
    for name in ("flat", "dark", "background"):
        if isinstance(rest.get(name), Path):
            rest[name] = Path(os.path.abspath(rest[name]))  # noqa: PTH100 - links stay
    channels = values.get("align_channel", 0)
    if channels == "sum":
        rest |= {"align_channel": 0, "more_channels": None}
    elif isinstance(channels, Sequence):
        rest |= {"align_channel": channels[0], "more_channels": tuple(channels[1:])}
    cut = {"patch": "patch", "patch_overlap": "overlap", "max_deviation": "max_deviation"}
    rest["patches"] = PatchOptions(**{field: values[name] for name, field in cut.items() if name in values})
    if "max_pixels" in values:
        rest["limits"] = Limits(max_pixels=values["max_pixels"])
    return AlignOptions(settings=Settings(**settings), **rest)
