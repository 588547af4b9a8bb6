"""The table of cases: scenes, how each is measured, and what is asked of it."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.board import scenes, textures
from benchmarks.board.scenes import LARGEST, Series

BOTH = ("first", "pair")
EVERY = ("first", "pair", "template")
FIRST = ("first",)


@dataclass(frozen=True)
class Case:
    """A scene, and the ways in which it is measured.

    Attributes
    ----------
    name : str
    make : callable
        Takes a random generator; returns a series, or several.
    ways : tuple of str
        References of `estimate_shifts`; ``pair``: three frames of the series, each with the first alone.
    asked : dict
        Largest value of figures, when measured in the way `asked_of`.
    calibrated : bool
        Whether 68 +- 5 and 95 +- 3 % of the errors must be within one and two standard errors.
    """

    name: str
    make: Callable[[np.random.Generator], Series | list[Series]]
    ways: tuple[str, ...] = BOTH
    asked: dict[str, float] = field(default_factory=dict)
    asked_of: str = "first"
    calibrated: bool = True

    def series(self, seed: int) -> list[Series]:
        """Return the series of a seed; cases that differ by a number at the end share random numbers."""
        family, _, last = self.name.rpartition("/")
        known = family if last.replace(".", "").isdecimal() else self.name
        made = self.make(np.random.default_rng([seed, zlib.crc32(known.encode())]))
        return made if isinstance(made, list) else [made]


def _case(name: str, make: Callable[..., Any], *parameters: Any, ways: tuple[str, ...] = BOTH, **how: Any) -> Case:
    """Make a case; `how` has what is asked, and keyword arguments of the scene."""
    of_case = {key: how.pop(key) for key in ("asked", "asked_of", "calibrated") if key in how}
    return Case(name, lambda rng: make(rng, *parameters, **how), ways, **of_case)


_condition = scenes.of_condition
_UNMOVED, _CHEAP = {"rms": 0.1}, {"over_base": 1.15}
_OF_BOUND, _CLEAN_BOX = {"over_bound": 1.2, "z": 1.1}, (("box", 5.0), ("box", 50.0))

CASES: tuple[Case, ...] = (
    # Noise and drift alone.
    *(_case(f"plain/spots/{snr:g}", _condition, "plain", snr, ways=EVERY, asked=_CHEAP) for snr in (0.3, 2, 5, 20)),
    *(_case(f"plain/speckle/{snr:g}", _condition, "plain", snr, "speckle", asked=_CHEAP) for snr in (0.3, 5.0, 20.0)),
    _case("plain/previous", scenes.plain, 2.0, ways=("previous", "pairs:2")),
    *(_case(f"plain/window/{px}", scenes.plain, 0.2, max_shift=px, ways=FIRST) for px in (8, 40)),
    *(_case(f"plain/{kind} noise", scenes.noise_of_another_kind, kind, 3.0) for kind in ("heavy", "correlated")),
    # What stands still.
    *(_case(f"pattern/spots/{snr:g}", _condition, "pattern", snr, ways=EVERY) for snr in (1.0, 5.0)),
    *(
        _case(
            f"pattern/pair of {scene}", _condition, "pattern", 20.0, scene, 512, 2, 20.0,
            ways=FIRST, asked={"rms": rms},
        )
        for scene, rms in (("spots", 0.004), ("speckle", 0.003))
    ),
    _case("pattern/even", scenes.over_pattern, "all", 1.0, 2.0, ways=EVERY, asked={"rms": 0.016}),
    _case("pattern/strong", scenes.over_pattern, "camera", 4.0, 5.0, ways=EVERY, asked={"rms": 0.0043}),
    _case("pattern/hardly moving", scenes.over_pattern, "camera", 0.3, 5.0, 0.1, asked={"rms": 0.0053}),
    _case("pattern/dust", scenes.over_pattern, "dust", 1.0, 5.0, ways=EVERY),
    *(
        _case(f"pattern/still stripes/{snr:g}", scenes.over_pattern, "columns", 0.8, snr, asked={"rms": 0.011})
        for snr in (2.0, 5.0)
    ),
    _case("pattern/flickering", scenes.over_pattern, "camera", 1.0, 5.0, LARGEST, 0.4, asked={"rms": 0.03}),
    _case("pattern/still shade", scenes.light, "shade", 1.0),
    *(_case(f"pattern/rim, {n} frames", scenes.framed, n, 10.0, ways=FIRST) for n in (2, 12)),
    # Lines and pixels of a camera.
    _case("lines/rows", scenes.lines, "rows", 5.0, ways=EVERY),
    _case("lines/rows and columns", scenes.lines, "both", 5.0),
    _case("lines/shimmering", scenes.shimmering),
    _case("lines/stuck", scenes.defects, "lines", 2.0, ways=EVERY),
    *(_case(f"pixels/{kind}", _condition, kind, 2.0, ways=EVERY) for kind in ("hot", "flickering")),
    _case("pixels/single hits", scenes.defects, "hits", 2.0, ways=EVERY),
    # What is drawn, lacking, or stored with losses.
    *(_case(f"drawn/{kind}", scenes.drawn, kind, 3.0, ways=EVERY) for kind in ("caption", "clock")),
    _case("lacking/black borders", scenes.drawn, "black", 3.0),
    _case("lacking/NaN borders", scenes.drawn, "nan", 3.0),
    _case("lacking/masked", scenes.masked, 3.0),
    _case("stored/Bayer", scenes.raw_colours, 20.0, asked={"rms": 0.006}),
    _case("stored/jpeg", scenes.compressed, 40),
    # Light.
    _case("light/turning", _condition, "gradient", 5.0, ways=EVERY),
    _case("light/brightness", _condition, "brightness", 5.0),
    _case("light/haze", scenes.light, "haze", 5.0, ways=EVERY, asked={"rms": 0.010}),
    _case("light/glow", scenes.light, "glow", 2.0),
    _case("light/flash", scenes.light, "flash", 5.0),
    # Parts that move otherwise, or come and go.
    *(
        _case(
            f"parts/{disc}", scenes.covered, share, 1.0, 5.0, ways=EVERY,
            asked={"rms": rms}, asked_of="template",
        )
        for disc, share, rms in (("foreground", 0.25, 0.008), ("large foreground", 0.33, 0.013))
    ),
    _case("parts/disc that crosses", scenes.crossed, 3.0, ways=("first", "template")),
    _case("parts/bright things", scenes.bright_things, 2.0, ways=EVERY),
    _case("parts/blinking", _condition, "blinking", 5.0, ways=EVERY, asked={"rms": 0.036, "needless": 0}),
    _case("parts/blinking, 30 % on", scenes.blinking, 0.3, 5.0, asked={"applied": 0.3}),
    # Frames that are not shifted as a whole.
    *(_case(f"scan/{kind}", scenes.scanned, kind, 3.0) for kind in ("two-way", "interlaced", "jitter", "two-photon")),
    _case("bent/air", scenes.air, 10.0),
    _case("bent/charge", scenes.trailing, 0.1),
    _case("bent/turning", _condition, "turning", 5.0),
    _case("bent/growing", _condition, "growing", 5.0),
    # Scenes of few things, or of many alike.
    _case("lattice/defects", _condition, "lattice", 2.0, largest=5.5, ways=EVERY),
    _case("lattice/flaws", scenes.lattice, 12, 10.0, ways=FIRST),
    # Which period it moved by no picture tells: all frames are flagged, and right as long as steps are small.
    _case("lattice/perfect", scenes.lattice, 0, 10.0, ways=FIRST, calibrated=False),
    *(_case(f"few/stars/{count}", scenes.stars, count, ways=("first", "template")) for count in (60, 600)),
    _case("few/cells/2", scenes.few_cells, 2.0, ways=("first", "template")),
    _case("few/cells/3", scenes.few_cells, 3.0, ways=("first", "template"), asked={"applied": 0.10}),
    # Frames that show something else, and shifts that are too large or unsure.
    *(
        _case(f"frames/{kind}", scenes.interrupted, kind, 3.0, ways=("first", "template"))
        for kind in ("torn", "foreign", "dark", "lone", "cut")
    ),
    _case("frames/beyond the window", scenes.beyond, 3.0, ways=FIRST, calibrated=False),
    _case("doubt/12 sections", scenes.sections, 12, 60.0, 1.0, ways=FIRST, asked={"applied": 1.0}),
    _case("doubt/5 frames", scenes.sections, 5, 4.0, 0.9, ways=FIRST, asked={"applied": 0.5}),
    # Nothing moves, or not the stage.
    *(_case(f"still/scene/{snr:g}", scenes.still, "scene", snr, asked=_UNMOVED) for snr in (0.5, 5.0)),
    *(
        _case(f"still/{kind}", scenes.still, kind, 5.0, asked=_UNMOVED, calibrated=False)
        for kind in ("pattern", "focus", "subject", "particles")
    ),
    # Fine textures.
    *(
        _case(
            f"fine/{kind}/{snr:g}", textures.pairs, kind, snr, ways=FIRST,
            asked=_OF_BOUND if kind in textures.BLUR else {"rms": 0.015} if (kind, snr) in _CLEAN_BOX else {},
        )
        for kind in ("noise", "0.5", "0.7", "box", "speckle", "spots")
        for snr in (0.2, 1.0, 5.0, 50.0)
    ),
)  # fmt: skip
