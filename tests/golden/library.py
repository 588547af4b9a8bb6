"""Calls of the library, each named by what is asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import xcorr_app as xc
from tests.golden import outputs, scenes
from xcorr_app.registration.motion.models import MODELS

Case = Callable[[], Any]

PLAIN: dict[str, dict[str, Any]] = {
    "defaults": {},
    "last": {"reference": "last"},
    "mean": {"reference": "mean"},
    "median": {"reference": "median"},
    "template": {"reference": "template"},
    "previous": {"reference": "previous"},
    "rolling": {"reference": "rolling:2"},
    "pairs": {"reference": "pairs:3"},
    "number": {"reference": 3},
    "dft": {"subpixel": "dft", "upsample": 16},
    "quadratic": {"subpixel": "quadratic"},
    "parabolic": {"subpixel": "parabolic"},
    "whole": {"subpixel": "none"},
    "icgn": {"subpixel": "icgn"},
    "plain-sums": {"normalization": "none"},
    "phase": {"normalization": "phase"},
    "unweighted": {"weighting": "none"},
    "highpass": {"prefilter": "highpass:3"},
    "dog": {"prefilter": "dog:1,3"},
    "median-filter": {"prefilter": "median:3"},
    "sobel": {"prefilter": "sobel"},
    "local": {"contrast": "local:4"},
    "as-it-is": {"contrast": "none"},
    "part": {"roi": (slice(5, 60), slice(7, 71))},
    "two-limits": {"max_shift": (7, 5)},
    "checked": {"verify": "all"},
    "three-checked": {"verify": 3, "tolerance": 1e-7},
    "overlap": {"min_overlap": 0.9, "max_shift": 20},
    "strict": {"min_score": 0.9999, "max_sigma": 1e-3},
    "definition": {"engine": "definition", "max_shift": 6},
    "smooth": {"smooth_time": 3},
    "masked": {"mask": "threshold:95"},
}


def _estimate(scene: Callable[[], np.ndarray], **how: Any) -> Any:
    return xc.estimate_shifts(scene(), **how)


def _pair(seed: int, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random(left).round(3), rng.random(right).round(3) + 0.2


FORMS = {
    "one-to-one": ((13, 17), (13, 17)),
    "one-to-many": ((13, 17), (3, 13, 17)),
    "n-to-mn": ((2, 11, 9), (2, 3, 11, 9)),
    "n-to-m": ((2, 11, 9), (3, 11, 9)),
}


def _correlation() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for form, shapes in FORMS.items():
        for norm in ("zncc", "none", "phase"):
            left, right = _pair(7, *shapes)
            how: dict[str, Any] = {"form": form, "normalization": norm, "max_shift": (4, 5)}
            cases[f"plane-{form}-{norm}"] = partial(xc.cross_correlate, left, right, **how)
            cases[f"peak-{form}-{norm}"] = partial(xc.find_shifts, left, right, **how)
    left, right = _pair(8, (15, 12), (4, 15, 12))
    for subpixel in ("gaussian", "dft", "quadratic", "parabolic", "none"):
        cases[f"peak-{subpixel}"] = partial(xc.find_shifts, left, right, "one-to-many", subpixel=subpixel)
    for engine in ("fft", "definition"):
        cases[f"plane-{engine}-all"] = partial(
            xc.cross_correlate, left, right, "one-to-many", engine=engine, min_overlap=0.0
        )
    window = xc.ShiftWindow(-3, 7, 2, 6)
    cases["plane-window"] = partial(xc.cross_correlate, left, right, "one-to-many", window, min_overlap=0.6)
    cases["peak-of-frames"] = partial(_peaks_of_frames, max_shift=12)
    cases["peak-float32"] = partial(_peaks_of_frames, normalization="none")
    return cases


def _peaks_of_frames(**how: Any) -> Any:
    stack = scenes.plain()
    return xc.find_shifts(stack[0], stack, "one-to-many", **how)


def _filters() -> dict[str, Case]:
    rng = np.random.default_rng(4)
    images = {"uint8": rng.integers(0, 256, (2, 23, 31), np.uint8), "float32": rng.random((2, 23, 31), np.float32)}
    images["int16"] = rng.integers(-3000, 3000, (23, 31), np.int16)
    named = {
        "gaussian": xc.filters.gaussian((1.3, 0.8)), "box": xc.filters.box((3, 4)), "sobel": xc.filters.sobel("x"),
        "laplacian": xc.filters.laplacian(), "log": xc.filters.log(1.1), "dog": xc.filters.dog(1.0, 2.0),
        "unsharp": xc.filters.unsharp(1.2, 0.7), "taps": rng.random((3, 5)),
    }  # fmt: skip
    cases: dict[str, Case] = {}
    for name, taps in named.items():
        for dtype, image in images.items():
            cases[f"filter-{name}-{dtype}"] = partial(xc.convolve, image, taps)
    for mode in ("reflect", "constant", "nearest", "mirror", "wrap", "valid"):
        how: dict[str, Any] = {"mode": mode, "cval": 3.5, "origin": (1, 0), "dtype": "float32"}
        if mode == "valid":
            del how["origin"]
        cases[f"filter-{mode}"] = partial(xc.filter_taps, images["uint8"], named["taps"], **how)
        bank = rng.random((3, 3, 5)) - 0.5
        cases[f"bank-{mode}"] = partial(xc.filter_bank, images["float32"], bank, mode=mode, cval=0.3, stride=2)
    for layout, shape in (("NCHW", (2, 3, 12, 15)), ("NHWC", (2, 12, 15, 3))):
        filters = rng.random((4, 3, 3, 3) if layout == "NCHW" else (3, 3, 3, 4))
        cases[f"conv2d-{layout}"] = partial(_conv2d, rng.random(shape), filters, layout)
    colours = rng.integers(1, 256, (3, 14, 17), np.uint8)
    for stain in ("he", "hdab", "hed"):
        cases[f"stain-{stain}"] = partial(_stains, colours, stain)
    matrix = rng.random((2, 3)) - 0.3
    cases["unmix"] = partial(xc.unmix, colours, matrix)
    cases["unmix-clip"] = partial(xc.unmix, colours, matrix, clip=True, dtype="float32")
    cases["unmix-log"] = partial(xc.unmix, colours, matrix, from_log=True, white=200.0)
    cases["unmix-last"] = partial(xc.unmix, np.moveaxis(colours, 0, -1).astype(float), matrix, channel_axis=-1)
    return cases


def _conv2d(images: np.ndarray, filters: np.ndarray, layout: Any) -> Any:
    return xc.conv2d(images, filters, stride=2, layout=layout)


def _stains(colours: np.ndarray, name: str) -> Any:
    stains = xc.stain_matrix(name)
    return {"matrix": stains.matrix, "amounts": xc.unmix(colours, stains.matrix, from_log=True)}


def _registration() -> dict[str, Case]:
    cases: dict[str, Case] = {f"shifts-{name}": partial(_estimate, scenes.plain, **how) for name, how in PLAIN.items()}
    for deviation in (0.5, 2.0):
        noisy = partial(scenes.plain, deviation)
        for name in ("defaults", "template", "pairs", "median", "checked", "icgn", "smooth", "masked"):
            cases[f"shifts-{name}-noise-{deviation}"] = partial(_estimate, noisy, **PLAIN[name])
    for name in (
        "defaults",
        "mean",
        "median",
        "template",
        "previous",
        "rolling",
        "pairs",
        "checked",
        "smooth",
        "masked",
    ):
        cases[f"odd-frames-{name}"] = partial(_estimate, scenes.odd_frames, **PLAIN[name])
    special: dict[str, Callable[[], np.ndarray]] = {
        "over-a-pattern": scenes.over_a_pattern, "slow-over-a-pattern": scenes.slow_over_a_pattern,
        "turning-light": scenes.turning_light, "turning": scenes.turning, "swept": scenes.swept,
        "crossing": scenes.crossing, "blinking": scenes.blinking, "defective": scenes.defective,
    }  # fmt: skip
    for name, scene in special.items():
        cases[f"shifts-{name}"] = partial(_estimate, scene, max_shift=20)
        cases[f"shifts-{name}-template"] = partial(_estimate, scene, reference="template", max_shift=20)
    again = {
        "over-a-pattern": ("pairs:2", "mean"), "turning-light": ("previous", 2), "swept": ("pairs:2", "median"),
        "crossing": ("mean", "rolling:3"), "blinking": ("previous", "pairs:2"), "slow-over-a-pattern": (3,),
        "defective": ("last",), "turning": ("mean",),
    }  # fmt: skip
    for name, references in again.items():
        for reference in references:
            cases[f"shifts-{name}-{reference}"] = partial(
                _estimate, special[name], reference=reference, max_shift=20, verify="all"
            )
    cases["result-files"] = _result_files
    for order in ("nearest", "linear", "cubic", "fourier"):
        for mode in ("constant", "nearest", "crop"):
            cases[f"moved-{order}-{mode}"] = partial(_moved, order, mode)
    cases["corrected"] = _corrected
    cases["shifts-masked-moving"] = _masked_moving
    cases["assessed"] = partial(_assessed, scenes.plain)
    cases["assessed-odd"] = partial(_assessed, scenes.odd_frames)
    return cases


def _result_files() -> Any:
    """What a result shows and saves, and what of it is read again."""
    result = xc.estimate_shifts(scenes.odd_frames(), "first", 12, verify=3)
    with tempfile.TemporaryDirectory(prefix="golden-") as name:
        folder = Path(name) / "here" / "out"
        folder.mkdir(parents=True)
        for path in (folder / "r.csv", folder / "r.npz"):
            result.save(path)
        applied = {policy: result.applied(policy) for policy in ("interpolate", "apply", "leave", "drop")}
        return {
            "files": outputs.left_by(folder),
            "read": xc.load_shifts(folder / "r.csv"),
            "applied": applied,
            "trusted": result.trusted,
            "shown": outputs.text(repr(result), folder),
            "page": outputs.text(result._repr_html_(), folder),
        }


def _masked_moving() -> Any:
    stack = scenes.plain()
    mask = np.random.default_rng(5).random(stack.shape[1:]) < 0.9
    return {moves: xc.estimate_shifts(stack, "last", 12, mask=mask, mask_moves=moves) for moves in (False, True)}


def _moved(order: Any, mode: Any) -> Any:
    stack = scenes.plain()[:4]
    shifts = np.array([(0, 0), (2, -3), (1.4, 0.3), (-0.75, 2.5)])
    if mode == "crop":
        return {"integers": xc.apply_shifts(stack.round().astype(np.uint8), shifts, order)}
    return {
        "floats": xc.apply_shifts(stack, shifts, order, mode, 7.0),
        "integers": xc.apply_shifts(stack.round().astype(np.uint16), shifts, order, mode, 7),
    }


def _corrected() -> Any:
    stack, rng = scenes.defective()[:, :40, :50], np.random.default_rng(2)
    flat, dark = rng.uniform(0.5, 2, (40, 50)), rng.uniform(0, 9, (40, 50))
    return {
        "both": xc.correct_frames(stack, flat=flat, dark=dark),
        "background": xc.correct_frames(stack, background="median"),
        "image": xc.correct_frames(stack, dark=dark, background=50 * flat),
    }


def _assessed(scene: Callable[[], np.ndarray]) -> Any:
    stack = scene()
    result = xc.estimate_shifts(stack, max_shift=12)
    after = xc.apply_shifts(stack, result.applied(), "linear")
    return {"assessment": xc.assess(stack, after, result), "alone": xc.assess(stack, after)}


def _motion_of(scene: Callable[[], np.ndarray], *how: Any, **options: Any) -> Any:
    return xc.estimate_motion(scene(), *how, **options)


def _field(*, masked: bool = False, **how: Any) -> Any:
    first, _, last = scenes.bent()
    mask = np.ones(first.shape)
    mask[30:60, 50:90] = 0
    return xc.displacement_field(first, last, mask=mask if masked else None, **how)


def _motion() -> dict[str, Case]:
    cases: dict[str, Case] = {}
    for model in MODELS:
        cases[f"motion-{model}"] = partial(_motion_of, scenes.turning, model)
    for reference in ("last", 2):
        cases[f"motion-rigid-{reference}"] = partial(_motion_of, scenes.turning, "rigid", reference)
    cases["motion-odd"] = partial(_motion_of, scenes.odd_frames, "similarity")
    cases["motion-patches"] = partial(_motion_of, scenes.bent, "patches", patch=48)
    limits: dict[str, Any] = {"patch": 40, "patch_overlap": 0.25, "max_deviation": 4.0}
    cases["motion-patches-last"] = partial(_motion_of, scenes.bent, "patches", "last", **limits)
    fields: dict[str, dict[str, Any]] = {
        "defaults": {},
        "icgn": {"refine": "icgn"},
        "fine": {"window": 24, "step": 10, "passes": 3},
        "once": {"window": 40, "step": 20, "passes": 1},
        "masked": {"masked": True},
        "limits": {"max_displacement": 3.0, "median_threshold": 0.5},
    }
    for name, how in fields.items():
        cases[f"field-{name}"] = partial(_field, **how)
    return cases


def cases() -> dict[str, Case]:
    """Every call by its name."""
    return _correlation() | _filters() | _registration() | _motion()
