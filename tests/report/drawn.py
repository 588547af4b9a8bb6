"""A chart that was read again: where its parts lie."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np


class Drawn:
    """A chart that was read again."""

    def __init__(self, svg: bytes | None) -> None:
        assert svg is not None
        self.root = ET.fromstring(svg)  # noqa: S314 (our own)

    def paths(self, kind: str) -> list[ET.Element]:
        return [each for each in self.root.iter() if each.get("class") == kind]

    def points(self, kind: str) -> list[list[float]]:
        """Places of a kind, in the order in which they are drawn."""
        text = "".join(each.get("d", "") for each in self.paths(kind))
        return [[float(x), float(y)] for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", text)]

    def texts(self) -> list[tuple[str, float, float]]:
        """What is written upright, and where."""
        found = [each for each in self.root.iter() if each.tag.endswith("}text") and each.get("x")]
        return [(each.text or "", float(each.get("x", 0)), float(each.get("y", 0))) for each in found]

    def place(self, text: str) -> tuple[float, float]:
        return next((x, y) for found, x, y in self.texts() if found == text)

    def beside(self, x: float) -> dict[str, float]:
        """Height of what is written at a place across."""
        return {text: y for text, at, y in self.texts() if abs(at - x) < 0.06}

    def above(self, y: float) -> dict[str, float]:
        """Place of what is written at a height."""
        return {text: x for text, x, at in self.texts() if abs(at - y) < 0.06}

    def turned(self) -> dict[str, tuple[float, float]]:
        """Places of what is written along an axis that stands."""
        found = {}
        for each in self.root.iter():
            place = re.match(r"translate\((\S+) (\S+)\) rotate\(-90\)", each.get("transform", ""))
            if place:
                found[each.text or ""] = (float(place[1]), float(place[2]))
        return found

    def tiles(self) -> list[tuple[list[float], str]]:
        return [([float(each.get(k, "nan")) for k in ("x", "y", "width", "height")], each.get("fill", ""))
                for each in self.paths("tile")]  # fmt: skip

    def legend(self) -> dict[str, tuple[float, float]]:
        found = {}
        for group in self.root.iter():
            place = re.fullmatch(r"translate\((\S+) (\S+)\)", group.get("transform", ""))
            if place:
                name = next(each.text or "" for each in group.iter() if each.tag.endswith("}text"))
                found[name] = (float(place[1]), float(place[2]))
        return found


def near(found: Any, expected: Any, within: float = 0.06) -> None:
    np.testing.assert_allclose(np.array(found, dtype=float), np.array(expected, dtype=float), atol=within)
