"""A large stack measured by several workers: a task is some blocks of its frames in one of the passes over them.

Measuring is a chain of passes, and what is decided between two of them depends on all frames. So every worker runs the
same code on the same stack (`Session`); in each pass it computes the blocks that it is given, and takes what the others
computed of the rest, which are a few numbers a frame. All then decide the same. A worker that is begun in the place of
another takes what is known from the first pass on, and has caught up once it has decided what was to be decided.

No worker needs another one's pixels but those of a few frames whose tiles are looked at, the sums of blocks where the
reference is a mean, and what all read themselves: the reference and a few frames on which the decisions rest.
"""

from __future__ import annotations

import pickle
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

from xcorr_app.cluster.kept_parts import KeptParts
from xcorr_app.errors import ClusterError
from xcorr_app.io.checksum import News
from xcorr_app.registration.stack.passes import Pass, Sums, sharing


@dataclass(frozen=True)
class Part:
    """What became of some blocks in a pass, or of all."""

    stage: str | None
    """None where there is no such pass any more: the stack is measured."""
    of: tuple[bool, int] = (False, 0)
    """Whether a device computed it, and of how many blocks."""
    results: tuple[bytes, ...] = ()
    """Of every block; where they are added, their sum."""
    add: Callable[[Any, Any], Any] | None = None
    kept: int = 0
    """Blocks that an earlier run had computed."""
    read: News = ()
    """Checksums of what was read of the input."""
    seconds: float = 0.0
    """That it took, from the first decision to the last block."""


def joined(parts: Sequence[Part], before: Part | None = None) -> Part:
    """Parts of a pass, in order, and what the parts before them came to."""
    parts = parts if before is None else [before, *parts]
    results = tuple(result for part in parts for result in part.results)
    stage, of, add = parts[0].stage, parts[0].of, parts[0].add
    if any((part.stage, part.of) != (stage, of) for part in parts):
        raise ClusterError("workers differ, by their devices perhaps: one of them computes the stack alone")
    if add is not None and results:  # of fewer blocks than parts some have none
        results = (pickle.dumps([reduce(add, _loaded(results))]),)
    read = tuple(news for part in parts for news in part.read)
    kept, seconds = sum(part.kept for part in parts), sum(part.seconds for part in parts)
    return Part(stage, of, results, add, kept, read, seconds)


def told_of(part: Part) -> Part:
    """What a client needs to know of a pass: its stage, how many of its blocks were kept, and what it took."""
    return Part(part.stage, kept=part.kept, seconds=part.seconds)


class _Ended(BaseException):
    """Nobody asks for the rest of a session; no `Exception`, so that no one takes it for a failure."""


@dataclass(frozen=True)
class _Here:
    """A pass that a session has come to."""

    walk: Pass
    stage: str
    job: Callable[[int, int], Any]
    sums: Sums[Any, Any] | None

    def part(self, number: int, parts: int, kept: KeptParts | None) -> Part:
        """Compute one of so many parts of it, but for what was `kept`."""
        walk, results, begun = self.walk, [], time.time()
        first, last = (walk.blocks * end // parts for end in (number, number + 1))
        of = (self.stage, walk.on_device, walk.blocks, walk.block)
        known = {} if kept is None else kept.known(of, first, last)
        unreadable = False
        for block in range(first, last):
            if block in known:
                results.append(known[block])
                continue
            start = block * walk.block
            found: Iterator[Any] = (
                result for _, result in walk.within(start, min(start + walk.block, walk.count), self.job)
            )
            if self.sums is None:
                found = iter(whole := list(found))
                unreadable = unreadable or any(map(_could_not_read, whole))
            results.append(pickle.dumps(list(found) if self.sums is None else [self.sums.of_block(start, found)]))
        before = len(known)
        if kept is not None and unreadable:
            kept.give_up()
        elif kept is not None and before < len(results):
            kept.keep(of, first, results, begun)
        add = None if self.sums is None else self.sums.add
        return Part(self.stage, (walk.on_device, walk.blocks), tuple(results), add, before)


@dataclass(frozen=True)
class _Over:
    """The end of a session."""

    error: Exception | None = None


class Session:
    """A stack on a worker: its code runs in a thread, which waits at each pass that is shared.

    Parameters
    ----------
    run : callable
        Measures the stack.
    """

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self._come_to: queue.Queue[_Here | _Over] = queue.Queue()
        self._known: queue.Queue[Part | None] = queue.Queue()
        self._number = -1
        self._here: _Here | _Over | None = None
        self._thread = threading.Thread(target=self._measure, name="xcorr-session", daemon=True)
        self._thread.start()

    def part(self, known: Sequence[Part], number: int, parts: int, kept: KeptParts | None = None) -> Part:
        """Compute a part of the pass that follows those that are `known`, but for what was `kept` of it."""
        while self._number < len(known) and not isinstance(self._here, _Over):
            if self._number >= 0:
                self._known.put(known[self._number])
            self._here = self._come_to.get()
            self._number += 1
        if isinstance(self._here, _Here):
            return self._here.part(number, parts, kept)
        if self._here is not None and self._here.error is not None:
            raise self._here.error
        return Part(None)

    def can_go_on_to(self, number: int) -> bool:
        """Whether the pass of a number is not over yet."""
        return self._number <= number

    def end(self) -> None:
        """Give up what is not measured yet; the thread ends as soon as it asks for more."""
        self._known.put(None)

    def shared(
        self, walk: Pass, stage: str, job: Callable[[int, int], Any], sums: Sums[Any, Any] | None
    ) -> Iterator[Any]:
        """Wait until all of a pass is known; see `Sharing`."""
        self._come_to.put(_Here(walk, stage, job, sums))
        known = self._known.get()
        if known is None:
            raise _Ended
        yield from _results(known, walk, stage)

    def _measure(self) -> None:
        over = _Over()
        with suppress(_Ended), sharing(self):
            try:
                self._run()
            except Exception as error:  # noqa: BLE001 - it is raised where a part is asked for
                over = _Over(error)
        self._come_to.put(over)


class Replay:
    """Passes of a stack, of which the results of the first are known; see `Sharing`."""

    def __init__(self, known: Sequence[Part]) -> None:
        self._known = iter(known)

    def shared(
        self, walk: Pass, stage: str, job: Callable[[int, int], Any], sums: Sums[Any, Any] | None
    ) -> Iterator[Any]:
        """Yield what is known of the next pass; compute those that follow."""
        known = next(self._known, None)
        if known is not None:
            yield from _results(known, walk, stage)
        elif sums is None:
            yield from walk.alone(stage, job)
        else:
            yield walk.total_alone(stage, job, sums)


def _results(known: Part, walk: Pass, stage: str) -> Iterator[Any]:
    here = stage, (walk.on_device, walk.blocks)
    if here != (known.stage, known.of):
        raise RuntimeError(f"pass {here} is not what others computed, {known.stage, known.of}: workers differ")
    yield from _loaded(known.results)


def _could_not_read(result: Any) -> bool:
    """Whether some frame of a range could not be read."""
    return any(map(_could_not_read, result)) if isinstance(result, list) else bool(getattr(result, "unreadable", None))


def _loaded(results: Sequence[bytes]) -> Iterator[Any]:
    for result in results:
        # What workers of one cluster tell each other is pickled anyway.
        yield from pickle.loads(result)  # noqa: S301
