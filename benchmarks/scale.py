"""How a run grows with workers: stacks on 1, 2, 4 processes or GPUs.

    python -m benchmarks.scale --workers 1,2,4             # processes of this machine
    python -m benchmarks.scale --gpus 1,2,4 --stacks 16    # one process a GPU

Runs align stacks from the page cache, first measured alone, then moved as well, and
compare tables and aligned stacks of every number of workers byte by byte. What is timed is the best of three runs on
workers that run already. Beside it stand seconds of processor time, of all
workers and of the busiest one, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.pipeline.data import write_stacks
from xcorr_app.cluster.connect import started

REPEATS = 3
RESULTS = Path(__file__).parent / "results" / "scale.json"


def align(inputs: Path, out: Path, cluster: str, device: str, *, apply: bool, report: str) -> dict[str, Any]:
    """Seconds from the first task to the last result, those of the steps in all workers, a checksum of all results."""
    from distributed import Client

    import xcorr_app as xc

    with Client(cluster, set_as_default=False) as client:
        before = client.run(time.process_time)
        done = xc.align(
            inputs, out, device=device, cluster=cluster, apply=apply, report=report, max_shift=24, overwrite=True
        )
        used = [seconds - before[worker] for worker, seconds in client.run(time.process_time).items()]
    assert not done.failed, done.failed
    record = json.loads(done.record.read_text())
    steps: dict[str, float] = {}
    for stack in record["stacks"].values():
        for step, seconds in stack["seconds"].items():
            steps[step] = round(steps.get(step, 0.0) + seconds, 3)
    digest = hashlib.sha256()
    for stack in done.stacks:
        pictures = sorted(path for path in (out / ".xcorr").glob(f"{stack.name}.*") if path.suffix != ".json")
        for path in (stack.table, stack.path, *pictures):
            digest.update(b"" if path is None else path.read_bytes())
        digest.update(json.dumps(record["stacks"][stack.name]["assessment"]).encode())
    return {
        "seconds": record["timings"]["stages"]["workers"]["waited_seconds"],
        "cpu_seconds": round(sum(used), 2),
        "cpu_seconds_of_the_busiest": round(max(used), 2),
        "steps": steps,
        "digest": digest.hexdigest(),
        "devices": sorted({worker["device"] for worker in record["cluster"]["workers"].values()}),
    }


def real(kind: str, counts: list[int], given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time runs on several numbers of workers; the results must be the same bytes.

    Workers are started once for all runs of a number of them, so that the best run has no start in it.
    """
    gpus = visible_gpus() if kind == "gpus" else []
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder, "in")
        write_stacks(inputs, given.stacks, given.frames, given.side)
        size = sum(path.stat().st_size for path in inputs.iterdir())
        print("| workers | moved | best, s | first, s | GB/s | times | CPU, s | of the busiest | steps, s |")
        for apply in (False, True):
            digests, one = set(), 0.0
            for count in counts:
                if kind == "gpus":
                    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[:count])
                device = "cuda" if kind == "gpus" else "cpu"
                with started("gpus" if kind == "gpus" else f"local:{count}") as address:
                    runs = [
                        align(inputs, Path(folder, "out"), address, device, apply=apply, report=given.report)
                        for _ in range(REPEATS)
                    ]
                digests |= {run["digest"] for run in runs}
                best = min(runs, key=lambda run: run["seconds"])
                one = one or best["seconds"] * count
                found = {
                    "kind": kind,
                    "workers": count,
                    "apply": apply,
                    "report": given.report,
                    "seconds": best["seconds"],
                    "first": runs[0]["seconds"],
                    "gigabytes_per_second": round(size / best["seconds"] / 1e9, 3),
                    "times": round(one / best["seconds"], 3),
                    "cpu_seconds": min(run["cpu_seconds"] for run in runs),
                    "cpu_seconds_of_the_busiest": min(run["cpu_seconds_of_the_busiest"] for run in runs),
                    "steps": best["steps"],
                    "devices": best["devices"],
                    "stacks": given.stacks,
                    "frames": given.frames,
                    "side": given.side,
                }
                print(
                    f"| {kind} {count} | {apply} | {best['seconds']:.2f} | {found['first']:.2f} | "
                    f"{found['gigabytes_per_second']} | {found['times']} | {found['cpu_seconds']} | "
                    f"{found['cpu_seconds_of_the_busiest']} | {best['steps']} |",
                    flush=True,
                )
                yield found
            assert len(digests) == 1, "results depend on the number of workers"
            print(f"the same bytes on {', '.join(map(str, counts))} workers, in {REPEATS} runs each", flush=True)


def visible_gpus() -> list[str]:
    """Names of the GPUs of this machine, as ``CUDA_VISIBLE_DEVICES`` takes them."""
    if named := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return named.split(",")
    listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True)
    return [str(number) for number in range(len(listed.stdout.splitlines()))]


def main() -> None:
    """Run what was asked for, and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="", help="numbers of processes, such as 1,2,4")
    parser.add_argument("--gpus", default="", help="numbers of GPUs, such as 1,2,4")
    parser.add_argument("--stacks", type=int, default=8)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--report", default="none", choices=("full", "quick", "none"), help="of each stack")
    given = parser.parse_args()
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    known |= {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "cores": os.cpu_count()}
    for kind in ("workers", "gpus"):
        if counts := [int(number) for number in getattr(given, kind).split(",") if number]:
            name = kind if given.stacks > 1 else f"one stack, {kind}"
            name += "" if given.report == "none" else f", {given.report} report"
            known[name] = list(real(kind, counts, given))
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


if __name__ == "__main__":
    main()
