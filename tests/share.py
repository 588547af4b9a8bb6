"""Which of many like cases run: a fixed sample, and with ``XCORR_TEST_SHARE=all`` every one."""

import os
import zlib


def everything() -> bool:
    """Whether every case was asked for."""
    return os.environ.get("XCORR_TEST_SHARE") == "all"


def holds(name: str, parts: int) -> bool:
    """Whether the case of that name runs, as about one in so many does."""
    return everything() or zlib.crc32(name.encode()) % parts == 0


def spread(numbers: range, parts: int) -> range:
    """Every n-th of them; all where everything was asked for."""
    return numbers if everything() else numbers[::parts]
