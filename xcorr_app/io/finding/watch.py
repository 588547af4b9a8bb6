"""Stacks as an instrument finishes them: a folder is watched, and each stack is handed out once its file is complete.

A file is complete when its size has rested, for longer than it ever paused before, and all that it declares is there.
Files of one image are frames of series; those are handed out when watching ends, since only then is it known how many
there are. Until then `Arrivals.take_frames` is told of each.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xcorr_app.errors import InputError
from xcorr_app.io.declared import Limits
from xcorr_app.io.finding.discover import Layout, discover
from xcorr_app.io.finding.scan import Channel
from xcorr_app.io.names import is_image_name, natural_path_key, unique_names
from xcorr_app.io.series import Failure, SeriesSpec

_REST = 0.15
"""Seconds that every file must rest, at least."""
_LONGEST_PAUSES = 3
"""So many times as long as it paused before must a file rest."""
_STEP, _SECONDS_BETWEEN_CHECKS = 0.05, 1.0
"""From one look at the folder to the next, and at frames that were taken for complete: there may be thousands."""
_RESERVED = ("report.html", "run.json")


@dataclass
class _PendingFile:
    """A file that is not complete yet."""

    stamp: tuple[int, int]
    changed: float
    since: float
    """When it was first looked at: what its time says of before is no pause of whoever writes it."""
    longest_pause: float = 0.0
    tried: tuple[int, int] | None = None
    """As it was when it was found incomplete."""
    reason: str = "is not complete"


class Arrivals(Sequence[SeriesSpec]):
    """Stacks of a folder in the order in which they become complete; iterating waits for the next, until `stop`.

    Parameters
    ----------
    folder
        What is watched; folders in it are not.
    limits, layout, channel
        As of `discover`.
    tell
        Called with the name of every stack that is complete.
    """

    def __init__(
        self,
        folder: Path,
        limits: Limits,
        layout: Layout = "auto",
        channel: Channel | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder}: is no folder; --watch waits for files in one")
        self._folder, self._limits, self._layout, self._channel, self._tell = folder, limits, layout, channel, tell
        self.take_frames: Callable[[list[SeriesSpec]], None] = lambda _: None
        """Called with frames that are complete, each as a series of its own, in natural order of those of one look."""
        self.failures: list[Failure] = []
        """Files that were not complete, or changed after they were taken; known when watching has ended."""
        self._stopped = threading.Event()
        self._seen: dict[Path, _PendingFile] = {}
        self._taken: dict[Path, tuple[int, int]] = {}
        self._complete_names: set[str] = set()
        self._frames: dict[Path, tuple[SeriesSpec, _PendingFile]] = {}
        self._found: list[SeriesSpec] = []
        self._checked = 0.0

    def stop(self) -> None:
        """Hand out nothing but the series of frames that are there."""
        self._stopped.set()

    def __len__(self) -> int:
        return len(self._found)

    def __getitem__(self, index: Any) -> Any:
        """Of those handed out so far."""
        return self._found[index]

    def __iter__(self) -> Iterator[SeriesSpec]:
        while not self._stopped.wait(_STEP):
            self._look()
            known = set(self._frames)
            stacks = [spec for path in self._rested() for spec in self._complete(path)]
            if new := [spec for path, (spec, _) in self._frames.items() if path not in known]:
                self.take_frames(new)
            yield from self._named(stacks)
        self._check_frames()
        yield from self._named(self._series_of_frames())
        self._conclude()

    def _check_frames(self) -> None:
        """Take back files that have changed since: page by page, one may become a stack."""
        self._checked = time.monotonic()
        for path, (_, seen) in list(self._frames.items()):
            with suppress(OSError):
                if _stamp(path) != seen.stamp:
                    del self._frames[path]
                    self._seen[path] = seen
                    self._complete_names.discard(path.name)

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._checked > _SECONDS_BETWEEN_CHECKS:
            self._check_frames()
        # Thousands of frames, many times a second: what is complete must not cost a path.
        for name in set(os.listdir(self._folder)) - self._complete_names:  # noqa: PTH208
            if not is_image_name(name):
                continue
            path = self._folder / name
            with suppress(OSError):
                stamp = _stamp(path)
                seen = self._seen.get(path)
                if seen is None:
                    rested = max(0.0, time.time() - stamp[1] / 1e9)  # files that were there before
                    self._seen[path] = _PendingFile(stamp, now - rested, now)
                elif seen.stamp != stamp:
                    seen.longest_pause = max(seen.longest_pause, now - max(seen.changed, seen.since))
                    seen.stamp, seen.changed = stamp, now

    def _rested(self) -> list[Path]:
        now = time.monotonic()
        found = [
            path
            for path, seen in self._seen.items()
            if seen.tried != seen.stamp and now - seen.changed >= max(_REST, _LONGEST_PAUSES * seen.longest_pause)
        ]
        return sorted(found, key=natural_path_key)

    def _complete(self, path: Path) -> list[SeriesSpec]:
        """Stacks of a file; none where it is not complete, or is a frame."""
        seen = self._seen[path]
        seen.tried = seen.stamp
        try:
            found = discover([path], self._layout, self._limits, channel=self._channel)
        except InputError as error:
            seen.reason = str(error)
            return []
        if found.failures:
            seen.reason = found.failures[0].message
            return []
        specs = list(found.series)
        if any(spec.layout == "frames" for spec in specs) and self._layout != "stacks":
            self._frames[path] = specs[0], seen
            specs = []
        else:
            self._taken[path] = seen.stamp
        self._complete_names.add(path.name)
        del self._seen[path]
        return specs

    def _series_of_frames(self) -> list[SeriesSpec]:
        if not self._frames:
            return []
        try:
            found = discover(list(self._frames), self._layout, self._limits, channel=self._channel)
        except InputError as error:
            self.failures.append(Failure(self._folder, str(error)))
            return []
        self.failures += found.failures
        return list(found.series)

    def _named(self, specs: list[SeriesSpec]) -> Iterator[SeriesSpec]:
        for spec in specs:
            name = unique_names([*(known.name for known in self._found), spec.source], _RESERVED)[-1]
            named = replace(spec, name=name)
            self._found.append(named)
            self._tell(name)
            yield named

    def _conclude(self) -> None:
        """Say what was not complete, and what grew after it was taken for complete."""
        self.failures += [Failure(path, seen.reason) for path, seen in sorted(self._seen.items())]
        for path, stamp in self._taken.items():
            with suppress(OSError):
                if _stamp(path) != stamp:
                    self.failures.append(Failure(path, f"{path}: changed after it was aligned; align it again"))


def _stamp(path: Path) -> tuple[int, int]:
    """Bytes and time of the last change, of all files of a folder of chunks."""
    status = path.stat()
    if not path.is_dir():
        return status.st_size, status.st_mtime_ns
    parts = [part.stat() for part in path.rglob("*")]
    return sum(part.st_size for part in parts), max([status.st_mtime_ns, *(part.st_mtime_ns for part in parts)])
