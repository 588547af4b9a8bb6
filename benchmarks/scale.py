"""How a run grows with workers: real stacks on 1, 2, 4 processes or GPUs, and many simulated ones.

    python -m benchmarks.scale --workers 1,2,4             # processes of this machine
    python -m benchmarks.scale --gpus 1,2,4 --stacks 16    # one process a GPU
    python -m benchmarks.scale --simulate                  # tasks that sleep, by default 10 000 over 1 000 workers

Real runs align stacks from the page cache, measured alone (``--no-apply``) or moved as well, and compare tables and
aligned stacks of every number of workers byte by byte. The simulation has the client's own loop, with workers that
sleep for as long as a stack takes; it tells the processor time of the scheduler a stack and how much the client's
memory grows.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import tifffile
from scipy.ndimage import gaussian_filter

_BYTES_A_TASK = 4096
"""Of a job and the description of a stack."""
RESULTS = Path(__file__).parent / "results" / "scale.json"


def write_stacks(folder: Path, count: int, frames: int, side: int) -> int:
    """Drifting scenes as uint16 TIFF; returns the bytes of all."""
    for number in range(count):
        rng = np.random.default_rng(number)
        scene = gaussian_filter(rng.normal(size=(side + 32, side + 32)), 2) * 4000 + 5000
        places = 16 + np.clip(rng.normal(0, 1, (frames, 2)).cumsum(axis=0), -15, 15).astype(int)
        stack = [rng.poisson(scene[y : y + side, x : x + side].clip(0)) for y, x in places]
        tifffile.imwrite(folder / f"s{number:03}.tif", np.array(stack, np.uint16), photometric="minisblack")
    return sum(path.stat().st_size for path in folder.iterdir())


def align(inputs: Path, out: Path, cluster: str | None, *, apply: bool) -> tuple[float, float, str]:
    """Seconds of the stacks alone, seconds with start and end of the workers, and a checksum of all results."""
    import xcorr_app as xc

    begin = time.perf_counter()
    device = "cuda" if cluster == "gpus" else "cpu"
    done = xc.align(inputs, out, device=device, cluster=cluster, apply=apply, report="none", max_shift=24)
    seconds = time.perf_counter() - begin
    assert not done.failed, done.failed
    known = json.loads(done.record.read_text())["timings"]["stages"]
    alone = known["workers"]["waited_seconds"] if cluster else seconds
    digest = hashlib.sha256()
    for stack in done.stacks:
        for path in (stack.table, stack.path):
            digest.update(b"" if path is None else path.read_bytes())
    return alone, seconds, digest.hexdigest()


def real(kind: str, counts: list[int], stacks: int, frames: int, side: int) -> list[dict[str, Any]]:
    """Time runs on several numbers of workers; the results must be the same bytes."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "in")
        inputs.mkdir()
        size = write_stacks(inputs, stacks, frames, side)
        for apply in (False, True):
            digests = set()
            for count in counts:
                if kind == "gpus":
                    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(count)))
                cluster = "gpus" if kind == "gpus" else f"local:{count}"
                seconds, whole, digest = align(inputs, Path(folder, f"{count}{apply}"), cluster, apply=apply)
                digests.add(digest)
                found.append({"workers": count, "kind": kind, "apply": apply, "seconds": seconds, "whole": whole})
                found[-1] |= {"gigabytes_per_second": size / seconds / 1e9, "stacks": stacks}
                print(f"{kind} {count}: {seconds:.2f} s, {size / seconds / 1e9:.3f} GB/s, apply={apply}", flush=True)
            assert len(digests) == 1, "results depend on the number of workers"
    return found


@contextmanager
def sleeping_cluster(workers: int, processes: int, threads: int) -> Iterator[tuple[str, int]]:
    """A scheduler in a process of its own, and many workers in a few; yields its address and process id."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "scheduler.json")
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        module = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        here = [
            "--scheduler-file",
            str(file),
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--dashboard-address",
            ":0",
        ]
        started = [subprocess.Popen([*module, *here], **quiet)]
        while not file.exists():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        share = workers // processes
        started += [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.scale", "--serve", address, str(share), str(threads)], **quiet
            )
            for _ in range(processes)
        ]
        try:
            yield address, started[0].pid
        finally:
            for process in started:
                process.kill()
                process.wait()


def serve(address: str, count: int, threads: int) -> None:
    """Many workers in this process, until it is ended."""
    import asyncio

    import dask
    from distributed import Worker

    logging.getLogger("distributed").setLevel(logging.CRITICAL)

    async def work() -> None:
        workers = [Worker(address, nthreads=threads, memory_limit=0, dashboard=False) for _ in range(count)]
        for some in range(0, count, 20):
            await asyncio.gather(*workers[some : some + 20])
        await asyncio.gather(*(worker.finished() for worker in workers))

    with dask.config.set({"distributed.worker.profile.enabled": False}):
        asyncio.run(work())


def sleeping(_: bytes, seconds: float) -> Any:
    """Take as long as a stack, and say as much as a worker does."""
    from xcorr_app.cluster.task import Told

    time.sleep(seconds)
    return Told(
        failure=None,
        resumed=False,
        inputs={"/data/plate/well/field/stack.ome.tif": "0" * 32},
        device="CPU",
        host=platform.node(),
    )


def cpu_seconds(process: int) -> float:
    """Processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def simulate(stacks: int, workers: int, seconds: float, processes: int, threads: int) -> dict[str, Any]:
    """Hand out stacks as a run does, to workers that sleep."""
    from distributed import Client

    from xcorr_app.cluster.handing_out import handed_out

    with (
        sleeping_cluster(workers, processes, threads) as (address, scheduler),
        Client(address, timeout=60, set_as_default=False) as client,
    ):
        client.wait_for_workers(workers, timeout=400)
        before, memory = cpu_seconds(scheduler), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        own, begin = time.process_time(), time.perf_counter()
        done = sum(1 for _ in handed_out(client, sleeping, [(bytes(_BYTES_A_TASK), seconds)] * stacks))
        wall = time.perf_counter() - begin
        used, mine = cpu_seconds(scheduler) - before, time.process_time() - own
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    assert done == stacks
    ideal = stacks * seconds / (workers * threads)
    found = {
        "stacks": stacks,
        "workers": workers,
        "threads_a_worker": threads,
        "seconds_a_stack": seconds,
        "wall": wall,
        "ideal": ideal,
        "scheduler_cpu": used,
        "scheduler_milliseconds_a_stack": 1e3 * used / stacks,
        "client_cpu": mine,
        "client_grew_megabytes": grown / 1024,
    }
    print(json.dumps(found, indent=1))
    return found


def main() -> None:
    """Run what was asked for, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="", help="numbers of processes, such as 1,2,4")
    parser.add_argument("--gpus", default="", help="numbers of GPUs, such as 1,2,4")
    parser.add_argument("--stacks", type=int, default=8)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--simulated", default="10000,1000,20", help="stacks,workers,seconds a stack")
    parser.add_argument("--processes", type=int, default=4, help="that the simulated workers live in")
    parser.add_argument("--threads", type=int, default=1, help="tasks at a time of a simulated worker")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve[0], int(given.serve[1]), int(given.serve[2]))
        return
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known |= {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "cores": os.cpu_count()}
    for kind in ("workers", "gpus"):
        if counts := [int(number) for number in getattr(given, kind).split(",") if number]:
            known[kind] = real(kind, counts, given.stacks, given.frames, given.side)
    if given.simulate:
        stacks, workers, seconds = given.simulated.split(",")
        known["simulation"] = simulate(int(stacks), int(workers), float(seconds), given.processes, given.threads)
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
