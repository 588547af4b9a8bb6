"""Planes that were computed, handed to who writes them; commands that make one file of each stack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.gpu.runtime.download import download_in_parts
from xcorr_app.io import make_folder
from xcorr_app.pipeline.work import OptionsT, Work


class OneFile(Work[OptionsT]):
    """Makes one file of each stack."""

    done: str
    """What becomes of stacks: ends the name of their files."""

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        return [self.plan.out / name / f"{name}_{self.done}.tif"]

    def target(self, name: str) -> Path:
        """The file, whose folder is there."""
        (path,) = self.outputs(name)
        make_folder(path.parent)
        return path


def write_planes(writer: Any, planes: Array, area: tuple[slice, slice] | None = None, *, counted: bool = False) -> int:
    """Write planes (..., Y, X), or an area of each, in order; returns how many pixels are NaN or infinite, if asked."""
    unusual = 0
    for part in download_in_parts(planes):
        if counted and part.dtype.kind == "f":
            unusual += part.size - int(np.count_nonzero(np.isfinite(part)))
        for plane in part.reshape(-1, *part.shape[-2:]):
            writer.write(plane if area is None else plane[area])
    return unusual
