"""kill -9, then ``--resume``: the same bytes as a run that nobody disturbed, and no stray files."""

import json
import shutil
import signal

import pytest

from tests import share
from tests.batch.movies import write_movie
from xcorr_app.pipeline.state import FOLDER, LOCK


def content(out):
    """Every file with its bytes; of records, what is not a time nor says who was resumed."""
    found = {}
    for path in sorted(out.rglob("*")):
        if path == out / FOLDER / LOCK:
            continue  # of a killed run: it holds nobody up
        name = path.relative_to(out).as_posix()
        if path.suffix == ".json":
            found[name] = without_times(json.loads(path.read_text()))
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def without_times(value):
    if isinstance(value, dict):
        # A record's checksum is of its times, too.
        dropped = ("seconds", "started", "resumed", "timings", "checksum")
        return {key: without_times(inner) for key, inner in value.items() if key not in dropped}
    return value


def rest_beside_what_is_whole(out, whole):
    """Names of half-written files; what bears a final name is whole, before anyone resumes."""
    left = content(out) if out.exists() else {}
    names = {name for name in left if "partial" not in name}
    assert {name: left[name] for name in names} == {name: whole[name] for name in names}
    out.mkdir(exist_ok=True)
    return set(left) - names


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("words", "forker"),
    [
        (["align", "--device", "cpu"], "as they are"),
        (["align", "--device", "cpu"], "prepared"),
        (["filter", "--device", "cpu", "--gaussian", "1"], "as they are"),
    ],
    indirect=["forker"],
)
def test_killed_before_any_step_it_resumes_to_the_same_bytes(tmp_path, forker, words):
    for number in range(2):
        write_movie(tmp_path / "in" / f"m{number}.tif", seed=number, shape=(12, 12), drift=((0, 0), (1, 0)))
    out = tmp_path / "out"
    command = [*words, tmp_path / "in", "-o", out]
    _, code = forker(command, short_report=True)
    assert code == 0
    whole, steps = content(out), forker.steps
    assert steps > 40
    half_written, finished_before = 0, set()
    # A file takes six steps or more, so that each has its turn.
    killed = share.spread(range(1, steps + 1), 5)
    for n in killed:
        shutil.rmtree(out)
        _, code = forker(command, kill_at=n, short_report=True)
        assert code == -signal.SIGKILL
        half_written += bool(rest_beside_what_is_whole(out, whole))
        if n in killed[::2] or n == killed[-1]:
            _, code = forker([*command, "--resume"], short_report=True)
            assert code == 0
            assert content(out) == whole, n
            finished_before.add(len(json.loads((out / "run.json").read_text())["resumed"]))
    assert half_written > len(killed) / 4
    # Both may come to their names between two of the steps that were tried.
    assert {0, 2} <= finished_before
