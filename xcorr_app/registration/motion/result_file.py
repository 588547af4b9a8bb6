"""Results of a measurement of motion in an archive that gives them back.

What is written and read are the fields of a :class:`xcorr_app.registration.motion.result.MotionResult`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from xcorr_app.errors import ArgumentError
from xcorr_app.registration.results.doubtful_frames import DEFAULT_POLICY, check_policy
from xcorr_app.registration.results.result_files import archive_of, parsed_words, read_archive, words_of, write_whole
from xcorr_app.registration.warping.field import Field

_ARRAYS = ("matrices", "score", "sigma", "sigma_angle", "overlap")
_OF_FIELD = ("rows", "columns", "shifts", "sigma", "trusted", "significance")
_COMPACT = ("sigma", "significance")
"""Kept in float32; what frames are moved by is kept as it is, for the same pixels whoever moves them."""


def save(result: Any, path: Path) -> None:
    """Write a result as its method of this name says."""
    if path.suffix.lower() != ".npz":
        raise ArgumentError(f"{path}: motion is written to .npz")
    write_whole(path, content_of(result))


def content_of(result: Any) -> bytes:
    """Return what `save` writes; the same result gives the same bytes."""
    words = words_of(result) | {name: getattr(result, name) for name in ("model", "shape", "doubtful")}
    arrays = {name: getattr(result, name) for name in _ARRAYS}
    if result.field is not None:
        for name in _OF_FIELD:
            array = getattr(result.field, name)
            arrays[f"field_{name}"] = array.astype(np.float32) if name in _COMPACT else array
    return archive_of(words, arrays)


def load(path: Path) -> dict[str, Any]:
    """Read the fields of a result, as its method of this name says."""
    return read_archive(path, _result_of, "no motion of a stack")


def _result_of(archive: Any) -> dict[str, Any]:
    words: dict[str, Any] = json.loads(archive["words"].item())
    arrays = {name: archive[name] for name in _ARRAYS}
    field = None
    if "field_shifts" in archive:
        parts = {name: archive[f"field_{name}"] for name in _OF_FIELD}
        field = Field(**{name: part.astype(np.float64) if name in _COMPACT else part for name, part in parts.items()})
    frames = len(arrays["matrices"])
    if any(len(array) != frames for array in arrays.values()) or (field is not None and len(field.shifts) != frames):
        raise ValueError("its arrays are of different lengths")
    return dict(
        **arrays,
        **parsed_words(words),
        model=str(words["model"]),
        shape=(int(words["shape"][0]), int(words["shape"][1])),
        field=field,
        doubtful=check_policy(str(words.get("doubtful", DEFAULT_POLICY))),
    )
