"""Small movies with a known drift, and the ways of running the program on them."""

import csv
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from click.testing import CliRunner
from scipy.ndimage import gaussian_filter

from tests.io.samples import write_plain
from xcorr_app.cli import main
from xcorr_app.pipeline.state import FOLDER, LOCK

DRIFT = ((0, 0), (1, -1), (-2, 3), (3, 2))
"""Whole pixels to add to each frame of `movie` to land on the first."""


def movie(shape=(40, 48), dtype="uint16", seed=0, drift=DRIFT):
    """Frames cut out of one larger smooth scene, so that a shift moves new pixels in; no zeros."""
    rows, columns = shape
    scene = gaussian_filter(np.random.default_rng(seed).normal(size=(rows + 16, columns + 16)), 2)
    top = 250 if dtype == "uint8" else 3000
    scene = (scene - scene.min()) / np.ptp(scene) * (top - 1) + 1
    return np.stack([scene[8 + dy : 8 + dy + rows, 8 + dx : 8 + dx + columns] for dy, dx in drift]).astype(dtype)


def write_movie(path: Path, **options) -> Path:
    """A plain multi-page TIFF of `movie`; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_plain(path, movie(**options))
    return path


def write_movies(folder: Path, names, **options) -> Path:
    """One of every name, each another scene."""
    for seed, name in enumerate(names):
        write_movie(folder / f"{name}.tif", seed=seed, **options)
    return folder


@dataclass(frozen=True)
class Run:
    """What a run printed, and how it ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines_of_error(self) -> list[str]:
        return self.stderr.splitlines()


def xcorr(*arguments: object) -> Run:
    """Run the command in this process; an exception that reaches the user fails the test."""
    return invoke(main, "xcorr", *arguments)


def invoke(command: click.Command, name: str, *arguments: object) -> Run:
    """Run any command in this process."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], prog_name=name)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert "Traceback" not in result.output
    assert "this is a defect" not in result.output, result.output
    return Run(result.exit_code, result.stdout, result.stderr)


def align(*arguments: object) -> Run:
    """``xcorr align`` on the CPU."""
    return xcorr("align", "--device", "cpu", *arguments)


def start(*arguments: object, flags: tuple[str, ...] = ("-W", "error"), **options) -> subprocess.Popen[str]:
    """``xcorr align`` in a process of its own, where any warning is an error."""
    command = [sys.executable, *flags, "-m", "xcorr_app", "align", *map(str, arguments)]
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(command, cwd=root, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


def refused(run: Run, *words: str) -> None:
    """The run ended as wrong usage, with one line on standard error that holds the words."""
    assert run.code == 2, run
    assert len(run.lines_of_error) == 1, run.stderr
    for word in words:
        assert word in run.stderr, run.stderr


def table(path: Path) -> list[dict[str, str]]:
    """Rows of a table of shifts, read by the csv module alone."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shifts(path: Path, prefix: str = "") -> np.ndarray:
    """Columns dy and dx, or those whose names have a prefix; nan where they are empty."""
    return np.array([[float(row[prefix + name] or "nan") for name in ("dy", "dx")] for row in table(path)])


def applied(out: Path, name: str = "m") -> np.ndarray:
    """What the frames of a stack were moved by."""
    return shifts(out / name / "shifts.csv", "applied_")


def record(out: Path) -> dict:
    """What ``run.json`` holds."""
    return json.loads((out / "run.json").read_text())


def files(folder: Path) -> set[str]:
    """Every file below a folder, but for the records of a run."""
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in found if not name.startswith(".xcorr/")}


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
