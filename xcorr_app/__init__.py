"""Image cross-correlation and registration.

The public names are imported when they are first used, so that ``import xcorr_app`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xcorr_app.batch.align.call import AlignedStack, Alignment, align
    from xcorr_app.correlation.find_shifts import FoundShifts, find_shifts
    from xcorr_app.correlation.plane import cross_correlate
    from xcorr_app.correlation.window import ShiftWindow
    from xcorr_app.filtering import named as filters
    from xcorr_app.filtering.convolve import convolve, filter_taps
    from xcorr_app.filtering.filter_bank import filter_bank
    from xcorr_app.filtering.stains import stain_matrix
    from xcorr_app.filtering.unmix import unmix
    from xcorr_app.gpu.direct.options import KernelOptions
    from xcorr_app.gpu.im2win.options import Im2winOptions
    from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
    from xcorr_app.gpu.stencil.exchange import ExchangeOptions
    from xcorr_app.io.shift_table import load_shifts
    from xcorr_app.io.source import StackMetadata
    from xcorr_app.io.stack import Stack, read_stack, write_stack
    from xcorr_app.registration.assessment import Assessment, assess
    from xcorr_app.registration.correction import correct_frames
    from xcorr_app.registration.estimate import estimate_shifts
    from xcorr_app.registration.estimate_motion import estimate_motion
    from xcorr_app.registration.field.displacement_field import displacement_field
    from xcorr_app.registration.field.measured_field import DisplacementField
    from xcorr_app.registration.motion.result import MotionResult
    from xcorr_app.registration.moving.apply import apply_shifts
    from xcorr_app.registration.pair import phase_cross_correlation, shift_pair
    from xcorr_app.registration.results.results import ShiftResult

__version__ = "0.2.0"

__all__ = [
    "AlignedStack",
    "Alignment",
    "Assessment",
    "BlockingOptions",
    "DisplacementField",
    "ExchangeOptions",
    "FoundShifts",
    "Im2winOptions",
    "KernelOptions",
    "MotionResult",
    "ShiftResult",
    "ShiftWindow",
    "Stack",
    "StackMetadata",
    "__version__",
    "align",
    "apply_shifts",
    "assess",
    "convolve",
    "correct_frames",
    "cross_correlate",
    "displacement_field",
    "estimate_motion",
    "estimate_shifts",
    "filter_bank",
    "filter_taps",
    "filters",
    "find_shifts",
    "load_shifts",
    "phase_cross_correlation",
    "read_stack",
    "shift_pair",
    "stain_matrix",
    "unmix",
    "write_stack",
]

_MODULES = {
    "AlignedStack": "batch.align.call",
    "Alignment": "batch.align.call",
    "Assessment": "registration.assessment",
    "FoundShifts": "correlation.find_shifts",
    "BlockingOptions": "gpu.pointwise.blocking_options",
    "ExchangeOptions": "gpu.stencil.exchange",
    "Im2winOptions": "gpu.im2win.options",
    "DisplacementField": "registration.field.measured_field",
    "KernelOptions": "gpu.direct.options",
    "MotionResult": "registration.motion.result",
    "ShiftResult": "registration.results.results",
    "ShiftWindow": "correlation.window",
    "Stack": "io.stack",
    "StackMetadata": "io.source",
    "align": "batch.align.call",
    "apply_shifts": "registration.moving.apply",
    "assess": "registration.assessment",
    "correct_frames": "registration.correction",
    "convolve": "filtering.convolve",
    "cross_correlate": "correlation.plane",
    "displacement_field": "registration.field.displacement_field",
    "estimate_motion": "registration.estimate_motion",
    "estimate_shifts": "registration.estimate",
    "filter_bank": "filtering.filter_bank",
    "filter_taps": "filtering.convolve",
    "filters": "filtering.named",
    "load_shifts": "io.shift_table",
    "find_shifts": "correlation.find_shifts",
    "phase_cross_correlation": "registration.pair",
    "read_stack": "io.stack",
    "shift_pair": "registration.pair",
    "stain_matrix": "filtering.stains",
    "unmix": "filtering.unmix",
    "write_stack": "io.stack",
}
"""Where each public name is defined; `filters` is the module itself."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    value = module if name == "filters" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
