"""Image cross-correlation and registration."""

from xcorr_app.correlation.plane import cross_correlate
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.filtering import named as filters
from xcorr_app.filtering.convolve import convolve, filter_taps
from xcorr_app.filtering.filter_bank import filter_bank
from xcorr_app.filtering.stains import stain_matrix
from xcorr_app.filtering.unmix import unmix
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.io.source import StackMetadata
from xcorr_app.io.stack import Stack, read_stack, write_stack
from xcorr_app.registration.apply import apply_shifts
from xcorr_app.registration.estimate import estimate_shifts
from xcorr_app.registration.results import ShiftResult

__version__ = "0.1.0"

__all__ = [
    "KernelOptions",
    "ShiftResult",
    "ShiftWindow",
    "Stack",
    "StackMetadata",
    "__version__",
    "apply_shifts",
    "convolve",
    "cross_correlate",
    "estimate_shifts",
    "filter_bank",
    "filter_taps",
    "filters",
    "read_stack",
    "stain_matrix",
    "unmix",
    "write_stack",
]
