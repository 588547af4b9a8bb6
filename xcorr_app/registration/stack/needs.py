"""How much memory a measurement takes at least, known before it starts, and how much there is.

Without the first, a pair of frames of 20000 x 20000 pixels takes memory for minutes before it fails, or the
system ends the process.
"""

from __future__ import annotations

from pathlib import Path

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import LimitError
from xcorr_app.system import memory_limit

_BYTES_PER_PIXEL = 95
"""Of the measured part: frame, reference, their spectra and sums of squares, the plane and what is derived of it.
Measured on one pair of uint16 frames of 3000 x 3000 and 6000 x 6000 pixels (94 to 110)."""
_BYTES_OF_CHECK = 30
"""More, for every pixel of a frame padded by the window, where a frame is checked against the float64 FFT."""
_WORTH_ASKING = 1 << 30
"""Less than this is not compared with anything."""


def check_memory(shape: tuple[int, int], window: ShiftWindow, *, verified: bool) -> None:
    """Raise LimitError where a measurement needs more memory than there is, as far as that is known."""
    needed = _BYTES_PER_PIXEL * shape[0] * shape[1]
    if verified:
        needed += _BYTES_OF_CHECK * (shape[0] + window.dy_max) * (shape[1] + window.dx_max)
    free = None if needed < _WORTH_ASKING else free_bytes()
    if free is not None and needed > free:
        raise LimitError(
            f"measuring frames of {shape[0]} x {shape[1]} pixels, shifts up to {window.dy_max} and {window.dx_max}, "
            f"needs at least {needed / 1e9:.3g} GB of memory, {free / 1e9:.3g} GB are free; measure a part with --roi"
            + (", leave the check out with --verify none," if verified else ",")
            + " or use a machine with more"
        )


def free_bytes() -> int | None:
    """Bytes that this process may still take: of the machine, of its control group, of its own limit."""
    known = [free for free in (_of_machine(), _of_group(), memory_limit()) if free is not None]
    return min(known, default=None)


def _of_machine() -> int | None:
    """What the system can give without killing anybody, swap included."""
    values = _table(Path("/proc/meminfo"))
    if "MemAvailable:" not in values:
        return None
    return 1024 * (values["MemAvailable:"] + values.get("SwapFree:", 0))


def _of_group() -> int | None:
    """What a container may still take; files in the page cache are given up for it."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text())
        used = int((group / "memory.current").read_text())
    except (OSError, ValueError):  # "max": there is no limit
        return None
    return max(0, limit - used + _table(group / "memory.stat").get("file", 0))


def _table(path: Path) -> dict[str, int]:
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
        return {line[0]: int(line[1]) for line in lines if len(line) > 1}
    except (OSError, ValueError):
        return {}
