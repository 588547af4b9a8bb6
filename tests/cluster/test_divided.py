"""One large stack measured by two processes: the same bytes as without a cluster, and what becomes of faults."""

from __future__ import annotations

import json
import shutil
import threading
import time

import numpy as np
import pytest
import tifffile
import xxhash
from distributed import WorkerPlugin
from scipy.ndimage import gaussian_filter

import xcorr_app as xc
from tests.cluster.test_cluster import aligned, failures, results, to_be_lost, when_begun
from xcorr_app.batch.align import moving
from xcorr_app.batch.align.run import Align
from xcorr_app.cluster import divided_stacks
from xcorr_app.cluster.connect import connected
from xcorr_app.cluster.workers import Workers
from xcorr_app.errors import ClusterError
from xcorr_app.registration.stack.passes import Pass

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
FRAMES = 300
"""Of 256 x 256 pixels: two blocks of 128 and one of 44."""


class ShortBlocks(WorkerPlugin):
    """Blocks of moved planes are as long as those that are measured, also in workers that are begun later."""

    def setup(self, worker):
        moving._RANGES_A_BLOCK = 4


@pytest.fixture(scope="module")
def workers():
    with connected("local:2", Align.device) as started:
        started._client.register_plugin(ShortBlocks())
        yield started


@pytest.fixture(autouse=True)
def here_too(monkeypatch):
    monkeypatch.setattr(moving, "_RANGES_A_BLOCK", 4)


@pytest.fixture
def again(workers, monkeypatch):
    """The same workers, of which a new run takes note; a block is worth a task."""
    monkeypatch.setattr(divided_stacks, "BLOCKS_A_TASK", 1)
    workers._client.wait_for_workers(2, timeout=60)
    return Workers(workers._client, Align.device)


@pytest.fixture(scope="module")
def long(tmp_path_factory):
    path = tmp_path_factory.mktemp("in") / "long.tif"
    rng = np.random.default_rng(2)
    scene = gaussian_filter(rng.normal(size=(290, 290)), 2) * 800 + 400
    places = 17 + np.clip(rng.normal(0, 1, (FRAMES, 2)).cumsum(axis=0), -17, 17).round().astype(int)
    frames = [scene[y : y + 256, x : x + 256] + rng.normal(0, 20, (256, 256)) for y, x in places]
    tifffile.imwrite(path, np.clip(frames, 0, 4000).astype(np.uint16), photometric="minisblack")
    return path


@pytest.fixture(scope="module")
def undisturbed(long, tmp_path_factory):
    """With a full report, without a cluster."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    before, moving._RANGES_A_BLOCK = moving._RANGES_A_BLOCK, 4
    aligned(long, out, report="full")
    moving._RANGES_A_BLOCK = before
    return results(out)


def cluster_of(out):
    return json.loads((out / "run.json").read_text())["cluster"]


def parts(out):
    return [worker["parts"] for worker in cluster_of(out)["workers"].values()]


def aligned_as(tmp_path, name, **how):
    return xc.align(how.pop("stack"), tmp_path / name, device="cpu", max_shift=24, verify="none", **how)


@pytest.mark.share(6)
@pytest.mark.parametrize(
    "how",
    [
        {"format": "ome-zarr", "pyramid": 2, "report": "none"},
        {"format": "ome-zarr", "compression": "zstd", "border": "crop"},
        {"compression": "zlib", "report": "quick"},
        {"apply": False},
        {"reference": "median", "report": "none"},
        {"motion": "patches", "report": "none"},
    ],
)
def test_all_that_is_written_is_written_by_both(long, tmp_path, again, how, monkeypatch):
    divided, passes = [], divided_stacks._passes
    monkeypatch.setattr(divided_stacks, "_passes", lambda *given: divided.append(passes(*given)) or divided[-1])
    if "format" in how:
        pytest.importorskip("zarr")
    aligned_as(tmp_path, "alone", stack=long, **how)
    done = aligned_as(tmp_path, "two", stack=long, **how, cluster=again._client.scheduler.address)
    assert [stack.failure for stack in done.stacks] == [None]
    assert results(tmp_path / "two") == results(tmp_path / "alone")
    (found,) = divided
    assert found is not None
    assert sum(parts(tmp_path / "two")) >= 6
    assert not [path for path in (tmp_path / "two").rglob(".*") if "partial" in path.name]


@pytest.mark.slow
def test_a_scheduler_lost_in_mid_pass_stops_the_run(long, tmp_path, monkeypatch, again, undisturbed):
    monkeypatch.setattr(divided_stacks, "BLOCKS_A_TASK", 1)
    with to_be_lost(tmp_path, workers=2) as (file, scheduler), connected(str(file), Align.device) as lost:
        lost._client.wait_for_workers(2, timeout=60)
        lost._client.register_plugin(ShortBlocks())

        def kill():
            until = time.monotonic() + 60
            while (
                len(list((tmp_path / "out" / ".xcorr" / "long.begun").glob("*/000-*"))) < 3 and time.monotonic() < until
            ):
                time.sleep(0.01)
            scheduler.kill()

        # By then all is measured, and little moved.
        begun = "long, pass 1, part 0 of 3"
        when_begun(lost, lambda said: said["stack"] == begun and threading.Thread(target=kill).start())
        with pytest.raises(ClusterError, match="--resume"):
            aligned(long, tmp_path / "out", lost, report="full")
    assert not (tmp_path / "out" / "run.json").exists()
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    aligned(long, tmp_path / "out", again, report="full", resume=True)
    assert results(tmp_path / "out") == undisturbed
    kept = cluster_of(tmp_path / "out")["resumed_blocks"]["long"]
    assert 3 <= kept <= 6
    # One process goes on, too, from the first frame.
    aligned(long, tmp_path / "copy", report="full", resume=True)
    assert results(tmp_path / "copy") == undisturbed


def lose_disk(lost):
    from xcorr_app.cluster import task

    if lost:
        task.kept_session, task._session = task._session, refused
    else:
        task._session = task.kept_session


def refused(*_):
    raise OSError("no such disk")


def lose_file(lost):
    """What one worker sees under that name, as if it had another disk."""
    import pathlib

    if lost:
        pathlib.Path.kept_exists = pathlib.Path.exists
        pathlib.Path.exists = lambda path: path.name != "long.tif" and path.kept_exists()
    else:
        pathlib.Path.exists = pathlib.Path.kept_exists


@pytest.mark.share(2)
@pytest.mark.parametrize("lose", [lose_disk, lose_file])
def test_a_part_that_fails_leaves_the_stack_to_one_worker(long, tmp_path, again, undisturbed, lose):
    first = next(iter(again._client.nthreads()))
    again._client.run(lose, True, workers=[first])
    begun = []
    when_begun(again, lambda said: begun.append(said["stack"]))
    try:
        assert failures(aligned(long, tmp_path / "out", again, report="full")) == {}
    finally:
        again._client.run(lose, False, workers=[first])
    assert begun[-1] == "long"
    # Which of the parts is lost, before it says that it began, is a matter of time.
    assert any(name.startswith("long, pass 0, part ") for name in begun)
    assert results(tmp_path / "out") == undisturbed


def take_pieces(small):
    """Of small files, too, and count those that are read for the checksum alone."""
    from xcorr_app.io import checksum, piece_checksum

    kind = piece_checksum.PieceChecksum
    if small:
        checksum.LARGE, piece_checksum.PIECE = 1 << 20, 1 << 14
        kind.own_read, kind.read_again = kind._read, 0
        kind._read = counted
    else:
        checksum.LARGE, piece_checksum.PIECE = 1 << 30, 1 << 20
        kind._read = kind.own_read


def counted(self, *which):
    type(self).read_again += self.path.name == "long.tif"
    return self.own_read(*which)


def number_read_again():
    from xcorr_app.io.piece_checksum import PieceChecksum

    return PieceChecksum.read_again


def test_the_checksum_of_a_large_file_is_made_of_what_each_has_read(long, tmp_path, again):
    again._client.run(take_pieces, True)
    try:
        done = aligned(long, tmp_path / "out", again)
        read_again = sum(again._client.run(number_read_again).values())
    finally:
        again._client.run(take_pieces, False)
    assert failures(done) == {}
    content = long.read_bytes()
    pieces = [content[start : start + (1 << 14)] for start in range(0, len(content), 1 << 14)]
    expected = xxhash.xxh3_128(b"".join(xxhash.xxh3_128(piece).digest() for piece in pieces)).hexdigest()
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["stacks"]["long"]["inputs"] == {str(long): expected}
    # Those before the planes and behind, and those in which a task ends.
    assert 0 < read_again < 10 < len(pieces)


@pytest.mark.parametrize(
    ("on_device", "frames", "tasks"),
    [(False, 224, 1), (False, 256, 2), (False, 3000, 8), (True, 16_384, 1), (True, 24_576, 2), (True, 49_152, 4)],
)
def test_short_stacks_stay_whole(on_device, frames, tasks):
    """A second of one worker is worth dividing: a CPU measures 256 frames of 512 x 512 in that time, a GPU 24 576."""
    blocks = Pass(frames, 512 * 512, on_device).blocks
    assert divided_stacks.tasks_of(on_device, blocks, workers=2) == tasks
