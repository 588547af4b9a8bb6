"""What results show of themselves: a line of words, a table for notebooks, a drawing, a length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.registration.quality import is_trusted
from xcorr_app.shown import axes_of, html_table


class FrameResult:
    """What results with shifts, standard errors, scores and flags of frames have in common."""

    def __len__(self: Any) -> int:
        return len(self.flags)

    def __repr__(self: Any) -> str:
        return f"{type(self).__name__}({self.summary()})"

    def _repr_html_(self: Any) -> str:
        return html_table(repr(self), columns_of(self))

    @property
    def trusted(self: Any) -> NDArray[np.bool_]:
        """(T,) whether a frame was found and nothing speaks against it; a low score alone does not."""
        found = np.isfinite(self.shifts).all(axis=1)
        return np.asarray(found & np.array([is_trusted(flags) for flags in self.flags], dtype=bool))

    def summary(self: Any) -> str:
        """Say in a line how many frames can be trusted, how far these moved, and how certain that is."""
        frames, known, sigma = len(self.flags), self.shifts[self.trusted], self.sigma[self.trusted]
        parts = [f"{frames} frame{'' if frames == 1 else 's'}, {len(known) or 'none'} trusted"]
        if known.size:
            parts.append(f"largest shift {np.hypot(*known.T).max():.2f} px")
        if np.isfinite(sigma).any():
            parts.append(f"median standard error {np.median(sigma[np.isfinite(sigma)]):.3f} px")
        return ", ".join(parts)

    def plot(self: Any, axes: Any = None) -> Any:
        """Draw shifts with their standard errors over the frames, those not to be trusted in red.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; without, in a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        axes, frames, doubtful = axes_of(axes), np.arange(len(self.flags)), ~self.trusted
        for axis, name, of_doubtful in ((0, "dy", None), (1, "dx", "doubtful" if doubtful.any() else None)):
            shift, sigma = self.shifts[:, axis], np.where(np.isfinite(self.sigma[:, axis]), self.sigma[:, axis], 0)
            axes.plot(frames, shift, color=f"C{axis}", label=name)
            axes.fill_between(frames, shift - sigma, shift + sigma, color=f"C{axis}", alpha=0.3, linewidth=0)
            axes.plot(frames[doubtful], shift[doubtful], "o", color="red", label=of_doubtful)
        axes.set(xlabel="frame", ylabel="shift (pixels)")
        axes.legend()
        return axes


def columns_of(result: Any) -> dict[str, list[str]]:
    """Write a line for each frame, by columns: shift, standard error, angle and scale where there are, score, flags."""
    numbers = {"dy": result.shifts[:, 0], "dx": result.shifts[:, 1]}
    numbers |= {"sigma y": result.sigma[:, 0], "sigma x": result.sigma[:, 1]}
    numbers |= {name: getattr(result, name) for name in ("angle", "scale", "score") if hasattr(result, name)}
    columns = {name: [f"{value:.3f}" for value in np.round(values, 3) + 0.0] for name, values in numbers.items()}
    frames = [str(frame) for frame in range(len(result.flags))]
    return {"frame": frames, **columns, "flags": [", ".join(each) for each in result.flags]}
