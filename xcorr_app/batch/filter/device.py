"""Where ``xcorr filter`` computes: which device, and whether the engine asked for runs there."""

from __future__ import annotations

import numpy as np

from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.errors import ArgumentError, DeviceError
from xcorr_app.filtering.choice import check_device_engine
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.taps import correlation_kernel
from xcorr_app.gpu.runtime.select import Device, select_device

HOST_ENGINES = ("opencv", "scipy")
"""They run on the CPU alone."""


def filter_device(options: FilterOptions) -> Device:
    """Choose the device, and refuse an engine that cannot run there or on such taps, before any image is read."""
    device = Device(np, "CPU") if options.device == "auto" and options.engine in HOST_ENGINES else None
    device = device or select_device(options.device)
    if options.explain_for:
        return device
    if options.kernel != "auto" and device.xp is np:
        why = device.note or "--device cpu was given"
        raise DeviceError(f"kernel {options.kernel!r} runs on a GPU ({why}); --kernel auto gives the same on the CPU")
    if options.engine == "reuse" and device.xp is np:
        why = device.note or "--device cpu was given"
        raise DeviceError(f"engine 'reuse' runs on a GPU ({why}); --engine auto gives the same on the CPU")
    if device.xp is not np and options.engine in HOST_ENGINES:
        raise ArgumentError(f"engine {options.engine!r} runs on the CPU: leave --device {options.device} out")
    if options.choice.bank is not None:
        if options.engine != "auto":
            raise ArgumentError(f"a bank is computed as a whole: leave --engine {options.engine} out")
    elif device.xp is not np:
        check_device_engine(correlation_kernel(options.choice.taps, 0, flip=True, tolerance=1e-12), options.engine)
    elif options.engine != "auto":
        filter_frames(np.zeros((1, 1), np.float32), options.choice.taps, engine=options.engine)
    return device
