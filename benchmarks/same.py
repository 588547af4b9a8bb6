"""Copies in, the same out: whole commands over copies of one stack, whose tables and written stacks must be equal.

Run on a machine with an NVIDIA GPU: ``python -m benchmarks same``, kept in ``benchmarks/results/same.json``. In each
run the copies come in another order; all are compared, byte for byte, with what one copy comes to alone.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import tifffile
from click.testing import CliRunner
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from benchmarks.harness.record import write_result
from xcorr_app.cli import main as xcorr

_ALIGN = ("align", "--max-shift", "16")
COMMANDS: dict[str, tuple[str, ...]] = {
    "align": _ALIGN,
    "align --no-apply": (*_ALIGN, "--no-apply"),
    "align --verify none": (*_ALIGN, "--verify", "none"),
    "align --reference template": (*_ALIGN, "--reference", "template"),
    "align --motion rigid": ("align", "--motion", "rigid"),
    "align --motion patches": (*_ALIGN, "--motion", "patches"),
    "filter": ("filter", "--gaussian", "2"),
    "unmix": ("unmix", "--channel-axis", "T"),
}
_DIFFERENT = 50
"""Frames of a stack, which repeat then."""


@dataclass(frozen=True)
class Case:
    """Copies of a stack of so many square frames, and how often a command is run over them."""

    command: str
    stacks: int
    frames: int
    runs: int
    side: int = 512


CASES = (
    Case("align", 160, 200, 20),
    Case("align", 32, 1250, 3),
    Case("align", 400, 20, 3),
    *(Case(command, 160, 200, 3) for command in ("align --no-apply", "align --verify none")),
    *(Case(command, 32, 1250, 3) for command in ("align --no-apply", "align --verify none", "filter")),
    Case("align --reference template", 160, 200, 3),
    Case("align --motion patches", 40, 50, 3),
    Case("align --motion rigid", 16, 10, 3),
    Case("filter", 160, 200, 3),
    Case("unmix", 400, 4, 3),
)


def stack_of(frames: int, side: int) -> NDArray[np.uint16]:
    """Frames with photon noise, cut from one scene that drifts within 14 pixels."""
    rng = np.random.default_rng(5)
    scene = gaussian_filter(rng.normal(size=(side + 64, side + 64)), 2)
    scene = (scene - scene.min()) / np.ptp(scene) * 3000 + 200
    places = np.clip(np.cumsum(rng.integers(-1, 2, (min(frames, _DIFFERENT), 2)), axis=0) + 32, 18, 46)
    stack = np.stack([rng.poisson(scene[y : y + side, x : x + side]) for y, x in places]).astype(np.uint16)
    return np.concatenate([stack] * -(-frames // len(stack)))[:frames]


def results_of(command: str, names: Sequence[str], folder: Path, device: str) -> tuple[dict[str, str], str]:
    """One digest a stack of the tables and stacks that a command writes, and what it printed on standard error.

    The stack ``one.tif`` of the folder is given under these names, in this order; the empty digest is that of a stack
    that failed.
    """
    given, out = folder / "in", folder / "out"
    for path in (given, out):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
    for name in names:
        os.link(folder / "one.tif", given / f"{name}.tif")
    paths = [given / f"{name}.tif" for name in names] if len(names) > 1 else [given]
    words = [*COMMANDS[command], *map(str, paths), "-o", str(out), "--device", device]
    if command == "unmix":
        words += ["--matrix", str(folder / "matrix.csv")]
    ended = CliRunner().invoke(xcorr, words)
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    if ended.exit_code > 128:
        raise KeyboardInterrupt
    return {name: _digest(out, name) for name in names}, ended.stderr


def _digest(out: Path, name: str) -> str:
    found = hashlib.sha256()
    files = [path for path in sorted(out.glob(f"{name}*/*")) if path.is_file()]
    kept = [path for path in files if path.suffix in (".csv", ".tif", ".npz")]
    for path in kept:
        content = path.read_bytes()
        found.update(content.replace(name.encode(), b"") if path.suffix == ".csv" else content)
    return found.hexdigest() if kept else ""


def prepared(folder: Path, frames: int, side: int) -> None:
    """Write the stack that is copied, and the matrix of `unmix`."""
    tifffile.imwrite(folder / "one.tif", stack_of(frames, side), photometric="minisblack")
    mixed = np.eye(frames) + 0.1
    (folder / "matrix.csv").write_text("\n".join(",".join(f"{value:.2f}" for value in row) for row in mixed) + "\n")


def run_once(case: Case, device: str, seed: int) -> tuple[int, int, str]:
    """Run a command over copies, in an order that the seed shuffles.

    Returns how many stacks differ from the one alone, how many failed, and the last line on standard error.
    """
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        prepared(folder, case.frames, case.side)
        (alone,) = results_of(case.command, ["s000"], folder, device)[0].values()
        assert alone, "the stack by itself fails"
        names = [f"s{number:03}" for number in range(case.stacks)]
        np.random.default_rng(seed).shuffle(names)
        digests, printed = results_of(case.command, names, folder, device)
    different = sum(digest not in ("", alone) for digest in digests.values())
    failed = sum(digest == "" for digest in digests.values())
    return different, failed, printed.strip().rpartition("\n")[2]


@click.command()
@click.option("--minutes", type=float, default=60.0, show_default=True, help="No further run is begun after these.")
@click.option("--only", default="", metavar="TEXT", help="Commands whose name contains this text.")
@click.option("--device", default="cuda", show_default=True, help="Where to compute, as `xcorr align` takes it.")
def same(minutes: float, only: str, device: str) -> None:
    """Run commands over copies of one stack, again and again: every table and stack must be the same, byte for byte.

    \b
    Example:
      python -m benchmarks same --minutes 20 --only "align --no-apply"
    """
    until = time.monotonic() + 60 * minutes
    cases = [case for case in CASES if only in case.command]
    runs = list[dict[str, Any]]()
    # First one run of each case, then the next of each, so that all have had some when time is up.
    for turn in range(max(case.runs for case in cases)):
        for case in cases:
            if turn < case.runs and time.monotonic() < until:
                different, failed, said = run_once(case, device, turn)
                print(
                    f"{case.command:27} {case.stacks:4} x {case.frames:4}: {different} differ, {failed} failed {said}"
                )
                runs.append({**asdict(case), "turn": turn, "different": different, "failed": failed, "said": said})
                write_result("same", {"runs": runs})  # of a run that is broken off, too
    if any(run["different"] or run["failed"] for run in runs):
        raise SystemExit(1)
