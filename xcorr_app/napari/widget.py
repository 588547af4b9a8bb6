"""The widget *Align a layer*."""

from __future__ import annotations

from typing import Any

from xcorr_app.errors import XcorrError
from xcorr_app.napari.align import HEADINGS, measure, move, rows, summary


def align_widget() -> Any:
    """Make the widget; needs napari, of which magicgui is a part."""
    from magicgui import widgets
    from napari import current_viewer

    layer = widgets.create_widget(annotation="napari.layers.Image", label="layer")
    max_shift = widgets.FloatSpinBox(value=20, min=1, max=10_000, label="max shift (px)")
    reference = widgets.ComboBox(choices=("first", "last", "mean", "median", "template", "previous"), label="reference")
    align = widgets.PushButton(text="Align")
    said = widgets.Label(value="")
    table = widgets.Table(value={heading: [] for heading in HEADINGS})
    other = widgets.create_widget(annotation="napari.layers.Image", label="other layer")
    apply = widgets.PushButton(text="Apply to layer", enabled=False)
    found: list[Any] = []

    def add(source: Any) -> None:
        viewer = current_viewer()
        moved = move(source.data, found[-1])
        viewer.add_image(moved, name=f"{source.name} aligned", scale=source.scale, colormap=source.colormap)

    def on_align() -> None:
        try:
            found.append(measure(layer.value.data, max_shift=max_shift.value, reference=reference.value))
            add(layer.value)
        except XcorrError as error:
            said.value = str(error)
            return
        said.value = summary(found[-1])
        table.value = {
            heading: list(column) for heading, column in zip(HEADINGS, zip(*rows(found[-1]), strict=True), strict=True)
        }
        apply.enabled = True

    def on_apply() -> None:
        try:
            add(other.value)
        except XcorrError as error:
            said.value = str(error)

    align.changed.connect(on_align)
    apply.changed.connect(on_apply)
    return widgets.Container(widgets=[layer, max_shift, reference, align, said, table, other, apply])
