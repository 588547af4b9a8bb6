"""Every parameter of every public function with odd values: accepted, or refused in which words."""

from __future__ import annotations

import inspect
import warnings
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import xcorr_app as xc
from tests.golden import scenes
from xcorr_app.errors import XcorrError

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 3, 5, 17, -0.5, 0.0, 0.5, 1.0, 1.5, float("nan"), float("inf"), (), (1,), (0, 1), (2, 3),
    (-1, 2), (1, 2, 3), "", "x", "auto", "1", "none", "nearest", "fft", "gaussian:0", "gaussian:1", "median:2",
    "median:3", "local:0", "local:2", "pairs:0", "pairs:1", "pairs:9", "rolling:0", "rolling:2", "threshold:5",
    "threshold:x", "TYX", "YXT", "CYX",
)  # fmt: skip
_LEFT_OUT = {"progress", "check_finite"}
_QUICK: dict[str, dict[str, Any]] = {
    "estimate_motion": {"model": "translation"},
    "displacement_field": {"window": 16, "step": 12, "passes": 1},
}


def _arrays() -> tuple[Any, ...]:
    """Odd arrays, for the parameters that take one."""
    rng = np.random.default_rng(3)
    small = rng.random((3, 9, 11))
    return (
        np.zeros((0, 5)), np.zeros((4, 5)), np.ones((1, 1)), small[0], small, (99 * small).astype(np.int32),
        small.astype(complex), np.array(["a"]), np.where(small < 0.1, np.nan, small), small[None], small[0] > 0.5,
        rng.random((3, 2)), np.arange(24.0),
    )  # fmt: skip


def _functions() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    stack = scenes.plain(0.2)[:3, :24, :26]
    rng = np.random.default_rng(2)
    pair = (rng.random((9, 8)), rng.random((9, 8)))
    bent = scenes.bent()[1:, :40, :44]
    colours = rng.integers(1, 255, (3, 6, 7), np.uint8)
    return {
        "estimate_shifts": (xc.estimate_shifts, (stack,)),
        "estimate_motion": (xc.estimate_motion, (bent,)),
        "displacement_field": (xc.displacement_field, (bent[0], bent[1])),
        "apply_shifts": (xc.apply_shifts, (stack, np.array([(0, 0), (1, 2), (0.5, -1)]))),
        "correct_frames": (xc.correct_frames, (stack,)),
        "assess": (xc.assess, (stack, stack)),
        "cross_correlate": (xc.cross_correlate, pair),
        "find_shifts": (xc.find_shifts, pair),
        "convolve": (xc.convolve, (stack, np.ones((3, 3)))),
        "filter_bank": (xc.filter_bank, (stack, np.ones((2, 3, 3)))),
        "conv2d": (xc.conv2d, (stack[None], np.ones((2, 3, 3, 3)))),
        "unmix": (xc.unmix, (colours, np.eye(3))),
        "stain_matrix": (xc.stain_matrix, ("he",)),
        "ShiftWindow": (xc.ShiftWindow, (-1, 1, -2, 2)),
        "gaussian": (xc.filters.gaussian, (1.0,)),
        "box": (xc.filters.box, (3,)),
        "sobel": (xc.filters.sobel, ("x",)),
        "log": (xc.filters.log, (1.0,)),
        "dog": (xc.filters.dog, (1.0, 2.0)),
        "unsharp": (xc.filters.unsharp, (1.0, 1.0)),
    }


def _met(name: str) -> dict[str, str]:
    """Of every parameter what became of all values in turn: a point where one is accepted, else what is said."""
    function, known = _functions()[name]
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.name not in _LEFT_OUT]
    given = dict(zip(names, known, strict=False)) | _QUICK.get(name, {})
    arrays = {each.name for each in parameters if "Array" in str(each.annotation)}
    of_frames = np.ones(np.shape(known[0])[-2:] or (2, 2))
    same_shape = (
        of_frames,
        0 * of_frames,
        -of_frames,
        np.where(of_frames.cumsum().reshape(of_frames.shape) == 5, np.nan, 2.0),
    )
    return {
        one: " ".join(
            _outcome(function, given | {one: value})
            for value in (*_VALUES, *((*_arrays(), *same_shape) if one in arrays else ()))
        )
        for one in names
    }


def _outcome(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            function(**arguments)
    except XcorrError as error:
        if any(isinstance(value, np.ndarray) for value in arguments.values()) and "array" in str(error):
            return type(error).__name__[0]  # NumPy's versions show arrays otherwise
        return f"{zlib.crc32(f'{type(error).__name__}: {error}'.encode()):08x}"[:5]
    except Exception:  # noqa: BLE001 - which, depends on the versions of libraries
        return "!"
    return "."


def cases() -> dict[str, Callable[[], Any]]:
    """Every function by its name."""
    return {f"arguments-{name}": partial(_met, name) for name in _functions()}
