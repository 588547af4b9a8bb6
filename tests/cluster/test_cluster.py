"""A real cluster of two processes: the same bytes as without it, and a test for each fault."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

import xcorr_app as xc
from tests.batch.movies import content, write_movies, xcorr
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.batch.align.run import Align
from xcorr_app.cluster.connect import connected
from xcorr_app.cluster.task import STARTED
from xcorr_app.cluster.workers import Workers
from xcorr_app.errors import ArgumentError, ClusterError
from xcorr_app.pipeline.output import prepared_output
from xcorr_app.pipeline.run import run_stacks
from xcorr_app.pipeline.work import plan_stacks

OPTIONS = AlignOptions(device="cpu", report="none")
# Scheduler and workers close their sockets when they are told to, not always before Python looks for open ones.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def workers():
    with connected("local:2") as started:
        yield started


@pytest.fixture
def again(workers):
    """The same workers, of which a new run takes note."""
    workers._client.wait_for_workers(2, timeout=60)  # one may be begun in the place of one that was killed
    return Workers(workers._client)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_movies(tmp_path_factory.mktemp("in"), [f"m{number}" for number in range(5)], shape=(90, 110))


def aligned(folder, out, elsewhere=None, *, report="none", **how):
    options = replace(OPTIONS, report=report, **how)
    work = plan_stacks(Align, [folder], out, options, elsewhere=elsewhere is not None)
    with prepared_output(out, resume=options.resume, overwrite=False):
        return run_stacks(work, elsewhere=elsewhere)


def results(out):
    """What a run wrote but for the device it names: workers have their own."""
    found = content(out)
    record = found.pop("run.json")
    report = found.pop("report.html", b"").replace(b"workers of a cluster; ", b"CPU; ")
    return found, report, {key: record[key] for key in ("stacks", "parameters", "failed", "versions")}


@pytest.fixture(scope="module")
def undisturbed(folder, tmp_path_factory):
    """What runs that are disturbed must come to."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    aligned(folder, out)
    return results(out)


def when_begun(workers, act):
    """Do something as soon as a worker says that it begins a stack; a topic has one listener."""

    def listen(event):
        workers._take_note(event)
        act(event[1])

    workers._client.subscribe_topic(STARTED, listen)


def failures(result):
    return {outcome.name: outcome.failure for outcome in result.outcomes if outcome.failure is not None}


def test_workers_give_the_same_bytes(folder, tmp_path, again):
    assert not aligned(folder, tmp_path / "alone", report="quick").failed
    done = aligned(folder, tmp_path / "two", again, report="quick")
    assert failures(done) == {}
    assert results(tmp_path / "two") == results(tmp_path / "alone")
    record = json.loads((tmp_path / "two" / "run.json").read_text())
    assert record["device"] == "workers of a cluster"
    assert record["cluster"]["retried"] == {}
    assert len(record["cluster"]["workers"]) == 2
    assert sum(worker["stacks"] for worker in record["cluster"]["workers"].values()) == 5
    assert {worker["device"] for worker in record["cluster"]["workers"].values()} == {"CPU"}
    # Either goes on from what the other finished.
    for done_before, elsewhere in (("alone", again), ("two", None)):
        resumed = aligned(folder, tmp_path / done_before, elsewhere, report="quick", resume=True)
        assert resumed.resumed == tuple(f"m{number}" for number in range(5))


@pytest.mark.share(2)
def test_a_killed_worker_costs_one_task(folder, tmp_path, again, undisturbed):
    killed = []

    def kill(said):
        if said["stack"] == "m2" and not killed:
            killed.append(said["pid"])
            os.kill(said["pid"], signal.SIGKILL)

    when_begun(again, kill)
    done = aligned(folder, tmp_path / "killed", again)
    assert failures(done) == {}
    assert results(tmp_path / "killed") == undisturbed
    assert not list((tmp_path / "killed").rglob(".*partial*"))
    retried = json.loads((tmp_path / "killed" / "run.json").read_text())["cluster"]["retried"]
    assert "m2" in retried
    assert retried["m2"][0].endswith(f"process {killed[0]}")
    assert not retried["m2"][-1].endswith(f"process {killed[0]}")


def test_a_file_that_workers_lack_fails_its_stack_in_words(folder, tmp_path, again):
    mine = shutil.copytree(folder, tmp_path / "in")
    work = plan_stacks(Align, [mine], tmp_path / "out", OPTIONS, elsewhere=True)
    with prepared_output(work.out, resume=False, overwrite=False):
        (mine / "m1.tif").unlink()
        found = run_stacks(work, elsewhere=again)
    assert [outcome.name for outcome in found.outcomes if outcome.failed] == ["m1"]
    assert "Frame 0 is unreadable" in " ".join(found.outcomes[1].result.notes)
    assert "m1.tif" in " ".join(found.outcomes[1].result.notes)


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def test_a_full_disk_fails_its_stacks_in_words_and_resume_goes_on(folder, tmp_path, again, undisturbed):
    """Files cannot grow beyond a limit, as where a disk is full."""
    again._client.run(limit_files, 30_000)
    try:
        done = aligned(folder, tmp_path / "out", again)
    finally:
        again._client.run(limit_files, resource.RLIM_INFINITY)
    assert len(failures(done)) == 5
    assert all("cannot be written" in words and "(on worker " in words for words in failures(done).values())
    assert not list((tmp_path / "out").rglob("*.tif"))
    assert failures(aligned(folder, tmp_path / "out", again, resume=True)) == {}
    assert results(tmp_path / "out") == undisturbed


def test_results_that_cannot_be_seen_here_are_no_results(folder, tmp_path, again, monkeypatch):
    monkeypatch.setattr("xcorr_app.cluster.workers._SECONDS_TO_APPEAR", 0.2)
    monkeypatch.setattr("xcorr_app.pipeline.state.State.record_of", lambda *_: None)
    done = aligned(folder / "m0.tif", tmp_path / "out", again)
    assert "that the client and all workers share" in failures(done)["m0"]


def test_another_version_is_refused(folder, tmp_path, again, monkeypatch):
    monkeypatch.setattr("xcorr_app.cluster.workers.own_version", lambda: "9.9")
    assert "install the same" in failures(aligned(folder / "m0.tif", tmp_path / "out", again))["m0"]


def test_the_command_and_the_call_take_an_address(folder, tmp_path, workers):
    address = workers._client.scheduler.address
    run = xcorr("align", folder, "-o", tmp_path / "a", "--device", "cpu", "--report", "none", "--cluster", address)
    assert run.code == 0, run.stderr
    found = xc.align(folder, tmp_path / "b", device="cpu", report="none", cluster=address)
    assert found.failed == ()
    assert results(tmp_path / "a") == results(tmp_path / "b")
    run = xcorr("filter", folder, "-o", tmp_path / "f", "--device", "cpu", "--box", "3", "--cluster", address)
    assert run.code == 0, run.stderr
    scheduler = tmp_path / "scheduler.json"
    scheduler.write_text(json.dumps({"address": address}))
    with connected(str(scheduler)) as same:
        assert set(same._client.nthreads()) == set(workers._client.nthreads())


def test_what_is_no_cluster_is_refused(tmp_path, monkeypatch):
    for text in ("", "local:0", "local:many", "here", str(tmp_path / "no.json")):
        with pytest.raises(ArgumentError, match="cluster"), connected(text):
            pass
    monkeypatch.setitem(sys.modules, "distributed", None)  # as where it is not installed
    for text, says in (
        ("nowhere", "give local, local:N"),
        ("local:2", "--cluster needs dask.distributed: pip install"),
    ):
        run = xcorr("align", tmp_path, "-o", tmp_path / "out", "--cluster", text)
        assert (run.code, says in run.stderr) == (2, True)


@contextmanager
def to_be_lost(folder, workers):
    """A scheduler in a process of its own, with workers; yields its file and the process."""
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    known = ["--scheduler-file", file, "--no-dashboard"]
    here = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"]
    few = ["--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--death-timeout", "30"]
    dask = [sys.executable, "-m"]
    processes = [subprocess.Popen([*dask, "distributed.cli.dask_scheduler", *known, *here], **quiet)]
    worker = [*dask, "distributed.cli.dask_worker", *known, *few]
    processes += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
    try:
        until = time.monotonic() + 60
        while not file.exists() and time.monotonic() < until:
            time.sleep(0.05)
        yield file, processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.share(2)
def test_a_lost_scheduler_stops_the_run_and_resume_goes_on(folder, tmp_path, undisturbed):
    with to_be_lost(tmp_path, workers=1) as (file, scheduler), connected(str(file)) as lost:
        when_begun(lost, lambda said: said["stack"] == "m2" and threading.Timer(0, scheduler.kill).start())
        with pytest.raises(ClusterError, match="--resume"):
            aligned(folder, tmp_path / "out", lost)
    assert not (tmp_path / "out" / "run.json").exists()
    finished = len(list((tmp_path / "out" / ".xcorr").glob("*.json")))
    assert finished >= 1
    resumed = aligned(folder, tmp_path / "out", resume=True)
    assert len(resumed.resumed) >= finished
    assert results(tmp_path / "out") == undisturbed


@pytest.mark.slow
def test_a_stack_that_kills_every_worker_fails_alone(folder, tmp_path, again):
    def kill(said):
        if said["stack"] == "m2":
            os.kill(said["pid"], signal.SIGKILL)

    when_begun(again, kill)
    done = aligned(folder, tmp_path / "out", again)
    assert list(failures(done)) == ["m2"]
    assert "4 workers ended" in failures(done)["m2"]
