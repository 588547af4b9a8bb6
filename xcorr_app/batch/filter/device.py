"""Where ``xcorr filter`` computes: what device and engine, and the CPU where the device's memory does not suffice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from xcorr_app.batch.filter.options import FilterOptions
from xcorr_app.errors import ArgumentError, DeviceError, DeviceMemoryError
from xcorr_app.filtering.convolve import filter_frames
from xcorr_app.filtering.device_choice import device_engine
from xcorr_app.filtering.taps import correlation_kernel
from xcorr_app.gpu.runtime.memory import release_unused
from xcorr_app.gpu.runtime.select import Device, select_device
from xcorr_app.registration.passes import Pass, Progress

T = TypeVar("T")

NOTE = "The device's memory did not suffice for the stack: the CPU filtered it from plane {} on."
HOST_ENGINES = ("opencv", "scipy")
"""They run on the CPU alone."""


def filter_device(options: FilterOptions) -> Device:
    """Choose the device, and refuse an engine that cannot run there or cannot run the taps, before any image is read.

    Raises
    ------
    ArgumentError
        The device is not known, or the engine does not fit it or the taps.
    DeviceError
        A GPU is needed and cannot be used; the message says why.
    """
    device = Device(np, "CPU") if options.device == "auto" and options.engine in HOST_ENGINES else None
    device = device or select_device(options.device)
    if options.engine == "reuse" and device.xp is np:
        why = device.note or "--device cpu was given"
        raise DeviceError(f"engine 'reuse' runs on a GPU ({why}); --engine auto gives the same on the CPU")
    if device.xp is not np and options.engine in HOST_ENGINES:
        raise ArgumentError(f"engine {options.engine!r} runs on the CPU: leave --device {options.device} out")
    if options.choice.bank is not None:
        if options.engine != "auto":
            raise ArgumentError(f"a bank is computed as a whole: leave --engine {options.engine} out")
    elif device.xp is not np:
        device_engine(correlation_kernel(options.choice.taps, 0, flip=True, tolerance=1e-12), options.engine)
    elif options.engine != "auto":
        filter_frames(np.zeros((1, 1), np.float32), options.choice.taps, engine=options.engine)
    return device


def over_planes(
    device: Device,
    count: int,
    pixels: int,
    job: Callable[[int, int, Any], T],
    progress: Progress | None,
    notes: list[str],
) -> Iterator[T]:
    """Yield ``job(start, stop, xp)`` for consecutive ranges of planes, in order.

    Where the device's memory does not suffice for a single plane, the CPU goes on from there, and `notes` says so.

    Parameters
    ----------
    device : Device
    count : int
        Number of planes.
    pixels : int
        Pixels of one of them.
    job : callable
        Filters planes with arrays of ``xp``.
    progress : callable or None
    notes : list of str
        Added to.
    """
    done = 0
    if device.xp is not np:

        def counted(start: int, stop: int) -> tuple[int, T]:
            return stop, job(start, stop, device.xp)

        try:
            for stop, result in Pass(count, pixels, on_device=True, progress=progress).over("filter", counted):
                yield result
                done = stop
            return
        except DeviceMemoryError:
            release_unused()
            notes.append(NOTE.format(done))
    first = done

    def tell(stage: str, number: int, _: int) -> None:
        if progress is not None:
            progress(stage, first + number, count)

    rest = Pass(count - first, pixels, on_device=False, progress=tell)
    yield from rest.over("filter", lambda start, stop: job(first + start, first + stop, np))
