"""The widget *Align a layer*."""

import threading
from collections.abc import Callable
from typing import Any, get_args

from xcorr_app.napari.align import MOTIONS, CancelledError, Result, measure, move, steps, track
from xcorr_app.registration.moving.apply import Border
from xcorr_app.registration.moving.interpolation import OrderName
from xcorr_app.registration.reference.reference_names import REFERENCES
from xcorr_app.registration.results.result_display import columns_of

NO_LAYER = "there is no image layer: open or drop a stack first"


def align_widget(napari_viewer: Any) -> Any:
    """Make the widget for a viewer, which napari hands over under this name; magicgui is a part of napari."""
    from magicgui import widgets
    from napari.layers import Image, Labels
    from napari.qt.threading import thread_worker

    def layers(*kinds: type) -> Callable[[Any], list[Any]]:
        return lambda _: [layer for layer in napari_viewer.layers if isinstance(layer, kinds)]

    def choice(label: str, choices: Any, **more: Any) -> Any:
        return widgets.ComboBox(choices=choices, label=label, **more)

    layer = choice("layer", layers(Image))
    max_shift = widgets.FloatSpinBox(value=20, min=1, max=10_000, label="max_shift (px)")
    reference = choice("reference", REFERENCES)
    motion = choice("motion", MOTIONS)
    channel = widgets.SpinBox(value=-1, min=-1, max=1000, label="channel (-1: mean)")
    mask = choice("mask", layers(Labels, Image), nullable=True)
    device = choice("device", ("auto", "cpu", "cuda"))
    interpolation = choice("interpolation", get_args(OrderName), value="linear")
    border = choice("border", get_args(Border))
    align = widgets.PushButton(text="Align")
    cancel = widgets.PushButton(text="Cancel", enabled=False)
    bar = widgets.ProgressBar(value=0, min=0, max=1, label="progress")
    status = widgets.Label(value="")
    table = widgets.Table(value={"frame": []})
    other = choice("other layer", layers(Image))
    apply = widgets.PushButton(text="Apply to layer", enabled=False)
    found: list[Result] = []
    stop = threading.Event()

    def run(source: Any, call: Callable[[Any], tuple[Result, Any]]) -> None:
        """Work in a thread; what comes of it is shown in that of the window."""

        def on_progress(progress: tuple[str, int, int]) -> None:
            status.value, bar.max, bar.value = f"{progress[0]} ...", max(progress[2], 1), progress[1]

        def on_end(text: str) -> None:
            status.value, align.enabled, cancel.enabled, apply.enabled = text, True, False, bool(found)

        def on_result(both: tuple[Result, Any]) -> None:
            result, moved = both
            if not any(result is each for each in found):
                found[:] = [result]
                table.value = columns_of(result)
                path = track(result, moved.shape)
                napari_viewer.add_tracks(path, name=f"{source.name} drift", scale=(source.scale[0], *source.scale[-2:]))
            about = {"xcorr": {"shifts": result.shifts, "flags": result.flags}}
            look = {"scale": source.scale, "colormap": source.colormap, "metadata": about}
            napari_viewer.add_image(moved, name=f"{source.name} aligned", **look)
            on_end(result.summary())

        stop.clear()
        align.enabled = apply.enabled = False
        cancel.enabled = True
        worker = thread_worker(steps)(call, stop)
        worker.yielded.connect(on_progress)
        worker.returned.connect(on_result)
        worker.errored.connect(lambda error: on_end("cancelled" if isinstance(error, CancelledError) else str(error)))
        worker.start()

    def on_align() -> None:
        if layer.value is None:
            status.value = NO_LAYER
            return
        data, how = layer.value.data, (interpolation.value, border.value)
        asked = {"max_shift": max_shift.value, "reference": reference.value, "motion": motion.value}
        asked |= {"channel": None if channel.value < 0 else channel.value, "device": device.value}
        asked |= {"mask": None if mask.value is None else mask.value.data}

        def call(progress: Any) -> tuple[Result, Any]:
            result = measure(data, **asked, progress=progress)
            progress("move", 0, 1)
            return result, move(data, result, *how)

        run(layer.value, call)

    def on_apply() -> None:
        if other.value is None:
            status.value = NO_LAYER
            return
        data, result, how = other.value.data, found[-1], (interpolation.value, border.value)
        run(other.value, lambda _: (result, move(data, result, *how)))

    align.changed.connect(on_align)
    cancel.changed.connect(lambda: stop.set())
    apply.changed.connect(on_apply)
    asked_for = [layer, max_shift, reference, motion, channel, mask, device, interpolation, border]
    panel = widgets.Container(widgets=[*asked_for, align, cancel, bar, status, table, other, apply])
    napari_viewer.layers.events.inserted.connect(lambda _: panel.reset_choices())
    napari_viewer.layers.events.removed.connect(lambda _: panel.reset_choices())
    return panel
