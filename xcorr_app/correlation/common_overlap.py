"""Correlation around a peak over one overlap: that of the peak itself.

The overlap of two images at a shift one nearer to zero has a row more than at the peak, and one farther off a row less:
opposite neighbours of a peak do not compare the same pixels. Where images end in something else than the scene (a
frame, what a stage or a simulation filled in, vignetting) that tilts the peak: by 0.005 pixels where a speckle image
was moved by whole pixels and filled with white, and by 0.012 where noise makes the peak's flanks count more. Of the two
crops that lie on each other at the peak, opposite shifts compare the same pairs. Normalised correlation over their
overlaps is the given one less the lines along the rim that only the larger overlaps have, so it costs a few lines of
each image and no pass over them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, array_namespace

_LINES, _COUNT = slice(None, -1), slice(-1, None)
_BLOCKS = (_COUNT, _COUNT), (_COUNT, _LINES), (_LINES, _COUNT), (_LINES, _LINES)
"""Of products of lines, and of the ones that count them: numbers of pairs, sums of either image, sums of products."""
_MIN_VARIANCE = 1e-4
"""Share of an overlap's sum of squares that must be left without the lines along its rim."""


def on_common_overlap(
    around: Array, left: Array, right: Array, peak: NDArray[np.intp], of_left: Array, of_right: Array
) -> Array:
    """Zero-mean normalised correlation of the parts that overlap at a peak, at the shifts around it.

    Parameters
    ----------
    around : ndarray, shape (n, 2 r + 1, 2 r + 1)
        Zero-mean normalised correlation over the whole overlap of each shift; NaN where there is none.
    left, right : ndarray, shape (1 or n, h, w) and (n, h, w)
        The images, at a peak right moved by it lies on left.
    peak : ndarray of int, shape (n, 2)
        The shift in the middle of `around`, in rows and columns.
    of_left, of_right : ndarray, shape (2, n, 2 r + 1, 2 r + 1)
        Sum, and sum of squares about the mean, over the overlap at each of the shifts.

    Returns
    -------
    ndarray, shape (n, 2 r + 1, 2 r + 1)
        As given where the parts are too small or too flat.
    """
    xp = array_namespace(around)
    radius = around.shape[1] // 2
    sides = _sides(right.shape[1:], peak, radius)
    count = xp.asarray((sides[0][:, :, None] * sides[1][:, None, :]).astype(np.float64))
    pairs = xp.maximum(count, 1.0)
    sums = [of_left[0], of_left[1] + of_left[0] ** 2 / pairs, of_right[0], of_right[1] + of_right[0] ** 2 / pairs]
    products = around * xp.sqrt(of_left[1] * of_right[1]) + of_left[0] * of_right[0] / pairs
    rim = _rim(left, right, peak, radius)
    n, g, gg, f, ff, fg = (whole - part for whole, part in zip((count, *sums, products), rim, strict=True))
    pairs = xp.maximum(n, 1.0)
    of_g, of_f = gg - g * g / pairs, ff - f * f / pairs
    usable = (n > 1) & (of_g > _MIN_VARIANCE * sums[1]) & (of_f > _MIN_VARIANCE * sums[3])
    score = (fg - g * f / pairs) / xp.sqrt(xp.where(usable, of_g * of_f, 1.0))
    return xp.where(usable & (rim[0] > 0), xp.clip(score, -1.0, 1.0), around)


def _sides(shape: tuple[int, int], peak: NDArray[np.intp], radius: int) -> list[NDArray[np.intp]]:
    """Rows (n, 2 r + 1) and columns of the overlaps around peaks."""
    steps = np.arange(-radius, radius + 1)
    return [np.maximum(size - abs(peak[:, axis, None] + steps), 0) for axis, size in enumerate(shape)]


def _rim(left: Array, right: Array, peak: NDArray[np.intp], radius: int) -> list[Array]:
    """What the larger overlaps have beyond those of the crops: number of pairs, sums and squares, sums of products.

    Six arrays (n, 2 r + 1, 2 r + 1). The overlap is larger at the shifts on that side of a peak on which zero lies.
    """
    xp = array_namespace(right)
    both = []
    for axis in (0, 1):
        nearer = -np.sign(peak[:, axis, None]) * np.arange(-radius, radius + 1)
        at = xp.asarray(np.maximum(nearer - 1, 0))[:, :, None]
        is_larger = xp.asarray(nearer > 0)[:, :, None]
        lines = _lines(left, right, peak, axis, radius)
        placed = [
            xp.where(is_larger, xp.take_along_axis(of, xp.broadcast_to(at, (*at.shape[:2], of.shape[2])), axis=1), 0.0)
            for of in lines
        ]
        both.append(placed if axis == 0 else [of.transpose(0, 2, 1) for of in placed])
    return [of_rows + of_columns for of_rows, of_columns in zip(*both, strict=True)]


def _lines(left: Array, right: Array, peak: NDArray[np.intp], axis: int, radius: int) -> list[Array]:
    """Sums over the lines that an overlap has beyond the crops, six arrays (n, r, 2 r + 1).

    By how many shifts, 1 ... r, the overlap is nearer to zero across `axis`, and at the shifts -r ... r along it.
    At m shifts nearer to zero, line a of right at either end is on line m - 1 - a of left. Lines of rows are as long as
    the overlap; of columns, as the crops, so that no corner counts twice.
    """
    xp = array_namespace(right)
    size, length = (right.shape[1:], right.shape[:0:-1])[axis]
    across, along = peak[:, axis, None], peak[:, 1 - axis, None]
    line, apart = np.arange(radius), abs(across)
    # Lines from either edge inwards, and from where the other image ends outwards.
    inwards = [
        np.broadcast_to(line, (apart.shape[0], radius)),
        np.broadcast_to(size - 1 - line, (apart.shape[0], radius)),
    ]
    outwards = [apart - 1 - line, size - apart + line]
    positive = across > 0
    ends = [[inwards[0], outwards[1]], [outwards[0], inwards[1]]]
    of_f = [np.where(positive, ours, theirs) for ours, theirs in zip(*ends, strict=True)]
    of_g = [np.where(positive, theirs, ours) for ours, theirs in zip(*ends, strict=True)]
    (f, has_f), (g, has_g) = (
        _taken(images, np.stack(lines, axis=1), axis) for images, lines in ((right, of_f), (left, of_g))
    )
    # The lines of left, moved onto those of right, with r elements more at either end.
    place = np.arange(-radius, length + radius)
    source = place + along
    inside = (source >= 0) & (source < length)
    within = np.ones((peak.shape[0], length), dtype=bool)
    if axis == 1:
        inside &= (place >= 0) & (place < length)
        within = inside[:, radius:-radius]
    present, counted = (xp.asarray(mask.astype(np.float64))[:, None, None] for mask in (inside, within))
    g = _along(g, source, inside, present)
    f = f * counted
    steps = 2 * radius + 1
    # A further line counts the pairs: ones where there is an element.
    ours = xp.concatenate([f, xp.broadcast_to(counted, (*f.shape[:2], 1, length))], axis=2)
    theirs = xp.concatenate([g, xp.broadcast_to(present, (*g.shape[:2], 1, g.shape[3]))], axis=2)
    # Line by line of either image at one step after the other: no copies, and products that BLAS leaves to one thread.
    sums = xp.stack([ours @ theirs[..., step : step + length].swapaxes(2, 3) for step in range(steps)], axis=4)
    of_f2 = (f * f) @ _moved(present[:, 0], steps, length)[:, None]
    around = xp.pad(counted[:, 0], ((0, 0), (0, 0), (2 * radius, 2 * radius)))
    of_g2 = (g * g) @ _moved(around, steps, length + 2 * radius)[:, None, :, ::-1]
    both = (has_f[..., None] * has_g[..., None, :])[..., None]
    pairs, of_g, of_f, products = (sums[:, :, a, b] for a, b in _BLOCKS)
    terms = (
        pairs * both,
        of_g * both,
        of_g2[:, :, None] * both,
        of_f * both,
        of_f2[:, :, :, None] * both,
        products,
    )
    paired = xp.asarray((line[:, None] + line == line[:, None, None]).reshape(radius, -1).astype(np.float64))
    return [paired @ term.sum(axis=1).reshape(-1, radius * radius, steps) for term in terms]


def _along(lines: Array, source: NDArray[np.intp], inside: NDArray[np.bool_], present: Array) -> Array:
    """Lines (n, 2, r, length) from other places (n, m), consecutive ones; zero but where they are `inside`."""
    xp = array_namespace(lines)
    if xp is not np:
        at = xp.asarray(np.clip(source, 0, lines.shape[3] - 1))[:, None, None]
        return xp.take_along_axis(lines, xp.broadcast_to(at, (*lines.shape[:3], source.shape[1])), axis=3) * present
    moved = np.zeros((*lines.shape[:3], source.shape[1]))
    first, count = inside.argmax(axis=1).tolist(), inside.sum(axis=1).tolist()
    for image, (to, length) in enumerate(zip(first, count, strict=True)):
        of = int(source[image, to])
        moved[image, :, :, to : to + length] = lines[image, :, :, max(of, 0) : max(of, 0) + length]
    return moved


def _moved(values: Array, steps: int, length: int) -> Array:
    """Values (n, 1, m) from each of so many steps on, as columns: (n, length, steps)."""
    xp = array_namespace(values)
    return xp.stack([values[:, 0, step : step + length] for step in range(steps)], axis=2)


def _taken(images: Array, lines: NDArray[np.intp], axis: int) -> tuple[Array, Array]:
    """Rows or columns (n, 2, r) of images (1 or n, h, w) as float64, (n, 2, r, length), and which of them there are."""
    xp = array_namespace(images)
    chosen = images.swapaxes(1, 2) if axis == 1 else images
    size = chosen.shape[1]
    there = xp.asarray(((lines >= 0) & (lines < size)).astype(np.float64))
    each = xp.zeros(lines.shape, dtype=np.intp)
    if images.shape[0] > 1:
        each += xp.arange(lines.shape[0])[:, None, None]
    taken = chosen[each, xp.asarray(np.clip(lines, 0, size - 1))].astype(np.float64)
    return taken * there[..., None], there
