"""One changed file read: the same array, an exception of the project, or what no reader can tell from a sound file.

Anything else is a finding: another exception, wrong pixels, a warning, a line on standard error, much time or memory.
"""

import contextlib
import ctypes
import os
import random
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import rules, targets
from tests.fuzz.mutators import mutate
from tests.fuzz.targets import TARGETS
from xcorr_app.errors import InputError, XcorrError

SECONDS = 5.0
SLACK = 1 << 24
"""Bytes that reading may take beside twice what a file declares: of libraries, and of a file that declares little."""
ADDRESSES = 6 << 30
"""Bytes that a process of ``make fuzz`` may ask for: a file that takes more ends it, and is seen."""


class Finding(NamedTuple):
    """A change that was not met as it should be."""

    target: str
    seed: int
    number: int
    labels: tuple[str, ...]
    what: str


RESULT = ".result"
"""What the names of results of earlier runs end with here."""


def judge(read, path, expected, unknown, labels):
    """Read a file; returns what became of it and, if that is wrong, why."""
    try:
        found = read(path)
    except XcorrError as error:
        # Readers of files name them; results are named by who reads them.
        named = not isinstance(error, InputError) or path.name in str(error) or path.suffix == RESULT
        return ("refused", None) if named else ("wrong", f"does not name the file: {error}")
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        return "wrong", f"{type(error).__name__}: {str(error)[:200]}"
    if expected is None or (
        found.shape == expected.shape and found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
    ):
        return "same", None
    if any(unknown[label](expected, found) for label in labels if label in unknown):
        return "unknown", None
    if sum(label in unknown for label in labels) > 1 and rules.same_page(expected, found):
        return "unknown", None  # both at once: other values, in fewer planes
    if any(pair <= labels and rule(expected, found) for pair, rule in rules.TOGETHER):
        return "unknown", None
    return "wrong", f"reads as {found.dtype} {found.shape}, was {expected.dtype} {expected.shape}"


@contextlib.contextmanager
def errors_printed():
    """Let standard error of the whole process, codecs included, go into a file; yields what tells its size."""
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield lambda: os.fstat(file.fileno()).st_size
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def memory(*, peak=False):
    """Bytes that this process takes, or took at most since that was asked; 0 where the system tells neither."""
    key = "VmHWM:" if peak else "VmRSS:"
    with contextlib.suppress(OSError):
        if not peak:
            # What readers keep for the next allocation would hide this one.
            getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
            Path("/proc/self/clear_refs").write_text("5")
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(key))
    return 0


def run(name, count, seed, folder, keep=None):
    """Judge `count` changed files of a kind; returns how many became what, and the findings."""
    target, folder = TARGETS[name], Path(folder)
    content = target.make(folder)
    known = target.fields(content)
    path = folder / f"mutant{target.suffix}"
    path.write_bytes(content)
    expected = target.read(path)
    outcomes, findings = Counter(), []
    with errors_printed() as printed, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for number in range(count):
            rng = random.Random(f"{name} {seed} {number}")  # noqa: S311 - the same files every time
            changed, labels = mutate(content, known, rng)
            path.write_bytes(changed)
            targets.declared[0] = len(changed)
            before, size = memory(), printed()
            begin = time.perf_counter()
            outcome, what = judge(target.read, path, expected, target.unknown, labels)
            if (spent := time.perf_counter() - begin) > SECONDS:
                what = f"took {spent:.1f} s"
            elif (taken := memory(peak=True) - before) > 2 * targets.declared[0] + SLACK:
                what = f"took {taken >> 20} MiB and declares {targets.declared[0]} bytes"
            elif printed() > size:
                what = "printed on standard error"
            elif warned:
                what = f"warned: {warned.pop().message}"
            outcomes[outcome if what is None else "wrong"] += 1
            if what is not None:
                findings.append(Finding(name, seed, number, tuple(sorted(labels)), what))
                if keep is not None:
                    (Path(keep) / f"{name}-{seed}-{number}{target.suffix}").write_bytes(changed)
    return outcomes, findings


def limit():
    """Limit the memory of a process."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))


def job(arguments):
    """Judge some files, in a folder of their own: kind, count, seed, where to keep what is wrong."""
    name, count, seed, keep = arguments
    with tempfile.TemporaryDirectory() as folder:
        return name, *run(name, count, seed, folder, keep)
