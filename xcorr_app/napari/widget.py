"""The widget *Align a layer*."""

from __future__ import annotations

from typing import Any

from xcorr_app.errors import XcorrError
from xcorr_app.napari.align import HEADINGS, measure, move, rows, summary

NO_LAYER = "there is no image layer: open or drop a stack first"


def align_widget(napari_viewer: Any) -> Any:
    """Make the widget for a viewer, which napari hands over under this name; magicgui is a part of napari."""
    from magicgui import widgets
    from napari.layers import Image

    def images(_: Any) -> list[Any]:
        return [layer for layer in napari_viewer.layers if isinstance(layer, Image)]

    layer = widgets.ComboBox(choices=images, label="layer")
    max_shift = widgets.FloatSpinBox(value=20, min=1, max=10_000, label="max shift (px)")
    reference = widgets.ComboBox(choices=("first", "last", "mean", "median", "template", "previous"), label="reference")
    align = widgets.PushButton(text="Align")
    said = widgets.Label(value="")
    table = widgets.Table(value={heading: [] for heading in HEADINGS})
    other = widgets.ComboBox(choices=images, label="other layer")
    apply = widgets.PushButton(text="Apply to layer", enabled=False)
    found: list[Any] = []

    def add(source: Any) -> None:
        moved = move(source.data, found[-1])
        napari_viewer.add_image(moved, name=f"{source.name} aligned", scale=source.scale, colormap=source.colormap)

    def on_align() -> None:
        if layer.value is None:
            said.value = NO_LAYER
            return
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
        if other.value is None:
            said.value = NO_LAYER
            return
        try:
            add(other.value)
        except XcorrError as error:
            said.value = str(error)

    align.changed.connect(on_align)
    apply.changed.connect(on_apply)
    panel = widgets.Container(widgets=[layer, max_shift, reference, align, said, table, other, apply])
    napari_viewer.layers.events.inserted.connect(lambda _: panel.reset_choices())
    napari_viewer.layers.events.removed.connect(lambda _: panel.reset_choices())
    return panel
