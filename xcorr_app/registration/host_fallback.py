"""A stack for which device memory does not suffice, however few frames are taken at a time, is measured on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from xcorr_app.gpu.runtime.arrays import Array, is_device_array, to_host
from xcorr_app.gpu.runtime.memory import or_on_host
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import Settings
from xcorr_app.registration.stack.frames import Frames

Measure = Callable[[Frames, str | int | Array, Settings, Any], ShiftResult]

NOTE = "The device's memory did not suffice to measure the stack: the CPU measured it."


def with_host_fallback(
    measure: Measure, frames: Frames, reference: str | int | Array, settings: Settings, xp: Any
) -> ShiftResult:
    """Measure where the frames live; if the device's memory runs out there, all of them once more on the CPU."""

    def on_host() -> ShiftResult:
        there = to_host(reference) if is_device_array(reference) else reference
        result = measure(frames.on_host(), there, replace(settings, engine="auto", kernel_options=None), np)
        return replace(result, notes=(*result.notes, NOTE))

    return or_on_host(lambda: measure(frames, reference, settings, xp), on_host)
