"""Which of many like cases run: a share that moves on with the commit, so that all of them run over time.

``XCORR_TEST_SHARE`` names it: a number, to repeat what another run did, or ``all``.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from pathlib import Path

_NAME = "XCORR_TEST_SHARE"
_SHARES = 240  # what a share is one of may be any divisor of this


def settle() -> None:
    """Choose the share of this run, for the workers that it starts as well."""
    if not os.environ.get(_NAME):
        os.environ[_NAME] = str(int(_commit() or "0", 16) % _SHARES)


def described() -> str:
    """For the head of a report: how to run the same cases again."""
    return f"share of the kernels' cases: {_NAME}={os.environ[_NAME]} ({_NAME}=all for all)"


def everything() -> bool:
    """Whether every case was asked for."""
    return os.environ[_NAME] == "all"


def number() -> int:
    """Of this run's share; zero where everything was asked for."""
    return 0 if everything() else int(os.environ[_NAME])


def holds(name: str, parts: int) -> bool:
    """Whether this run's share, one of `parts`, holds the case of that name."""
    assert _SHARES % parts == 0
    return everything() or (zlib.crc32(name.encode()) - number()) % parts == 0


def spread(numbers: range, parts: int) -> range:
    """Every n-th of them, from another one on with each commit; all where everything was asked for."""
    assert _SHARES % parts == 0
    return numbers if everything() else numbers[number() % parts :: parts]


def _commit() -> str:
    """Hexadecimal name of the commit; empty where there is no repository."""
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--quiet", "--verify", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ""
