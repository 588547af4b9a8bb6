"""Opens the output folder of ``xcorr align``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from xcorr_app.io.shift_table import load_shifts
from xcorr_app.io.stack import read_stack

LayerData = tuple[Any, dict[str, Any], str]


def get_reader(path: str | list[str]) -> Callable[[str | list[str]], list[LayerData]] | None:
    """Return a function that reads a folder of results, or its ``run.json``; None for anything else."""
    return read_results if isinstance(path, str) and _stacks(path) else None


def read_results(path: str | list[str]) -> list[LayerData]:
    """Read every registered stack of a folder, with pixel size, and shifts in the layer's metadata."""
    layers: list[LayerData] = []
    for file in _stacks(path if isinstance(path, str) else path[0]):
        stack = read_stack(file)
        about = stack.metadata
        rows, columns = about.pixel_size or (None, None)
        scale = {"Z": about.z_step, "Y": rows, "X": columns}
        axes = about.axes
        facts: dict[str, Any] = {
            "name": file.parent.name,
            "metadata": {"xcorr": {"shifts": load_shifts(file.parent / "shifts.csv"), "file": str(file)}},
        }
        if "C" in axes:
            facts["channel_axis"] = axes.index("C")
            names = about.channel_names or tuple(str(number) for number in range(about.sizes["C"]))
            facts["name"] = [f"{file.parent.name} {name}" for name in names]
        facts["scale"] = [scale.get(axis) or 1.0 for axis in axes if axis != "C"]
        layers.append((stack.data, facts, "image"))
    return layers


def _stacks(path: str) -> list[Path]:
    folder = Path(path).parent if Path(path).name == "run.json" else Path(path)
    if not (folder / "run.json").is_file():
        return []
    return [file for file in sorted(folder.glob("*/*_aligned.*tif")) if (file.parent / "shifts.csv").is_file()]
