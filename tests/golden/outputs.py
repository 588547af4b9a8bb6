"""What a run leaves behind, as values: tables, records, images, pages; without what depends on machine and time."""

from __future__ import annotations

import base64
import csv
import json
import re
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import tifffile

_OF_THE_MOMENT = frozenset(
    {
        "versions",
        "processor",
        "started",
        "seconds",
        "timings",
        "inputs",
        "source",
        "decisions",
        "moving",
        "checksum",
        "decision",
    }
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_EMBEDDED = re.compile(r"data:image/([a-z+]+);base64,([A-Za-z0-9+/=]+)")
_LEVELS = 10_000
"""Of brightness, so that a third of one is within what numbers may differ by."""
_PICTURES = (".png", ".jpg", ".webp", ".gif")


def left_by(folder: Path) -> dict[str, Any]:
    """Every file below a folder by its name; records of how far a run has come are left out."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    return {name: _read(path, folder) for path, name in names.items() if not name.startswith(".xcorr/")}


def text(value: str, folder: Path) -> Any:
    """A text: its words as one number, and its numbers. Where the files are is of no interest."""
    value = anywhere(value, folder)
    numbers = [float(found) for found in _NUMBER.findall(value)]
    words = " ".join(_NUMBER.sub("#", value).split())
    return {"words": zlib.crc32(words.encode()), "numbers": np.array(numbers)}


def anywhere(value: str, folder: Path) -> str:
    """Without folders, dates, seconds and checksums."""
    value = re.sub(rf"[^\s'\"]*{re.escape(folder.parent.parent.name)}[^\s'\":,;]*", "PATH", value)
    value = re.sub(r"\d{4}-\d\d-\d\d(T[\d:+.Z]+)?", "DATE", value)
    value = re.sub(r'"versions": \{[^}]*\}', "VERSIONS", value)
    value = re.sub(r"\b[0-9a-f]{32}\b", "CHECKSUM", value)
    return re.sub(r"\b[\d.]+ (s|ms|us|seconds?)\b|[\d.]+ \w+/s\b", "SECONDS", value)


def _read(path: Path, folder: Path) -> Any:
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return _columns(list(csv.reader(file)))
    if path.suffix == ".json":
        return _settled(json.loads(path.read_text()), folder)
    if path.suffix in (".tif", ".tiff"):
        return _tiff(path, folder)
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: _settled(part, folder) for name, part in archive.items()}
    if path.suffix == ".html":
        return _page(path.read_text(), folder)
    if path.suffix == ".svg":
        return _drawing(path.read_text(), folder)
    if path.suffix in _PICTURES:
        return _picture(path.read_bytes())
    if path.suffix in (".vtk", ".txt"):
        return text(path.read_text(encoding="utf-8", errors="replace"), folder)
    return path.stat().st_size


def _columns(rows: list[list[str]]) -> dict[str, Any]:
    head, *body = rows
    found: dict[str, Any] = {"head": head}
    for name, cells in zip(head, zip(*body, strict=True), strict=True):
        try:
            found[name] = np.array([float(cell or "nan") for cell in cells])
        except ValueError:
            found[name] = list(cells)
    return found


def _settled(value: Any, folder: Path) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.ndim == 0:
        value = value.item()
    if isinstance(value, str):
        return _settled(json.loads(value), folder) if value.startswith("{") else anywhere(value, folder)
    if isinstance(value, dict):
        named = {anywhere(name, folder): part for name, part in value.items() if name not in _OF_THE_MOMENT}
        return {name: _settled(part, folder) for name, part in named.items()}
    return [_settled(part, folder) for part in value] if isinstance(value, list) else value


def _tiff(path: Path, folder: Path) -> dict[str, Any]:
    with tifffile.TiffFile(path) as file:
        pages = file.pages
        first = pages[0]
        described = re.sub(r"UUID=\S+|urn:uuid:\S+|xcorr-app \S+", "", first.description or "")
        return {
            "pages": len(pages),
            "big": file.is_bigtiff,
            "resolution": str(first.tags["XResolution"].value if "XResolution" in first.tags else None),
            "compression": int(first.compression),
            "description": text(described, folder),
            "planes": np.stack([page.asarray() for page in pages]),
        }


def _page(content: str, folder: Path) -> dict[str, Any]:
    # How far two ways of measuring differ is rounding, drawn to a scale of powers of ten.
    content = re.sub(r'(<details class="agreement">.*?)<img[^>]*>', r"\1", content, flags=re.DOTALL)
    pictures: list[Any] = []
    for kind, body in _EMBEDDED.findall(content):
        data = base64.b64decode(body)
        pictures.append(_drawing(data.decode(), folder) if kind == "svg+xml" else _picture(data))
    machine = r"<style>.*?</style>|<div><dt>(?:Versions|Device|Input)</dt>.*?</div>"
    rest = re.sub(machine, "", _EMBEDDED.sub("IMAGE", content), flags=re.DOTALL)
    return {"text": text(rest, folder), "pictures": pictures}


def _drawing(content: str, folder: Path) -> Any:
    return text(content, folder)


def _picture(data: bytes) -> Any:
    """Shape and brightness in sixteen parts: encoders that lose something differ by less than a level."""
    image = np.atleast_3d(np.asarray(imagecodecs.imread(data), dtype=np.float64))
    image = image[0] if image.ndim > 3 else image
    rows, columns = (np.linspace(0, size, 5).astype(int) for size in image.shape[:2])
    means = [
        float(image[top:bottom, left:right].mean()) / _LEVELS
        for top, bottom in pairwise(rows)
        for left, right in pairwise(columns)
        if bottom > top and right > left
    ]
    return {"shape": str(image.shape), "parts": np.array(means)}
