"""Calls of the library, each named by what is asked for: what a user takes from the result."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import xcorr_app as xc
from tests.golden import scenes

Case = Callable[[], Any]

PLAIN: dict[str, dict[str, Any]] = {
    "defaults": {},
    "mean": {"reference": "mean"},
    "template": {"reference": "template"},
    "previous": {"reference": "previous"},
    "pairs": {"reference": "pairs:3"},
    "number": {"reference": 3},
    "dft": {"subpixel": "dft", "upsample": 16},
    "whole": {"subpixel": "none"},
    "by-phase": {"subpixel": "phase"},
    "plain-sums": {"normalization": "none"},
    "phase": {"normalization": "phase"},
    "unweighted": {"weighting": "none"},
    "highpass": {"prefilter": "highpass:3"},
    "local": {"contrast": "local:4"},
    "part": {"roi": (slice(5, 60), slice(7, 71))},
    "two-limits": {"max_shift": (7, 5)},
    "checked": {"verify": "all"},
    "smooth": {"smooth_time": 3},
    "masked": {"mask": "threshold:95"},
}


def _estimate(scene: Callable[[], np.ndarray], **how: Any) -> Any:
    result = xc.estimate_shifts(scene(), **how)
    return _told(result)


def _told(result: Any) -> dict[str, Any]:
    return {"shifts": result.shifts, "sigma": result.sigma, "score": result.score, "flags": result.flags}


def _motion(scene: Callable[[], np.ndarray], *how: Any, **options: Any) -> Any:
    result = xc.estimate_motion(scene(), *how, **options)
    shifts = result.shifts if result.field is None else result.field.shifts
    return _told(result) | {"shifts": shifts, "angle": result.angle}


def _field(**how: Any) -> Any:
    first, _, last = scenes.bent()
    return {"shifts": xc.displacement_field(first, last, **how).displacement[:, ::3, ::3]}


def _assessed(scene: Callable[[], np.ndarray]) -> Any:
    stack = scene()
    result = xc.estimate_shifts(stack, max_shift=12)
    found = xc.assess(stack, xc.apply_shifts(stack, result.applied(), "linear"), result)
    return {"correlation": [found.correlation.before, found.correlation.after]}


def cases() -> dict[str, Case]:
    """Every call by its name."""
    found: dict[str, Case] = {f"shifts-{name}": partial(_estimate, scenes.plain, **how) for name, how in PLAIN.items()}
    for name in ("defaults", "template", "pairs"):
        found[f"noise-{name}"] = partial(_estimate, partial(scenes.plain, 0.5), **PLAIN[name])
        found[f"odd-frames-{name}"] = partial(_estimate, scenes.odd_frames, **PLAIN[name])
    special: dict[str, tuple[Callable[[], np.ndarray], str]] = {
        "over-a-pattern": (scenes.over_a_pattern, "first"),
        "turning-light": (scenes.turning_light, "previous"),
        "swept": (scenes.swept, "pairs:2"),
        "crossing": (scenes.crossing, "mean"),
        "blinking": (scenes.blinking, "template"),
        "defective": (scenes.defective, "first"),
    }
    for name, (scene, reference) in special.items():
        found[f"shifts-{name}"] = partial(_estimate, scene, reference=reference, max_shift=20)
    found["motion-rigid"] = partial(_motion, scenes.turning, "rigid")
    found["motion-affine"] = partial(_motion, scenes.turning, "affine")
    found["motion-patches"] = partial(_motion, scenes.bent, "patches", patch=48)
    found["field-defaults"] = _field
    found["field-icgn"] = partial(_field, refine="icgn")
    found["assessed"] = partial(_assessed, scenes.plain)
    return found
