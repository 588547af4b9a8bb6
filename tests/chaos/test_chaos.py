"""Runs that are killed, doubled, refused by the system, and robbed of their inputs, at random moments.

Afterwards ``--resume`` yields the bytes of a run that nobody disturbed; before that, nothing half-written has a final
name, and what failed says so. ``make chaos`` takes many of each and for each command, `XCORR_CHAOS` says how many;
`XCORR_CHAOS_SEED` chooses others. Pinned memory that is refused: tests/pipeline/test_stack_upload.py.
"""

import errno
import json
import os
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

from tests.batch.forking import forking
from tests.batch.movies import content, rest_beside_what_is_whole, write_movie
from tests.batch.test_changed import CHANGES

COUNT = int(os.environ.get("XCORR_CHAOS", "2"))
SEED = int(os.environ.get("XCORR_CHAOS_SEED", "0"))
COMMANDS = {"align": ["align", "--device", "cpu"], "filter": ["filter", "--device", "cpu", "--gaussian", "1"]}
PARTS = max(1, COUNT // 25)
"""Of the kills, pairs and steps, for as many processes."""
OF_THE_RUN = {"run.json", "report.html"}
"""Files that speak of all stacks: of a run in which one failed they differ, and are whole."""


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Folder with three movies, and two processes that run commands on them."""
    folder = tmp_path_factory.mktemp("chaos")
    for number, name in enumerate("abc"):
        write_movie(folder / "in" / f"{name}.tif", seed=number, shape=(20, 24))
    with forking(folder) as first, forking(folder) as second:
        yield folder, first, second


@pytest.fixture(scope="module", params=COMMANDS)
def disturbed(request, processes):
    """A command, and what an undisturbed run of it leaves."""
    folder, first, second = processes
    out = folder / request.param
    command = [*COMMANDS[request.param], folder / "in", "-o", out]
    shutil.rmtree(out, ignore_errors=True)  # of the same command, where another one came between
    assert first(command, short_report=True)[1] == 0
    whole = content(out)
    shutil.rmtree(out)
    seconds, _ = first(command, short_report=True)
    return SimpleNamespace(
        folder=folder, out=out, command=command, first=first, second=second, whole=whole, seconds=seconds
    )


@pytest.fixture
def moments(request):
    return np.random.default_rng([SEED, *request.node.name.encode()])


def resumed_to_the_same(run):
    _, code = run.first([*run.command, "--resume"], short_report=True)
    assert code == 0
    assert content(run.out) == run.whole


def stacks_are_whole(run, besides=()):
    """What bears a final name has the bytes of the undisturbed run; a record of what failed is a record."""
    left = content(run.out) if run.out.exists() else {}
    for name, value in left.items():
        if name in OF_THE_RUN or "partial" in name or any(name.startswith(prefix) for prefix in besides):
            continue
        assert value == run.whole[name], name
    failures = [stack.get("failure", "") for stack in left.get("run.json", {}).get("stacks", {}).values()]
    assert not [failure for failure in failures if "defect" in failure]
    return left


@pytest.mark.parametrize("part", range(PARTS))
def test_killed(disturbed, moments, part):
    run = disturbed
    for kill in range(part, COUNT, PARTS):
        shutil.rmtree(run.out, ignore_errors=True)
        number = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP)[kill % 4]
        after = moments.uniform(0, run.seconds)
        _, code = run.first(run.command, after, short_report=True, number=number)
        assert code in (0, 128 + number, -number)
        rest_beside_what_is_whole(run.out, run.whole)
        resumed_to_the_same(run)
    print(len(range(part, COUNT, PARTS)), "kills")


@pytest.mark.parametrize("part", range(PARTS))
def test_two_at_once(disturbed, moments, part):
    run, codes = disturbed, []
    with ThreadPoolExecutor(2) as threads:
        for pair in range(part, max(2, COUNT // 4), PARTS):
            shutil.rmtree(run.out, ignore_errors=True)
            words = [*run.command, ("--resume", "--overwrite")[pair % 2]]
            first = threads.submit(run.first, words, short_report=True)
            if pair >= PARTS:
                time.sleep(moments.uniform(0, 1.2 * run.seconds))
            else:
                while not ((run.out / ".xcorr" / "lock").exists() or first.done()):
                    time.sleep(0.001)
            second = threads.submit(run.second, words, short_report=True)
            codes.append((first.result()[1], second.result()[1]))
            # Who came second was refused, or came when the other had ended.
            assert sorted(codes[-1]) in ([0, 0], [0, 2])
            assert content(run.out) == run.whole
    # Of a few pairs, each first one may have ended before its second looked; tests/pipeline/test_lock.py asks that.
    assert len(codes) < 10 or [0, 2] in map(sorted, codes)
    print(len(codes), "pairs")


@pytest.mark.parametrize("part", range(PARTS))
def test_what_the_system_refuses(disturbed, moments, part):
    """A few steps, of a hundred or more every one."""
    run = disturbed
    shutil.rmtree(run.out, ignore_errors=True)
    assert run.first(run.command, short_report=True, failing=errno.EIO)[1] == 0
    steps = run.first.steps
    assert steps > 60
    errors = (errno.ENOSPC, errno.EIO, errno.EMFILE, errno.ENOMEM, errno.EDQUOT)
    some = range(part, steps, PARTS) if COUNT >= 100 else moments.choice(steps, min(COUNT, steps), replace=False)
    print(len(some), "of", steps, "steps")
    for step in sorted(some):
        shutil.rmtree(run.out, ignore_errors=True)
        error = errors[step % len(errors)]
        _, code = run.first(run.command, kill_at=int(step) + 1, short_report=True, failing=error)
        assert code in (0, 1, 2), (step, os.strerror(error))
        left = stacks_are_whole(run)
        assert code or left == run.whole, (step, os.strerror(error))
        assert not [name for name in left if "partial" in name], step
        resumed_to_the_same(run)


@pytest.mark.share(4)
@pytest.mark.parametrize("what", CHANGES)
def test_inputs_that_change(disturbed, moments, what):
    run, path = disturbed, disturbed.folder / "in" / "b.tif"
    sound = path.read_bytes()
    with ThreadPoolExecutor(1) as thread:
        for _ in range(max(1, COUNT // 4)):
            shutil.rmtree(run.out, ignore_errors=True)
            running = thread.submit(run.first, run.command, short_report=True)
            time.sleep(moments.uniform(0, run.seconds))
            try:
                CHANGES[what](path)
                _, code = running.result()
                left = stacks_are_whole(run, besides=("b/", ".xcorr/b"))
            finally:
                path.write_bytes(sound)
            stacks = left.get("run.json", {}).get("stacks", {})
            never_seen = what == "gone" and set(stacks) == {"a", "c"}  # it was gone before anyone looked
            told = code == 1 or "unreadable" in json.dumps(stacks.get("b", {})) or never_seen
            same = all(left.get(name) == run.whole[name] for name in run.whole if name.startswith("b/"))
            assert same or told or what == "replaced", code
            resumed_to_the_same(run)
