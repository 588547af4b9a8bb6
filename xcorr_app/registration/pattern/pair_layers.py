"""Two images of a scene over a layer that stands still: the shift of the scene, by likelihood.

No layer can be subtracted that two images alone show. But a scene that moves by d and a layer that moves by e (zero: it
stands still), which know nothing of each other, have at angular frequency k the coherence

    c = s exp(i k d) + p exp(i k e),

where s and p are their shares of the power in a ring of frequencies; all else is noise. Sums P of both powers and X of
the cross-spectrum over the m values of a cell of the frequency plane are Wishart's. Minus the logarithm of their
likelihood, whatever power the cell has, is

    m (2 log(P - 2 Re(c* X)) - log(1 - |c|^2)),

in units in which both images have the same power in a ring (complex angular central Gaussian: Tyler 1987, doi
10.2307/2336697). Where p is zero this is what :mod:`xcorr_app.registration.measuring.phase_ramp` solves. Windows rise
over a quarter of each side, so that the layer, which they do not follow, is pulled next to nowhere.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy  # whose parts are loaded when they are asked for
from numpy.typing import NDArray

from xcorr_app.gpu.runtime.arrays import Array, to_host
from xcorr_app.registration.measuring.spectral_cells import CELLS, lattice_of, sums_over_cells
from xcorr_app.registration.parts.tile_bins import BINNED_FROM, binned, evenness

_LAST = 19
"""Rings of cells that are looked at, without the middle: up to 0.3 cycles per pixel."""
_RISE, _HOLDS = 0.25, 0.742
"""Part of a side over which windows rise, and of its values that are independent there."""
_BY_CHANCE, _OF_NOISE = 1e-4, 1e-2
"""Probability by which one layer passes for two, which each power of the other and its shift make likelier; and by
which noise shows as much as a ring that counts."""
_FULL, _EMPTY = 0.9999, 1e-14
"""The largest coherence; and the smallest power of a cell over that of the strongest."""
_STEPS, _LONGEST, _SETTLED = 25, 1.5, 0.5
"""Of Gauss and Newton; pixels that one takes at most; gain of the last, beside which some twenty decide."""
_RIDGE = 1e-6
"""Share by which a diagonal is larger: of layers that lie on each other, one is enough."""
_STILL = 0.3
"""Pixels by which a layer that stands still seems to move at most: windows pull at it."""
_STRONGER, FAR_STRONGER, _NEARER = 1.5, 16.0, 3.0
"""Times that what stands still has the power of things that move, or of what fills the picture as a scene does, and
lies nearer to the shift measured, from which it is the scene."""
_EVEN = 1 / 3
"""Evenness of what changes, from which what moves fills the picture as a scene does."""
_DIFFERS = 3.0
"""Standard errors by which a layer bends a shift."""
_WHITE = 0.8
"""Mean square of the frequency of a layer over that of white noise, from which it is the camera's: what is blurred by
half a pixel has less."""
_COARSE = 0.4
"""Square of radians per pixel, up to which most of a further layer is expected."""

Complex = NDArray[np.complex128]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Motions:
    """Shifts (2,) of scene and layer, and their shares (rings,) of the power."""

    d: Floats
    e: Floats
    s: Floats
    p: Floats


class View(NamedTuple):
    """What cells show by some motions."""

    at: Motions
    scene: Complex
    layer: Complex
    """(n,) phases of both."""
    coherence: Complex
    incoherent: Floats
    left: Floats
    """(n,) what coherence leaves of the powers found."""
    cost: Floats
    """(rings,) minus the logarithm of the likelihood."""


@dataclass(frozen=True)
class Fit:
    """The likeliest motions."""

    at: Motions
    cost: Floats
    """(rings,)"""
    variance: Floats
    """Of the shifts that were free: of scene, or of scene and layer."""
    scatter: float
    """Variance of what both leave over that of noise: more where something else differs."""


@dataclass(frozen=True)
class PairCells:
    """Cells (n,) of the frequency plane of two images."""

    power: Floats
    cross: Complex
    """Turned back by `start`."""
    values: Floats
    """Independent ones of a cell."""
    k: Floats
    """(2, n)"""
    ring: NDArray[np.intp]
    place: NDArray[np.intp]
    """On the lattice of cells."""
    start: Floats
    padded: tuple[int, int]
    density: Floats
    """(rings,) of power."""

    @classmethod
    def of(cls, images: Array, start: Floats) -> Self:
        """Of float images (2, h, w) under windows at a shift (2,)."""
        shape = int(images.shape[1]), int(images.shape[2])
        lattice = lattice_of(*shape)
        inside = slice(lattice.starts[1], lattice.starts[_LAST + 1])
        sums = sums_over_cells(images[:1], images[1:], start[None], lattice, _RISE * min(shape))
        left, right, cross = (to_host(each)[0, inside] for each in sums)
        ring, k = lattice.ring[inside] - 1, np.stack([lattice.y[inside], lattice.x[inside]])
        # Of a cell that is empty single precision knows no more.
        left, right = (np.maximum(each, _EMPTY * max(each.max(), 1e-99)) for each in (left, right))
        a, b = (np.bincount(ring, each) / np.bincount(ring) for each in (left, right))
        # Where power falls steeply a cell lies nearer to the middle, and holds fewer values.
        side = 2 * np.pi / CELLS
        falls = np.gradient(np.log(a * b) / 2, side)[ring]
        spread = side**2 / 12 * (1 - (CELLS / np.array(lattice.shape)[:, None]) ** 2)
        values = _HOLDS**2 * shape[0] * shape[1] / CELLS**2 / (1 + spread.mean() * falls**2)
        k = k + spread * falls * k / np.hypot(*k)
        power, cross = values * (left / a[ring] + right / b[ring]), values * cross / np.sqrt(a * b)[ring]
        return cls(power, cross, values, k, ring, lattice.order[inside], start, lattice.shape, np.sqrt(a * b))

    def only(self, rings: NDArray[np.bool_]) -> Self:
        """Cells of some rings."""
        kept = rings[self.ring]
        of_all = {name: getattr(self, name)[..., kept] for name in ("power", "cross", "values", "k", "place")}
        return replace(self, ring=np.cumsum(rings)[self.ring[kept]] - 1, density=self.density[rings], **of_all)

    def coherent(self, shift: Floats) -> Floats:
        """Share (rings,) of the power that moves by a shift."""
        of_rings = self._sums(np.stack([(self._phase(shift).conj() * self.cross).real, self.values]))
        return np.asarray(np.clip(of_rings[0] / of_rings[1], 0.01, 0.95))

    def begun(self, shift: Floats) -> Motions:
        """A scene that moves by a shift, and a layer that stands still, as far as each is coherent."""
        shares = np.stack([self.coherent(shift), self.coherent(np.zeros(2))])
        return Motions(shift, np.zeros(2), *(shares / np.maximum(shares.sum(axis=0) / _FULL, 1)))

    def both(self, *shifts: Floats) -> Fit:
        """Two layers, from the likelier one of shifts to begin with."""
        return min((self.fit(self.begun(shift)) for shift in shifts), key=lambda fit: fit.cost.sum())

    def settled(self, fit: Fit) -> tuple[Self, Fit]:
        """Two layers by the rings that show more than noise."""
        noise = self._sums(2 * self.values * np.log(self.power))
        gain = noise - fit.cost
        shown = gain >= min(gain.max(), scipy.special.gammainccinv(1, _OF_NOISE))
        cells = self.only(shown)
        return cells, cells.fit(replace(fit.at, s=fit.at.s[shown], p=fit.at.p[shown]))

    def alone(self, shift: Floats) -> Fit:
        """One layer, that moves by about a shift."""
        share = self.coherent(shift)
        return self.fit(Motions(shift, np.zeros(2), share, np.zeros_like(share)), layer=False)

    def fit(self, begin: Motions, *, layer: bool = True, moves: bool = False) -> Fit:
        """Find the likeliest motions from some to begin with: with a `layer`, which `moves`, or without."""
        view, damping = self.view(begin), 1e-3
        slopes, matrix, score = self.normal(view, layer=layer, moves=moves)
        for _ in range(_STEPS):
            trial = self.view(_stepped(view.at, slopes, matrix, damping))
            gain = float((view.cost - trial.cost).sum())
            if gain < 0:
                damping *= 10
                continue
            view, damping = trial, max(damping / 10, 1e-9)
            slopes, matrix, score = self.normal(view, layer=layer, moves=moves)
            if gain < _SETTLED:
                break
        scatter = max(1.0, float((score**2).sum()) / max(score.size - slopes.size, 1))
        return Fit(view.at, view.cost, np.diag(_inverse(matrix, 1 + layer, 0.0)[1]), scatter)

    def beside(self, at: Motions) -> Floats:
        """Shift (2,) at which a further layer shows most, to a pixel."""
        view = self.view(at)
        plane = np.zeros((CELLS, CELLS), dtype=complex)
        weight = self.values / (1 + (self.k**2).sum(axis=0) / _COARSE)
        more = 2 * self.cross / view.left - view.coherence / view.incoherent
        plane[np.divmod(self.place, CELLS // 2)] = weight * more
        lags = np.fft.fftfreq(CELLS, 1 / CELLS)
        # The middle of a cell is half of one from where it begins, but for half a frequency.
        half = [np.exp(-1j * np.pi * lags * (1 / CELLS - 1 / size)) for size in self.padded]
        shown = (np.fft.fft2(plane) * half[0][:, None] * half[1]).real
        return self.start + lags[list(np.unravel_index(shown.argmax(), shown.shape))]

    def strength(self, at: Motions) -> float:
        """Share of the layer over that of the scene."""
        scene, layer = (float(np.bincount(self.ring) @ share) for share in (at.s, at.p))
        return layer / max(scene, 1e-300)

    def is_white(self, shares: Floats) -> bool:
        """Whether a layer of such shares (rings,) is as strong at fine frequencies as at coarse ones."""
        squares = (self.k**2).sum(axis=0)
        power = (shares * self.density)[self.ring]
        return bool((power @ squares) / power.sum() > _WHITE * squares.mean())

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        return np.flatnonzero(np.diff(self.ring, prepend=-1))

    def _sums(self, values: Floats) -> Floats:
        """Over rings."""
        return np.asarray(np.add.reduceat(values, self._starts, axis=-1))

    def _phase(self, shift: Floats) -> NDArray[np.complex128]:
        return np.asarray(np.exp(1j * ((shift - self.start) @ self.k)))

    @cached_property
    def _still(self) -> NDArray[np.complex128]:
        return self._phase(np.zeros(2))

    def view(self, at: Motions) -> View:
        """Show what is left by motions, and how likely they are."""
        scene, layer = self._phase(at.d), self._phase(at.e) if at.e.any() else self._still
        c = at.s[self.ring] * scene + at.p[self.ring] * layer
        incoherent = 1 - (c.real**2 + c.imag**2)
        left = self.power - 2 * (c.real * self.cross.real + c.imag * self.cross.imag)
        cost = self._sums(self.values * (2 * np.log(left) - np.log(incoherent)))
        return View(at, scene, layer, c, incoherent, left, cost)

    def normal(self, view: View, *, layer: bool, moves: bool) -> tuple[Floats, Floats, Floats]:
        """Slopes (a, rings) of the cost along shares and shifts, their matrices (a, a, rings); scores (2, n)."""
        at, c = view.at, view.coherence
        # Shares of nothing grow along the scene: a ring that begins without either is not left so.
        along = np.where(c == 0, view.scene.conj(), c.conj() / np.maximum(np.abs(c), 1e-300))
        ways = [view.scene, *([view.layer] if layer else []), *(1j * self.k * (at.s[self.ring] * view.scene))]
        ways += [*(1j * self.k * (at.p[self.ring] * view.layer))] if moves else []
        turned = along * np.array(ways)
        # In units of their standard deviations.
        unit = np.sqrt(2 * self.values) / np.array([view.incoherent, np.sqrt(view.incoherent)])
        score = 2 * along * self.values * (c / view.incoherent - 2 * self.cross / view.left)
        score = np.array([score.real, score.imag]) / unit
        slopes = np.stack([turned.real, turned.imag], axis=1) * unit
        matrix = np.einsum("aij,bij->abj", slopes, slopes)
        return self._sums((slopes * score).sum(axis=1)), self._sums(matrix), score


def _stepped(at: Motions, slopes: Floats, matrix: Floats, damping: float) -> Motions:
    """One step of Gauss and Newton (Levenberg, Marquardt) from motions, with these slopes and their matrix."""
    layer = len(slopes) % 2 == 0
    by, inverse, own = _inverse(matrix, 1 + layer, damping)
    of_rings = np.einsum("rij,jr->ri", own, slopes[: 1 + layer])
    step = np.clip(
        -inverse @ (slopes[1 + layer :].sum(axis=1) - np.einsum("rij,ir->j", by, slopes[: 1 + layer])),
        -_LONGEST,
        _LONGEST,
    )
    shares = np.array([at.s, at.p])
    shares[: 1 + layer] -= (of_rings + by @ step).T
    shares = np.clip(shares, 0, _FULL)
    shares /= np.maximum(shares.sum(axis=0) / _FULL, 1)
    return Motions(at.d + step[:2], at.e + (step[2:] if step.size > 2 else 0), *shares)


def _inverse(matrix: Floats, shares: int, damping: float) -> tuple[Floats, Floats, Floats]:
    """Of normal equations (a, a, rings), the first of which are of each ring's own unknowns, and eliminated."""
    damped = matrix + np.eye(len(matrix))[..., None] * (matrix * (damping + _RIDGE) + _RIDGE)
    own = np.linalg.inv(damped[:shares, :shares].transpose(2, 0, 1))
    by = own @ damped[:shares, shares:].transpose(2, 0, 1)
    schur = damped[shares:, shares:].sum(axis=-1) - np.einsum("ijr,rik->jk", damped[:shares, shares:], by)
    return by, np.asarray(np.linalg.inv(schur), np.float64), np.asarray(own, np.float64)


@dataclass(frozen=True)
class OverStillLayer:
    """What two images say of a scene, and of a layer, one of which stands still."""

    shift: Floats
    """(2,) of the scene."""
    sigma: Floats
    """(2,) standard errors; infinite where it is open which of both is the scene."""
    strength: float
    """Share of the still layer over that of the scene."""
    moving: Floats
    """(2,) of what moves, be it the scene or not."""


def over_still_layer(images: Array, shift: Floats, sigma: Floats) -> OverStillLayer | None:
    """Tell the scene of two float images from a layer that stands still.

    None where there is none, or where it does not bend the shift that was measured as if there were none.
    """
    bins = 2 if min(images.shape[1:]) >= BINNED_FROM else 1
    coarse = binned(images) if bins > 1 else images
    cells = PairCells.of(coarse, shift / bins)
    one = cells.alone(shift / bins)
    both = cells.both(one.at.d, cells.beside(one.at))
    if not _is_surer(both, one, len(one.cost) / 2 + 2):
        return None
    cells, both = cells.settled(both)
    one = cells.alone(one.at.d)
    found, unsure = bins * both.at.d, bins * np.sqrt(both.variance * both.scatter)
    past = np.maximum(shift - np.maximum(found, 0), np.minimum(found, 0) - shift)
    is_beyond = (past >= np.maximum(_STILL, _DIFFERS * np.hypot(unsure, sigma))).any()
    if is_beyond or not _is_surer(both, one, len(one.cost) / 2 + 2):
        return None
    free = cells.fit(both.at, moves=True)
    if _is_surer(free, both, 2) and np.abs(free.at.e).max() > _STILL / bins:
        return None
    strength, from_layer, from_scene = cells.strength(both.at), np.hypot(*shift), np.hypot(*(shift - found))
    fills = evenness(coarse[1] - coarse[0]) > _EVEN
    is_scene = fills and (strength < 1 or cells.is_white(both.at.p))
    follows = from_scene >= from_layer and not is_scene
    if follows and (strength < (FAR_STRONGER if fills else _STRONGER) or from_scene < _NEARER * from_layer):
        return OverStillLayer(shift, np.full(2, np.inf), strength, found)
    sure = _is_surer(both, one, len(one.cost) / 2 + 2, CELLS**2)
    cells = PairCells.of(images, np.zeros(2) if follows else found)
    cells, both = cells.settled(cells.both(found))
    if follows:
        both, strength = cells.fit(both.at, moves=True), 1 / strength
    own = both.at.e if follows else both.at.d
    variance, differs = both.variance[-2:] * both.scatter, (own - shift) ** 2
    bends = follows or (differs > _DIFFERS**2 * (variance + sigma**2)).any() or variance.max() < (sigma**2).max()
    return OverStillLayer(own, np.sqrt(variance + (0 if sure else differs)), strength, both.at.d) if bends else None


def _is_surer(more: Fit, less: Fit, unknowns: float, tried: float = 1) -> bool:
    """Whether motions are likelier than others by more than so many unknowns more make them by chance."""
    gain = float(less.cost.sum() - more.cost.sum())
    return bool(gain > scipy.special.gammainccinv(unknowns / 2, _BY_CHANCE / tried) * more.scatter)
