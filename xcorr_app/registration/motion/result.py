"""What a measurement of motion returns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.arguments import renamed
from xcorr_app.arrays.kinds import as_array, labelled_like
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.moving.interpolation import Order, OrderName, order_of
from xcorr_app.registration.quality import UNCERTAIN
from xcorr_app.registration.results.doubtful_frames import DEFAULT_POLICY, between, check_policy, stays
from xcorr_app.registration.results.result_display import FrameResult
from xcorr_app.registration.results.result_files import archive_of, load_archive, write_whole
from xcorr_app.registration.solver.basis import corner_moves
from xcorr_app.registration.warping.field import Field
from xcorr_app.registration.warping.matrices import about_corner, about_middle, angle_of, scale_of, turned
from xcorr_app.registration.warping.warp import Mode, in_threads, warp_by_fields, warp_frames

if TYPE_CHECKING:
    from skimage.transform import AffineTransform

_COMPACT = ("sigma", "significance")
"""Of a field, kept in float32; what frames are moved by is kept as it is, for the same pixels whoever moves them."""


@dataclass(frozen=True, eq=False, repr=False)
class MotionResult(FrameResult):
    """Motion of every frame of a stack and what can be said about it. Arrays are NumPy arrays with an entry a frame."""

    model: str
    """``translation``, ``rigid``, ``similarity``, ``affine`` or ``patches``."""
    matrices: NDArray[np.float64]
    """(T, 3, 3) homogeneous matrices: from a place (row, column, 1) of the reference to the place in the frame that
    shows the same, pixels counted from the first; NaN where there is none. Of patches, their mean shift."""
    score: NDArray[np.float64]
    """(T,) zero-mean normalised correlation over the overlap, in [-1, 1]."""
    sigma: NDArray[np.float64]
    """(T, 2) standard error of the shift of the frame's middle in pixels; infinite of a fit that has not settled,
    NaN of the frame that is the reference."""
    sigma_angle: NDArray[np.float64]
    """(T,) standard error of the angle in degrees; zero where frames do not turn, NaN of affine motions and of the
    reference frame."""
    overlap: NDArray[np.float64]
    """(T,) share of the reference that the frame shows."""
    flags: tuple[tuple[str, ...], ...]
    """Words that say what is doubtful: the words of :mod:`xcorr_app.registration.quality`."""
    shape: tuple[int, int]
    """Rows and columns of a frame."""
    reference: str
    """What the frames were compared with, in words."""
    unreadable: dict[int, str]
    """Why a frame could not be read, by frame number."""
    notes: tuple[str, ...] = ()
    field: Field | None = None
    """Of patches, the shift at every node of a grid; None of the other models."""
    doubtful: str = DEFAULT_POLICY
    """What becomes of frames of patches that are not trusted where frames are moved: see `applied`."""

    @property
    def shifts(self) -> NDArray[np.float64]:
        """(T, 2) rows, columns in pixels to add to the middle of each frame to land on the reference."""
        return -about_middle(self.matrices, self.shape)[:, :2, 2]

    @property
    def angle(self) -> NDArray[np.float64]:
        """(T,) degrees by which to turn each frame to land on the reference, in (-180, 180].

        From columns towards rows, which is clockwise as displayed: ``skimage.transform.rotate(frame, -angle)``.
        """
        return angle_of(self.matrices)

    @property
    def scale(self) -> NDArray[np.float64]:
        """(T,) factor by which to enlarge each frame to land on the reference."""
        return scale_of(self.matrices)

    @property
    def transforms(self) -> tuple[AffineTransform | None, ...]:
        """What ``skimage.transform.warp`` takes to bring each frame onto the reference; None where nothing is known.

        ``EuclideanTransform`` of translations and rigid motions, ``SimilarityTransform``, ``AffineTransform``; of
        patches, that of their mean shift. They map (x, y), column before row, from the reference to the frame.
        """
        from skimage import transform  # half a second that few calls need

        kinds = {"similarity": transform.SimilarityTransform, "affine": transform.AffineTransform}
        kind = kinds.get(self.model, transform.EuclideanTransform)
        swapped = self.matrices[:, [1, 0, 2]][:, :, [1, 0, 2]]
        return tuple(kind(matrix=matrix) if np.isfinite(matrix).all() else None for matrix in swapped)

    def applied(self, policy: str = DEFAULT_POLICY) -> NDArray[np.float64]:
        """Matrices (T, 3, 3) to warp by, those that are not trusted replaced as `ShiftResult.applied` replaces shifts.

        Between trusted neighbours angle, logarithm of the scale and shift are interpolated, of affine motions the
        elements of the matrix. A motion that is only less sure than was asked stands where it lies farther from that
        than by its own standard error, as what is interpolated is then expected to be off by more.
        """
        known = np.asarray(np.isfinite(self.matrices).all(axis=(1, 2)))
        taken = known if check_policy(policy) == "apply" else self.trusted
        if policy == "drop":
            return np.where(taken[:, None, None], self.matrices, np.nan)
        others = self._replaced(taken, known, policy)
        return others if policy != "interpolate" else self._replaced(taken | self._stand_out(others), known, policy)

    def _stand_out(self, others: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(T,) whether motions, uncertain and no more, are expected to be nearer to the truth than `others`."""
        off = corner_moves(about_middle(self.matrices, self.shape) - about_middle(others, self.shape), self.shape)
        of_angle = np.radians(np.nan_to_num(self.sigma_angle, posinf=np.inf)) * np.hypot(*self.shape) / 2
        # What is expected of off**2 is the sum of the squared errors of the two, of which that of the motion is known.
        nearer = off**2 > 2 * (self.sigma.max(axis=1) ** 2 + of_angle**2)
        return np.asarray(nearer & [flags == (UNCERTAIN,) for flags in self.flags])

    def _replaced(self, taken: NDArray[np.bool_], known: NDArray[np.bool_], policy: str) -> NDArray[np.float64]:
        """Matrices of which those that are `taken` (T,) are as measured, and the others follow from them."""
        if stays(taken, known, policy):
            return np.broadcast_to(np.eye(3), self.matrices.shape).copy()
        if policy == "leave" or not taken.any():
            return np.where(taken[:, None, None], self.matrices, np.eye(3))
        matrices = about_middle(np.where(taken[:, None, None], self.matrices, np.eye(3)), self.shape)
        if self.model == "affine":
            return about_corner(between(matrices, taken), self.shape)
        angle, size = (np.where(taken, each, 0.0) for each in (np.radians(self.angle), np.log(self.scale)))
        angle[taken] = np.unwrap(angle[taken])
        found = turned(between(angle, taken), np.exp(-between(size, taken)))
        found[:, :2, 2] = between(matrices[:, :2, 2], taken)
        return np.where(taken[:, None, None], self.matrices, about_corner(found, self.shape))

    @renamed(order="interpolation", mode="border")
    def apply(
        self,
        stack: Array,
        interpolation: OrderName | Order = "linear",
        border: Mode = "constant",
        cval: float = 0.0,
    ) -> Array:
        """Warp a stack, of this measurement or another channel, onto the reference.

        Parameters
        ----------
        stack : array_like, shape (T, Y, X)
            NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes, with the size of the frames measured.
        interpolation : {'nearest', 'linear', 'cubic', 0, 1, 3}
            Cubic is by splines.
        border : {'constant', 'nearest'}
            What samples from outside the frame become: `cval`, or the nearest pixel.
        cval : float
            In the units of `stack`.

        Returns
        -------
        array
            Shape, type and kind of `stack`; integers are rounded half to even and clipped to their range.

        Raises
        ------
        ShapeError
            There are more or fewer frames than were measured, or frames of another size.
        """
        how: Any = order_of(interpolation)
        given, stack = stack, as_array(stack, "stack")
        if tuple(stack.shape) != (len(self.flags), *self.shape):
            raise ShapeError(
                f"stack has shape {stack.shape}: {len(self.flags)} frames of {self.shape[0]} x {self.shape[1]} "
                "were measured"
            )
        if self.field is None:
            matrices = self.applied()
            moved = in_threads(lambda part: warp_frames(stack[part], matrices[part], how, border, cval), stack)
            return labelled_like(given, moved)
        # The shape is kept, so no frame can be dropped.
        policy = DEFAULT_POLICY if self.doubtful == "drop" else self.doubtful
        fields, nodes = self.field.applied(self.trusted, policy), (self.field.rows, self.field.columns)
        moved = in_threads(lambda part: warp_by_fields(stack[part], fields[part], nodes, how, border, cval), stack)
        return labelled_like(given, moved)

    def save(self, path: Path | str) -> None:
        """Write the result to an ``.npz`` file, which is replaced if it exists.

        Raises
        ------
        ArgumentError
            The name does not end in ``.npz``.
        OutputError
            The file cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() != ".npz":
            raise ArgumentError(f"{path}: motion is written to .npz")
        write_whole(path, self.archive())

    def archive(self) -> bytes:
        """Return what `save` writes; the same result gives the same bytes."""
        of_field = {} if self.field is None else {each.name: getattr(self.field, each.name) for each in fields(Field)}
        single = {f"field_{name}": of_field[name].astype(np.float32) for name in _COMPACT if name in of_field}
        return archive_of(self, {f"field_{name}": array for name, array in of_field.items()} | single)

    @staticmethod
    def load(path: Path | str) -> MotionResult:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            There is no such file.
        DamagedFileError
            It holds no result.
        """
        return load_archive(MotionResult, Path(path), "no motion of a stack", _field_in)


def _field_in(archive: Any) -> dict[str, Any]:
    if "field_shifts" not in archive:
        return {}
    parts = {each.name: archive[f"field_{each.name}"] for each in fields(Field)}
    if len(parts["shifts"]) != len(archive["matrices"]):
        raise ValueError("its arrays are of different lengths")
    return {"field": Field(**parts | {name: parts[name].astype(np.float64) for name in _COMPACT})}
