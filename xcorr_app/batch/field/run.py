"""A run of ``xcorr field``: the displacement between the images of every series found, on a grid."""

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames, frames_of
from xcorr_app.batch.field.options import FieldOptions
from xcorr_app.decision import Decision
from xcorr_app.errors import InputError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.io import Discovery, SeriesSpec, make_folder, read_stack
from xcorr_app.io.series import joined_frames
from xcorr_app.io.writing.atomic import atomic_write_bytes
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import Facts, StackResult, Work
from xcorr_app.registration.field.displacement_field import displacement_field
from xcorr_app.registration.field.field_files import ENDINGS
from xcorr_app.registration.field.measured_field import DisplacementField

_INCHES = 7.0


def pictures_of(field: DisplacementField, kind: str) -> dict[str, bytes]:
    """Draw a field as ``png`` or ``svg``; the pictures by the names they have in files."""
    strain = field.strain
    size = np.hypot(field.displacement[..., 0], field.displacement[..., 1])
    maps = {
        "magnitude": (size, "displacement (pixels)", "viridis"),
        "strain_yy": (strain[..., 0], "strain along rows", "RdBu_r"),
        "strain_xx": (strain[..., 1], "strain along columns", "RdBu_r"),
        "strain_xy": (strain[..., 2], "shear strain", "RdBu_r"),
        "vorticity": (field.vorticity, "vorticity, clockwise positive", "RdBu_r"),
    }
    drawn = {"quiver": _drawn(field, kind, partial(_quiver, field, size))}
    for name, (values, title, colours) in maps.items():
        drawn[name] = _drawn(field, kind, partial(_map, field, values, title, colours))
    return drawn


def _drawn(field: DisplacementField, kind: str, draw: Callable[[Figure, Axes], None]) -> bytes:
    height, width = (float(np.ptp(axis)) + 1 for axis in (field.rows, field.columns))
    figure = Figure(figsize=(_INCHES, float(np.clip(_INCHES * height / width, 2.0, 12.0))), dpi=120, layout="tight")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    draw(figure, axes)
    axes.set_xlabel("column (pixels)")
    axes.set_ylabel("row (pixels)")
    axes.set_aspect("equal")
    content = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    # Names within an SVG come from a salt: without one of its own they differ from run to run.
    with rc_context({"svg.hashsalt": "xcorr"}):
        figure.savefig(content, format=kind, metadata=metadata)
    return content.getvalue()


def _quiver(field: DisplacementField, size: NDArray[np.float64], _figure: Figure, axes: Axes) -> None:
    field.plot(axes)
    largest = float(np.nanmax(size)) if np.isfinite(size).any() else 0.0
    axes.set_title(f"displacement, at most {largest:.3g} pixels; red: replaced by what the neighbours say", fontsize=9)


def _map(
    field: DisplacementField, values: NDArray[np.float64], title: str, colours: str, figure: Figure, axes: Axes
) -> None:
    limits: dict[str, Any] = {}
    known = np.abs(values[np.isfinite(values)])
    if colours == "RdBu_r" and known.size:
        # A few wild points would leave the rest without colour.
        largest = max(float(np.percentile(known, 99)), 1e-12)
        limits = {"vmin": -largest, "vmax": largest}
    half = [float(np.diff(axis).mean()) / 2 if axis.size > 1 else 0.5 for axis in (field.rows, field.columns)]
    extent = (
        field.columns[0] - half[1],
        field.columns[-1] + half[1],
        field.rows[-1] + half[0],
        field.rows[0] - half[0],
    )
    image = axes.imshow(values, cmap=colours, extent=extent, interpolation="nearest", **limits)
    figure.colorbar(image, ax=axes, shrink=0.8)
    axes.set_title(title, fontsize=9)


_MAX_REPLACED = 0.5
"""Share of replaced vectors above which a field counts as failed."""


class Fields(Work[FieldOptions]):
    """Measures the fields of stacks."""

    program = "xcorr field"
    less_memory = "give a larger --step, or use a machine with more"

    @cached_property
    def _counted(self) -> Array | None:
        return None if self.options.mask is None else _mask(self.options.mask)

    @classmethod
    def found(cls, inputs: Sequence[Path], options: FieldOptions) -> Discovery:
        """Two images A and B in the order in which they were named, which their names need not sort into; or stacks."""
        if len(inputs) != 2 or any(path.is_dir() for path in inputs):
            return super().found(inputs, options)
        series = [each for path in inputs for each in super(Fields, cls).found([path], options).series]
        sizes = [each.open().metadata.sizes for each in series]
        if len(series) != 2 or any(size["T"] * size["Z"] > 1 for size in sizes):
            return super().found(inputs, options)
        return Discovery("frames", [replace(each, name=series[1].name) for each in series], ())

    def checked(self) -> Self:
        """Refuse a mask that is none, and let two images be the frames of one stack."""
        _ = self._counted
        pair = self.discovery.series
        if len({spec.name for spec in pair}) == len(pair):  # no two images that are to become one stack
            return self
        return replace(self, discovery=Discovery("frames", (joined_frames(pair, pair[-1].name),), ()))

    def outputs(self, name: str) -> list[Path]:
        """See `Work`."""
        return sorted((self.out / name).glob("field*"))

    def decide(self, spec: SeriesSpec) -> Decision:
        """See `Work`."""
        engine = "fft" if self.device.xp is np else "auto"
        return Decision(engine, reason="the windows of a pass are correlated together")

    def process(self, spec: SeriesSpec, resources: StackResources, opened: None) -> StackResult:
        """See `Work`."""
        options, folder = self.options, self.out / spec.name
        outputs: list[Path] = []
        fields: list[Facts] = []
        with resources.open(spec.open()) as source:
            frames = frames_of(source, options, self.device.xp)
            if frames.count < 2:
                raise InputError(
                    f"{spec.paths[0]}: holds one image: a displacement needs two, as two files or a stack of frames"
                )
            make_folder(folder)
            first = _frame(frames, 0)
            for t in range(1, frames.count):
                second = _frame(frames, t)
                with resources.step("measure"):
                    found = self._measured(first, second)
                with resources.step("write"):
                    outputs += self._written(found, folder / ("field" if frames.count == 2 else f"field_{t:04d}"))
                fields.append(_facts(found, t))
                if options.reference == "previous":
                    first = second
                if resources.progress is not None:
                    resources.progress("measure", t, frames.count - 1)
        notes = [*spec.notes, *resources.notes]
        notes += [f"frame {fact['frame']}: {note}" for fact in fields for note in fact.pop("notes")]
        facts = {
            "fields": len(fields),
            "grid": fields[0]["grid"],
            "replaced": float(np.mean([fact["replaced"] for fact in fields])),
            "largest_displacement_px": max(fact["largest_displacement_px"] for fact in fields),
            "median_sigma_px": float(np.median([fact["median_sigma_px"] for fact in fields])),
            "frames": fields,
            "notes": notes,
        }
        return StackResult(facts, outputs, facts)

    def is_flagged(self, result: Facts) -> bool:
        """See `Work`."""
        return bool(result["replaced"] > _MAX_REPLACED)

    def _measured(self, first: Array, second: Array) -> DisplacementField:
        options = self.options
        return displacement_field(
            first,
            second,
            options.window,
            options.step,
            options.passes,
            max_displacement=options.max_displacement,
            median_threshold=options.median_threshold,
            mask=self._counted,
            refine=options.refine,
        )

    def _written(self, found: DisplacementField, base: Path) -> list[Path]:
        written = [base.with_name(f"{base.name}{ENDINGS[kind]}") for kind in self.options.formats]
        for path in written:
            found.save(path)
        if self.options.pictures != "none":
            for name, content in pictures_of(found, self.options.pictures).items():
                path = base.with_name(f"{base.name}_{name}.{self.options.pictures}")
                atomic_write_bytes(path, content)
                written.append(path)
        return written


def _frame(frames: SourceFrames, number: int) -> Array:
    chunk = frames.read(number, number + 1)
    if chunk.unreadable:
        raise InputError(f"frame {number} cannot be read: {chunk.unreadable[number]}")
    return chunk.frames[0]


def _mask(path: Path) -> Array:
    """A mask (Y, X) from an image file: nonzero where pixels count."""
    data = read_stack(path).data.squeeze()
    if data.ndim != 2:
        raise InputError(f"{path}: has shape {data.shape}: a mask is one image of rows and columns")
    return data != 0


def _facts(found: DisplacementField, frame: int) -> Facts:
    measured = ~found.masked
    size = np.hypot(found.displacement[..., 0], found.displacement[..., 1])[measured]
    sigma = found.sigma[np.isfinite(found.sigma)]
    return {
        "frame": frame,
        "grid": list(found.masked.shape),
        "replaced": float(found.replaced[measured].mean()) if measured.any() else 0.0,
        "masked": float(found.masked.mean()),
        "largest_displacement_px": round(float(size.max()), 6) if size.size else 0.0,
        "median_sigma_px": round(float(np.median(sigma)), 6) if sigma.size else 0.0,
        "notes": list(found.notes),
    }
