"""Series with known shifts: a drifting scene, and one thing besides the drift.

Each function takes a random generator and its own parameters, and returns a `Series`. Unless a docstring says otherwise
there are 20 frames of 168 x 168 uint16, the scene is a Gaussian texture with a spectrum of deviation 0.08 cycles per
pixel, cut at a quarter of a cycle and moved exactly (a phase ramp on a torus whose other side never enters), the drift
is a smooth curve to 6 pixels along both axes, and the noise is white. Strengths are in deviations of the scene.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage
from scipy.signal import lfilter

from benchmarks.conditions import Series, make_series
from benchmarks.scenes import Scene, Spots, drift

COUNT, SIZE, LARGEST = 20, 168, 6.0
MARGIN = 40
_OFFSET, _UNIT = 12_000.0, 500.0

Array = NDArray[np.float64]


class Texture:
    """A random texture of unit deviation on a canvas larger than the view by `MARGIN` on every side."""

    def __init__(
        self, rng: np.random.Generator, size: int | tuple[int, int] = SIZE, width: float = 0.08, highest: float = 0.25
    ) -> None:
        shape = (size, size) if isinstance(size, int) else size
        canvas = [n + 2 * MARGIN for n in shape]
        self.fy, self.fx = np.fft.fftfreq(canvas[0])[:, None], np.fft.fftfreq(canvas[1])[None]
        squares = self.fy**2 + self.fx**2
        amplitude = np.exp(-squares / (2 * width**2)) * ((squares > 0) & (squares < highest**2))
        self.spectrum = np.fft.fft2(rng.standard_normal(canvas)) * amplitude
        self.spectrum /= np.fft.ifft2(self.spectrum).real.std()

    def at(self, place: Array, rows: Array | None = None) -> Array:
        """Return the view displaced by `place`; its rows, counted from the first, also by (Y,) pixels sideways each."""
        seen = np.fft.ifft2(self.spectrum * np.exp(-2j * np.pi * (self.fy * place[0] + self.fx * place[1]))).real
        if rows is not None:
            aside = np.pad(rows, MARGIN, mode="edge")[:, None]
            seen = np.fft.ifft(np.fft.fft(seen, axis=1) * np.exp(-2j * np.pi * self.fx * aside), axis=1).real
        return np.asarray(seen[MARGIN:-MARGIN, MARGIN:-MARGIN])

    def along(self, path: Array) -> Array:
        """Views (T, Y, X) displaced by (T, 2) pixels."""
        return np.stack([self.at(place) for place in path])


def moving(
    rng: np.random.Generator, count: int = COUNT, largest: float = LARGEST, **texture: Any
) -> tuple[Array, Array]:
    """Views of a texture, and their displacements (T, 2)."""
    path = drift(count, rng, largest)
    return Texture(rng, **texture).along(path), path


def recorded(views: Array, path: Array, snr: float, rng: np.random.Generator, **known: Any) -> Series:
    """Add white noise, and store 500 counts a deviation."""
    noisy = views + rng.standard_normal(views.shape) / snr
    counts = np.clip(np.rint(_OFFSET + _UNIT * noisy), 0, 65_535).astype(np.uint16)
    return Series(counts, path[0] - path, **known)


def of_condition(
    rng: np.random.Generator,
    condition: str,
    snr: float,
    scene: str = "spots",
    size: int = 192,
    count: int = COUNT,
    largest: float = 8.0,
) -> Series:
    """Make a series of :mod:`benchmarks.conditions`, of spots or speckle through a camera."""
    return make_series(scene, snr, count - 1, int(rng.integers(2**31)), largest, condition, size)


def blob(size: int | tuple[int, int], place: Array, spread: float) -> Array:
    """A Gaussian of height one and twice this variance."""
    y, x = np.ogrid[:size, :size] if isinstance(size, int) else np.ogrid[: size[0], : size[1]]
    return np.asarray(np.exp(-((y - place[0]) ** 2 + (x - place[1]) ** 2) / spread))


def disc(centre: Array, radius: float) -> NDArray[np.bool_]:
    """Pixels within a circle."""
    y, x = np.ogrid[:SIZE, :SIZE]
    return np.asarray(np.hypot(y - centre[0], x - centre[1]) < radius)


def plain(rng: np.random.Generator, snr: float, **options: Any) -> Series:
    """Nothing but noise; with options of `estimate_shifts`."""
    return replace(recorded(*moving(rng), snr, rng), options=options)


def noise_of_another_kind(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """Noise that is alike in neighbouring pixels, or has heavy tails."""
    views, path = moving(rng)
    noise = rng.standard_t(5, views.shape) if kind == "heavy" else rng.standard_normal(views.shape)
    if kind == "correlated":
        noise = ndimage.gaussian_filter(noise, (0, 1, 1), mode="wrap")
    return recorded(views + noise / noise.std() / snr, path, 1e3, rng)


def still_layer(rng: np.random.Generator, kind: str, size: int = SIZE) -> Array:
    """Columns, white pixels, both (of a camera), dust, a texture as that of the scene, or all, of unit deviation."""
    parts = {
        "columns": np.broadcast_to(rng.standard_normal(size), (size, size)),
        "pixels": rng.standard_normal((size, size)),
        "dust": -ndimage.gaussian_filter((rng.random((size, size)) < 0.002).astype(float), 2.5),
        "texture": Texture(rng, size).at(np.zeros(2)),
    }
    chosen = {"all": [*parts], "camera": ["columns", "pixels"]}.get(kind, [kind])
    part = sum(parts[name] / parts[name].std() for name in chosen)
    return np.asarray((part - np.mean(part)) / np.std(part))


def over_pattern(
    rng: np.random.Generator, kind: str, strength: float, snr: float, largest: float = LARGEST, flicker: float = 0.0
) -> Series:
    """A layer that stands still; the light on the scene may flicker over it."""
    views, path = moving(rng, largest=largest)
    views *= np.exp(flicker * rng.standard_normal((COUNT, 1, 1)))
    return recorded(views + strength * still_layer(rng, kind), path, snr, rng)


def lines(rng: np.random.Generator, axes: str, snr: float) -> Series:
    """Rows, or both axes, with offsets of unit deviation that are others in every frame."""
    views, path = moving(rng)
    views += rng.standard_normal((COUNT, SIZE, 1))
    if axes == "both":
        views += rng.standard_normal((COUNT, 1, SIZE))
    return recorded(views, path, snr, rng)


def shimmering(rng: np.random.Generator) -> Series:
    """Broad rows, as shadows of a light sheet, that stand still and shimmer; drift of 1.6 px; counts of photons."""
    steps = np.linspace(0, 1, 24)
    path = np.column_stack([1.6 * steps, -1.5 * steps]) + rng.normal(0, 0.1, (24, 2))

    def stripes(spread: float, count: int = 1) -> Array:
        rows = ndimage.gaussian_filter1d(rng.standard_normal((count, SIZE)), 1.5, axis=1)
        return np.asarray(np.exp(spread * rows / rows.std())[..., None])

    clean = 60 * np.exp(0.5 * Texture(rng).along(path)) * stripes(0.3) * stripes(0.12, 24)
    return Series(rng.poisson(clean).astype(np.uint16), path[0] - path)


def defects(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """Stuck lines of a camera; or nine pixels a frame that are hit, 30 to 100 deviations high."""
    views, path = moving(rng)
    made = recorded(views, path, snr, rng)
    if kind == "lines":
        made.frames[:, :, rng.choice(SIZE, 4, replace=False)] = rng.choice([0, 9000, 40_000, 65_535], 4)
        made.frames[:, rng.integers(SIZE)], made.frames[:, 70:, rng.integers(SIZE)] = 30_000, 16_000
        return made
    for frame in made.frames:
        frame[rng.integers(0, SIZE, 9), rng.integers(0, SIZE, 9)] = _OFFSET + _UNIT * rng.uniform(30, 100, 9)
    return made


def drawn(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """A caption with letters, a clock, black or NaN borders as wide as chance has it; 8 bits, floats with NaN."""
    views, path = moving(rng)
    noisy = views + rng.standard_normal(views.shape) / snr
    frames = np.clip(np.rint(110 + 20 * noisy), 0, 255).astype(np.uint8)
    if kind == "caption":
        frames[:, 134:] = 0
        frames[:, 141:150, 20:140] = np.where((rng.random((9, 60)) > 0.5).repeat(2, axis=1), 255, 0)
        frames[:, :2] = frames[:, :, :2] = frames[:, :, -2:] = 255
    elif kind == "clock":
        glyphs = rng.random((10, 12, 8)) < 0.5
        frames[:, 4:20, 4:100] = 0
        for t, frame in enumerate(frames):
            for place, digit in enumerate(f"{t * 37:08d}"):
                frame[6:18, 8 + 10 * place : 16 + 10 * place] = 255 * glyphs[int(digit)]
    else:
        if kind == "nan":
            frames = (1000 + 100 * noisy).astype(np.float32)
        for frame, (top, left) in zip(frames, rng.integers(-10, 11, (COUNT, 2)), strict=True):
            outside = np.ones(frame.shape, bool)
            outside[max(top, 0) : SIZE + min(top, 0), max(left, 0) : SIZE + min(left, 0)] = False
            frame[outside] = np.nan if kind == "nan" else 0
    return Series(frames, path[0] - path)


def masked(rng: np.random.Generator, snr: float) -> Series:
    """A third of the picture is something else, bright and still, and a mask says so."""
    views, path = moving(rng)
    mask = ndimage.gaussian_filter(rng.standard_normal((SIZE, SIZE)), 16, mode="wrap")
    mask = mask < np.quantile(mask, 0.67)
    return recorded(np.where(mask, views, 4 + 2 * still_layer(rng, "texture")), path, snr, rng, options={"mask": mask})


def light(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """Light that stands still, grows or drifts.

    shade: vignetting 100 times the scene. haze: a smooth layer of deviation 1.5 that drifts and changes by itself.
    glow: a spot of 12 deviations that grows from nothing. flash: such a spot of 40 in every fifth frame.
    """
    views, path = moving(rng)
    y, x = np.mgrid[:SIZE, :SIZE] / SIZE - 0.5
    if kind == "shade":
        lit = 20_000 * np.cos(1.1 * np.hypot(y, x)) ** 4 * (1 + 0.01 * views)
        return Series(rng.poisson(lit).astype(np.uint16), path[0] - path)
    if kind == "haze":
        layers, weights = [Texture(rng, width=0.015) for _ in range(3)], drift(COUNT, rng, 1.0)
        for t, view in enumerate(views):
            by = (1.0, *weights[t])
            view += (
                1.5 * sum(w * layer.at(2.0 * path[t]) for w, layer in zip(by, layers, strict=True)) / np.linalg.norm(by)
            )
    else:
        spot = blob(SIZE, np.array([0.6, 0.45]) * SIZE, 0.03 * SIZE**2)
        height = 12 * np.linspace(0, 1, COUNT) if kind == "glow" else 40.0 * (np.arange(COUNT) % 5 == 3)
        views += height[:, None, None] * spot
    return recorded(views, path, snr, rng)


def covered(rng: np.random.Generator, share: float, contrast: float, snr: float) -> Series:
    """A disc of this share of the field, with a texture of its own, moves by a drift of its own as large."""
    (views, path), (filling, own) = moving(rng), moving(rng)
    centre, radius = rng.uniform(0.42 * SIZE, 0.58 * SIZE, 2), SIZE * np.sqrt(share / np.pi)
    for view, inside, at in zip(views, filling, centre + own, strict=True):
        view[:] = np.where(disc(at, radius), contrast * inside, view)
    return recorded(views, path, snr, rng)


def crossed(rng: np.random.Generator, snr: float) -> Series:
    """A disc of five times the contrast crosses the scene by 2.6 px a frame."""
    steps = np.arange(COUNT)[:, None]
    path = steps * rng.uniform(-0.2, 0.2, 2) + rng.normal(0, 0.1, (COUNT, 2))
    views, way = Texture(rng).along(path), steps * np.array([0.4, 2.6])
    for view, inside, at in zip(views, Texture(rng).along(way % 30), way + np.array([80, 55]), strict=True):
        view[:] = np.where(disc(at, 42), 5 * inside, view)
    return recorded(views, path, snr, rng)


def bright_things(rng: np.random.Generator, snr: float) -> Series:
    """Five bright blobs, 15 deviations high, each on a way of its own over a faint scene."""
    views, path = moving(rng)
    for place in rng.uniform(30, SIZE - 30, (5, 2)):
        for view, at in zip(views, place + drift(COUNT, rng, 12.0), strict=True):
            view += 15 * blob(SIZE, at, 32)
    return recorded(views, path, snr, rng)


class SmallSpots(Spots):
    """Four times as many, half as wide."""

    _COUNT = 1200

    def __init__(self, rng: np.random.Generator, size: int) -> None:
        super().__init__(rng, size)
        self._sigma /= 2
        Scene.__init__(self, size)


def blinking(rng: np.random.Generator, lit: float, snr: float) -> Series:
    """Small spots, each of which is on in any frame by chance alone."""
    spots, path = SmallSpots(rng, 192), drift(COUNT, rng, 8.0)
    views = [spots.without(spots.random_spots(rng, 1 - lit)).sample(*place) for place in path]
    return recorded(np.stack(views), path, snr, rng)


def scanned(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """A scanner: two-way (odd rows 2 px aside), interlaced (odd rows half a frame later), or lines jitter by 0.4 px.

    two-photon: jitter of 0.6 px that rows share with their neighbours, and 0.3 photons a pixel.
    """
    path = drift(COUNT, rng, LARGEST)
    texture, odd = Texture(rng), np.arange(SIZE) % 2 == 1
    if kind == "interlaced":
        shaken = np.cumsum(rng.normal(0, 1.0, (COUNT + 1, 2)), axis=0)
        later = (shaken[:-1] + shaken[1:]) / 2
        views = np.where(odd[:, None], texture.along(later), texture.along(shaken[:-1]))
        path = (later + shaken[:-1]) / 2
    elif kind == "two-way":
        views = np.stack([texture.at(place, 2.0 * odd) for place in path])
    elif kind == "jitter":
        views = np.stack([texture.at(place, rng.normal(0, 0.4, SIZE)) for place in path])
    else:
        aside = ndimage.gaussian_filter1d(rng.standard_normal((COUNT, SIZE)), 4, axis=1)
        views = np.stack([texture.at(*each) for each in zip(path, 0.6 * aside / aside.std(), strict=True)])
        photons = rng.poisson(0.3 * np.exp(views - 0.5))
        return Series((100 + 40 * photons + rng.normal(0, 10, views.shape)).astype(np.uint16), path[0] - path)
    return recorded(views, path, snr, rng)


def raw_colours(rng: np.random.Generator, snr: float) -> Series:
    """Spots on dark ground that move by 1.5 px, by a mosaic of pixels that see a half, all and 0.7 of the light."""
    spots, path = Spots(rng, SIZE), drift(COUNT, rng, 1.5)
    gains = np.tile([[0.5, 1.0], [1.0, 0.7]], (SIZE // 2, SIZE // 2))
    return recorded(gains * np.stack([spots.sample(*place) for place in path]), path, snr, rng)


def compressed(rng: np.random.Generator, quality: int) -> Series:
    """JPEG of a smooth scene at SNR 20."""
    views, path = moving(rng, width=0.03)
    images = np.clip(128 + 30 * (views + rng.standard_normal(views.shape) / 20), 0, 255).astype(np.uint8)
    packed = [cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])[1] for image in images]
    return Series(np.stack([cv2.imdecode(each, cv2.IMREAD_UNCHANGED) for each in packed]), path[0] - path)


def air(rng: np.random.Generator, snr: float) -> Series:
    """Moving air: parts of 20 px are displaced by 0.4 px, in every frame but the first otherwise."""
    path, texture = drift(COUNT, rng, LARGEST), Texture(rng)
    y, x = np.mgrid[:SIZE, :SIZE].astype(float)
    views = []
    for place in path:
        bent = ndimage.gaussian_filter(rng.standard_normal((2, SIZE, SIZE)), (0, 8, 8), mode="wrap")
        bent *= 0.4 / bent.std()
        views.append(ndimage.map_coordinates(texture.at(place), [y + bent[0], x + bent[1]], order=5, mode="mirror"))
    return recorded(np.stack(views), path, snr, rng)


def trailing(rng: np.random.Generator, strength: float) -> Series:
    """Charge: coarse and fine structures, and a trail to the right of all that is bright from the second frame on."""
    path = drift(COUNT, rng, 8.0)
    clean = 3 * Texture(rng, width=0.03).along(path) + Texture(rng, width=0.12).along(path)
    trail = np.cumsum(clean - clean.mean(axis=2, keepdims=True), axis=2)
    trail[0] = 0
    return recorded(clean + 0.1 * strength * trail, path, 10 / 3, rng)


def lattice(rng: np.random.Generator, flaws: int, snr: float) -> Series:
    """A lattice of 9.7 px that moves on by 11 px: perfect, or with sites that are filled."""
    path = np.linspace(0, 1, COUNT)[:, None] * [11.0, -6.0]
    filled = 9.7 * np.rint(rng.uniform(20, SIZE - 20, (flaws, 2)) / 9.7)
    y, x = np.ogrid[:SIZE, :SIZE]
    views = [np.cos(2 * np.pi * (y - dy) / 9.7) + np.cos(2 * np.pi * (x - dx) / 9.7) for dy, dx in path]
    for view, place in zip(views, path, strict=True):
        for site in filled:
            view -= 1.7 * blob(SIZE, site + place, 2 * 2.2**2)
    return recorded(np.array(views), path, snr, rng)


def interrupted(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """Frames that show something else.

    torn: below the middle, two frames show the scene 9 px away. foreign: two frames show another scene. dark: the first
    shows noise alone. lone: the first shows another scene. cut: another scene from frame 13 on.
    """
    views, path = moving(rng)
    other = Texture(rng).along(path)
    foreign = np.isin(np.arange(COUNT), {"torn": (6, 13), "foreign": (7, 14), "cut": range(13, COUNT)}.get(kind, (0,)))
    if kind == "torn":
        views[[6, 13], SIZE // 2 :] = np.roll(views[[6, 13]], (9, -7), axis=(1, 2))[:, SIZE // 2 :]
    else:
        views[foreign] = 0 if kind == "dark" else other[foreign]
    made = recorded(views, path, snr, rng, foreign=foreign, zero=None if foreign[0] else 0)
    return replace(made, shifts=np.where(foreign[:, None], np.nan, made.shifts))


def stars(rng: np.random.Generator, count: int, size: int = 256) -> Series:
    """Stars of a PSF of sigma 0.8 px, 100 to 10 000 photons bright; dark sky of 10 photons, 5 of read noise."""
    path, width = drift(COUNT, rng, LARGEST), 0.8
    places, light = rng.uniform(-LARGEST, size + LARGEST, (count, 2)), 10 ** rng.uniform(2, 4, count)
    grid = np.arange(size)[:, None]
    views = []
    for at in path[:, None] + places:
        rows, columns = (np.exp(-((grid - at[:, axis]) ** 2) / (2 * width**2)) for axis in (0, 1))
        views.append((rows * light) @ columns.T / (2 * np.pi * width**2))
    counts = 100 + rng.poisson(10 + np.stack(views)) + rng.normal(0, 5, (COUNT, size, size))
    return Series(np.clip(np.rint(counts), 0, 65_535).astype(np.uint16), path[0] - path)


def few_cells(rng: np.random.Generator, snr: float, count: int = 100) -> Series:
    """A cell in each quarter of 40 x 50 px; they flash up, fade by a tenth a frame, and tremble by 0.3 px.

    The SNR is that of a cell's height.
    """
    path = drift(count, rng, 3.0) + rng.normal(0, 0.3, (count, 2))
    flashes = (rng.random((count + 60, 4)) < 0.07).astype(float)
    bright = 1 + lfilter([1.0], [1.0, -0.9], flashes, axis=0)[60:]
    views = np.zeros((count, 40, 50))
    quarters = np.array([(10, 12), (10, 37), (30, 12), (30, 37)])
    for n, place in enumerate(quarters + rng.uniform(-3, 3, (4, 2))):
        for t, at in enumerate(place + path):
            views[t] += bright[t, n] * blob((40, 50), at, 8)
    return recorded(views, path, snr, rng)


def still(rng: np.random.Generator, kind: str, snr: float) -> Series:
    """Nothing moves, or not the stage.

    scene: noise alone. pattern: a scene and columns, both still. focus: it sweeps through. subject: a dozen cells crawl
    over a faint still ground. particles: twenty drift together over a still scene.
    """
    texture, none = Texture(rng), np.zeros((COUNT, 2))
    views = texture.along(none)
    if kind == "pattern":
        views += still_layer(rng, "columns")
    elif kind == "focus":
        views = np.stack([ndimage.gaussian_filter(v, 0.1 + 2 * abs(t / COUNT - 0.5)) for t, v in enumerate(views)])
    elif kind != "scene":
        number, height, common = (12, 4.0, 0.0) if kind == "subject" else (20, 8.0, 1.0)
        together = drift(COUNT, rng, 10.0)
        for place in rng.uniform(0, SIZE, (number, 2)):
            own = common * together + (1 - common) * drift(COUNT, rng, 10.0)
            for view, at in zip(views, place + own, strict=True):
                view += height * blob(SIZE, at, 24)
    return recorded(views, none, snr, rng)


def framed(rng: np.random.Generator, count: int, snr: float) -> Series:
    """A bright rim, a third of the picture, textured as the scene, stands still; the scene moves by 20 to 30 px."""
    size, wide = 200, 19
    path = np.linspace(0, 1, count)[:, None] * rng.choice([-1, 1], 2) * rng.uniform(20, 30, 2)
    views = Texture(rng, size).along(path)
    rim = np.ones((size, size), bool)
    rim[wide:-wide, wide:-wide] = False
    return recorded(np.where(rim, 4 + still_layer(rng, "texture", size), views), path, snr, rng)


def beyond(rng: np.random.Generator, snr: float) -> Series:
    """A drift of 14 px along rows, in a window of 8."""
    path = np.linspace(0, 1, COUNT)[:, None] * [14.0, 3.0]
    return recorded(Texture(rng).along(path), path, snr, rng, options={"max_shift": 8})


def sections(rng: np.random.Generator, count: int, largest: float, own: float) -> Series:
    """Smooth sections of a specimen: each shows what all share, and `own` times as much that is its alone."""
    size = 200
    path = rng.uniform(-largest, largest, (count, 2)) * (np.arange(count) > 0)[:, None]
    grid = np.arange(size)
    canvas = ndimage.gaussian_filter(rng.standard_normal((size + 140, size + 140)), 5, mode="wrap")
    canvas = ndimage.spline_filter(canvas / canvas.std())
    views = []
    for dy, dx in path:
        at = np.meshgrid(grid + 70 - dy, grid + 70 - dx, indexing="ij")
        alone = ndimage.gaussian_filter(rng.standard_normal((size, size)), 5, mode="wrap")
        views.append(ndimage.map_coordinates(canvas, at, prefilter=False) + own * alone / alone.std())
    return recorded(np.stack(views), path, 2.0, rng, options={"max_shift": 90})
