"""A folder of files with channels becomes a folder of mixed ones: one after the other, failures apart, resumable."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xcorr_app.batch.environment import versions
from xcorr_app.batch.reason import reason_of
from xcorr_app.batch.state import State, checksums, fingerprint
from xcorr_app.batch.unmix import UnmixOptions, UnmixPlan, plan_unmix, run_unmix
from xcorr_app.errors import InputError, OutputError, XcorrError
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.io import make_folder, remove_partials
from xcorr_app.io.natural import is_image_name, natural_key, stem, unique_names
from xcorr_app.registration.passes import Progress

Watcher = Callable[[UnmixPlan], Progress | None]
"""Called with the plan of a file when it begins; returns what is told of its progress."""


@dataclass(frozen=True)
class FolderPlan:
    """Files of a folder, and where each one's result goes."""

    files: tuple[tuple[Path, Path], ...]
    """Input and output."""
    out: Path
    device: Device
    options: UnmixOptions


@dataclass(frozen=True)
class FileOutcome:
    """What became of one file."""

    path: Path
    out: Path
    clipped: int = 0
    notes: tuple[str, ...] = ()
    failure: str | None = None
    resumed: bool = False
    """An earlier run had finished it."""


def plan_folder(
    folder: Path, out: Path, options: UnmixOptions, *, resume: bool = False, overwrite: bool = False
) -> FolderPlan:
    """Find the files and check the output folder; no pixel is read, nothing is written.

    Raises
    ------
    InputError
        If the folder holds no image, or cannot be read.
    OutputError
        If the output is a file, the folder itself or in it, or holds anything while neither `resume` nor `overwrite` is
        set.
    ArgumentError, DeviceError
        If it cannot be done as asked.
    """
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.is_file() and is_image_name(entry.name)]
        real, source = out.resolve(), folder.resolve()
        filled = out.is_dir() and any(out.iterdir())
    except OSError as error:
        raise InputError(f"{error.filename or folder}: cannot be read ({error.strerror})") from error
    if not names:
        raise InputError(f"{folder}: holds no TIFF or PNG file")
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out}: is a file; for a folder, -o names a folder")
    if real == source or source in real.parents:
        raise OutputError(f"{out}: lies in the input folder {folder}; results must go elsewhere: choose another -o")
    if filled and not (resume or overwrite):
        raise OutputError(f"{out}: is not empty; use --resume to go on with it, or --overwrite to replace results")
    names.sort(key=natural_key)
    results = unique_names(stem(name) for name in names)
    endings = [".ome.tif" if name.lower().endswith((".ome.tif", ".ome.tiff")) else ".tif" for name in names]
    files = [
        (folder / name, out / f"{result}_unmixed{ending}")
        for name, result, ending in zip(names, results, endings, strict=True)
    ]
    return FolderPlan(tuple(files), out, select_device(options.device), options)


def run_folder(
    plan: FolderPlan,
    *,
    resume: bool = False,
    overwrite: bool = False,
    stop_at_defects: bool = False,
    watcher: Watcher | None = None,
) -> list[FileOutcome]:
    """Mix the channels of every file of a plan; one that fails does not stop the others.

    Raises
    ------
    OutputError
        If the output folder cannot be made or written.
    """
    make_folder(plan.out)
    remove_partials(plan.out)
    state, options = State(plan.out), plan.options
    if overwrite:
        state.forget()
    matrix = () if options.matrix is None else (options.matrix,)
    decisive = _decisive(options)
    outcomes = []
    for path, out in plan.files:
        mark = fingerprint(decisive, checksums((path, *matrix)), versions() | {"device": plan.device.description})
        done = state.load_record(out.name, mark) if resume else None
        if done is not None:
            facts = done["facts"]
            outcomes.append(FileOutcome(path, out, facts["clipped"], tuple(facts["notes"]), resumed=True))
            continue
        try:
            outcomes.append(_mix_anew(path, out, plan, state, mark, watcher))
        except Exception as error:
            if stop_at_defects and not isinstance(error, XcorrError | MemoryError):
                raise
            outcomes.append(FileOutcome(path, out, failure=reason_of(error, "use a machine with more")))
    return outcomes


def _mix_anew(path: Path, out: Path, plan: FolderPlan, state: State, mark: str, watcher: Watcher | None) -> FileOutcome:
    """Mix a file and record it; what an earlier run left of it goes first, lest old passes for new."""
    state.discard(out.name, [out, out.with_name(out.name + ".json")])
    of_file = plan_unmix(path, out, plan.options)
    result = run_unmix(of_file, watcher(of_file) if watcher is not None else None)
    facts = {"clipped": result.clipped, "notes": list(result.notes)}
    state.save_record(out.name, mark, [out, of_file.record], facts)
    return FileOutcome(path, out, result.clipped, result.notes)


def _decisive(options: UnmixOptions) -> dict[str, Any]:
    """All that decides the results, besides the files."""
    names = ("stain", "channel_axis", "from_log", "white", "clip", "dtype")
    return {"program": "xcorr unmix", "limits": repr(options.limits)} | {name: getattr(options, name) for name in names}
