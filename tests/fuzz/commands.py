"""A changed file beside a sound one, given to every command: the sound one is done; the other is done or refused."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from tests.fuzz.mutators import mutate
from tests.fuzz.targets import TARGETS
from tests.io.samples import write_plain
from xcorr_app.cli import main

OF_COMMAND = {
    "filter-taps": ("csv-taps",),
    "apply-table": ("csv-to-apply", "npy-to-apply"),
    "unmix": ("rgb", "rgb-ome", "png-colour", "bmp-colour", "jpeg-colour"),
    "correlate": ("plain", "ome", "lzw", "jpeg-in-tiff", "png", "bmp", "npy"),
}
KINDS = [name for name in TARGETS if name.split("-")[0] not in ("csv", "json", "zarr") and not name.startswith("npy-")]


def _movie():
    """Three frames that shift by a pixel: enough for every command, and quick."""
    scene = np.random.default_rng(5).integers(0, 4000, (40, 44)).astype(np.uint16)
    return np.stack([scene[step : step + 32, 4:40] for step in range(3)])


COMMANDS = {
    "align": (["align", "--report", "none", "--max-shift", "3"], "out/sound/shifts.csv"),
    "filter": (["filter", "--box", "3"], "out/sound/sound_filtered.tif"),
    "filter-taps": (["filter", "--taps"], None),
    "unmix": (["unmix", "--stain", "he"], None),
    "correlate": (["correlate", "--form", "n-to-m"], None),
    "apply": (["apply"], "out/sound/sound_aligned.tif"),
    "apply-table": (["apply", "--missing", "interpolate"], None),
    "field": (["field", "--window", "8", "--pictures", "none"], "out/sound/field_0001.csv"),
}
"""Arguments, and what must be there of the sound file; None where the command has one input."""
BESIDES = ("filter-taps", "apply-table")
"""Commands that a changed file is given to beside a sound image."""


def run(name, count, seed, folder):
    """Give `count` changed files to a command; returns exit codes, and what was wrong: (number, kind, why)."""
    arguments, needed = COMMANDS[name]
    folder = Path(folder)
    outcomes, findings = Counter(), []
    inputs = folder / "in"
    inputs.mkdir()
    write_plain(inputs / "sound.tif", _movie())
    (folder / "shifts.csv").write_text("frame,dy,dx\n0,0,0\n1,-1,0\n2,-2,0\n")
    seeds = {}
    for number in range(count):
        rng = random.Random(f"{name} {seed} {number}")  # noqa: S311 - the same files every time
        kind = rng.choice(OF_COMMAND.get(name, KINDS))
        target = TARGETS[kind]
        if kind not in seeds:
            content = target.make(folder)
            seeds[kind] = content, target.fields(content)
        # The first is sound: the command works at all.
        changed = mutate(*seeds[kind], rng)[0] if number else seeds[kind][0]
        path = folder / f"besides{target.suffix}" if name in BESIDES else inputs / f"x{target.suffix}"
        path.write_bytes(changed)
        if needed is not None:
            (folder / needed).unlink(missing_ok=True)
        result = CliRunner().invoke(main, _arguments(name, arguments, inputs, path, folder / "out"))
        outcomes[result.exit_code] += 1
        text = result.output
        if (
            result.exit_code not in ((0, 1, 2) if number else (0, 1))
            or "Traceback" in text
            or "this is a defect" in text
        ):
            findings.append((number, kind, f"exit code {result.exit_code}: {result.exception!r} {text[-300:]}"))
        elif needed is not None and not (folder / needed).exists():
            findings.append((number, kind, f"the sound file was not done: {text[-300:]}"))
        path.unlink()
    return outcomes, findings


def _arguments(name, arguments, inputs, path, out):
    sound = inputs / "sound.tif"
    common = ["--overwrite", "--device", "cpu"]
    if name in BESIDES:
        return [*arguments, str(path), str(sound), "-o", str(out), *common]
    if name == "unmix":
        return [*arguments, str(path), "-o", str(out), *common]
    if name == "correlate":
        return [*arguments, str(sound), str(path), "-o", str(out.with_suffix(".npy")), *common]
    if name == "apply":
        arguments = [*arguments, str(inputs.parent / "shifts.csv")]
    return [*arguments, str(sound), str(path), "--layout", "stacks", "-o", str(out), *common]
