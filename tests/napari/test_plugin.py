"""The plug-in: its manifest, its reader and what its buttons do."""

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import DRIFT, align, movie, write_movie
from tests.conftest import ROOT
from xcorr_app.errors import ShapeError, XcorrError
from xcorr_app.napari import widget
from xcorr_app.napari.align import CancelledError, measure, move, steps
from xcorr_app.napari.reader import get_reader
from xcorr_app.napari.widget import NO_LAYER, align_widget


def test_the_manifest_is_valid_and_leads_to_functions():
    npe2 = pytest.importorskip("npe2")
    manifest = npe2.PluginManifest.from_file(ROOT / "xcorr_app" / "napari" / "napari.yaml")
    manifest.validate_imports()
    assert {command.id for command in manifest.contributions.commands} == {"xcorr-app.read", "xcorr-app.align"}


def test_a_movie_is_measured_and_moved():
    frames = movie()
    result = measure(frames, max_shift=8)
    np.testing.assert_allclose(result.shifts, DRIFT, atol=0.05)
    np.testing.assert_array_equal(move(frames, result), xc.apply_shifts(frames, result.applied()))
    assert result.summary().startswith("4 frames, 4 trusted, largest shift 3.61 px, median standard error 0.0")


def test_layers_that_are_no_movie_or_another_one_are_refused():
    with pytest.raises(ShapeError, match="no movie"):
        measure(movie()[0], max_shift=8)
    with pytest.raises(ShapeError, match="does not fit 4 measured frames"):
        move(movie()[:3], measure(movie(), max_shift=8))


def test_a_folder_of_results_is_read(tmp_path: Path):
    write_movie(tmp_path / "in" / "m.tif")
    assert align(tmp_path / "in", "-o", tmp_path / "out").code == 0
    for path in (tmp_path / "out", tmp_path / "out" / "run.json"):
        read = get_reader(str(path))
        assert read is not None
        ((data, facts, kind),) = read(str(path))
        np.testing.assert_array_equal(data, xc.read_stack(tmp_path / "out" / "m" / "m_aligned.tif").data)
        assert (facts["name"], kind, facts["scale"]) == ("m", "image", [1.0, 1.0, 1.0])
        shifts = np.asarray(
            getattr(facts["metadata"]["xcorr"]["shifts"], "shifts", facts["metadata"]["xcorr"]["shifts"])
        )
        np.testing.assert_allclose(shifts[:, :2], DRIFT, atol=0.05)
    assert get_reader(str(tmp_path / "in")) is None
    assert get_reader([str(tmp_path / "out")]) is None


def test_channels_are_layers(tmp_path: Path):
    frames = movie()
    stack = np.stack([frames, frames], axis=1)
    xc.write_stack(tmp_path / "m.ome.tif", stack, xc.StackMetadata("TCYX", stack.shape, stack.dtype, "ome"))
    assert align(tmp_path / "m.ome.tif", "-o", tmp_path / "out").code == 0
    read = get_reader(str(tmp_path / "out"))
    assert read is not None
    ((data, facts, _),) = read(str(tmp_path / "out"))
    assert data.shape == stack.shape
    assert facts["channel_axis"] == 1
    assert facts["name"] == ["m 0", "m 1"]
    assert len(facts["scale"]) == 3


class Signal:
    def __init__(self):
        self.connected = []

    def connect(self, call):
        self.connected.append(call)

    def emit(self, *values):
        for each in self.connected:
            each(*values)


class Widget:
    """A stand-in for every widget of magicgui: what the plug-in asks of them."""

    def __init__(self, *, value=None, choices=(), widgets=(), label="", text="", **_):
        self.choices, self.widgets, self.name = choices, list(widgets), label or text
        self.value = value if value is not None or callable(choices) or not choices else choices[0]
        self.enabled, self.changed = True, Signal()


class Worker:
    """As napari's worker of a generator, but at once, in this thread."""

    def __init__(self, run):
        self.run, self.yielded, self.returned, self.errored = run, Signal(), Signal(), Signal()

    def start(self):
        while True:
            try:
                self.yielded.emit(next(self.run))
            except StopIteration as end:
                return self.returned.emit(end.value)
            except (XcorrError, CancelledError) as error:
                return self.errored.emit(error)


class Layer(SimpleNamespace):
    pass


class Viewer:
    def __init__(self, *layers):
        events = SimpleNamespace(inserted=Signal(), removed=Signal())
        self.layers = type("Layers", (list,), {"events": events})(layers)
        self.tracks = {}

    def add_image(self, data, *, name, **about):
        self.layers.append(Layer(data=data, name=name, **about))

    def add_tracks(self, data, *, name, scale):
        self.tracks[name] = data


@pytest.fixture
def panel_of(monkeypatch):
    """The widgets of a viewer by their labels, with stand-ins for napari and magicgui."""
    names = ("ComboBox", "FloatSpinBox", "SpinBox", "PushButton", "ProgressBar", "Label", "Table", "Container")
    widgets = SimpleNamespace(**dict.fromkeys(names, Widget))
    layers = SimpleNamespace(Image=Layer, Labels=Layer)
    threading = SimpleNamespace(thread_worker=lambda run: lambda *given: Worker(run(*given)))
    for name, module in {
        "magicgui": SimpleNamespace(widgets=widgets),
        "napari": SimpleNamespace(),
        "napari.layers": layers,
        "napari.qt": SimpleNamespace(),
        "napari.qt.threading": threading,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)

    def make(viewer):
        parts = align_widget(viewer).widgets
        said, table = (parts[i] for i in (12, 13))
        return {each.name: each for each in parts if each.name} | {"said": said, "table": table}

    return make


def test_without_a_layer_the_widget_says_so(panel_of):
    panel = panel_of(Viewer("no image"))
    for button in ("Align", "Apply to layer"):
        panel["said"].value = ""
        panel[button].changed.emit()
        assert panel["said"].value == NO_LAYER == "there is no image layer: open or drop a stack first"


@pytest.mark.parametrize("motion", ["translation", "rigid"])
def test_the_widget_shows_layers_and_a_table(panel_of, motion):
    image = Layer(data=movie(), name="green", scale=(1, 0.5, 0.5), colormap="green")
    viewer = Viewer(image)
    panel = panel_of(viewer)
    panel["layer"].value, panel["motion"].value, panel["max_shift (px)"].value = image, motion, 8
    panel["border"].value, panel["device"].value = "nearest", "cpu"
    panel["Align"].changed.emit()
    expected = measure(movie(), max_shift=8, motion=motion)
    aligned = viewer.layers[-1]
    assert (aligned.name, aligned.scale, aligned.colormap) == ("green aligned", (1, 0.5, 0.5), "green")
    np.testing.assert_array_equal(aligned.data, move(movie(), expected, border="nearest"))
    np.testing.assert_array_equal(aligned.metadata["xcorr"]["shifts"], expected.shifts)
    path = viewer.tracks["green drift"]
    np.testing.assert_allclose(path[:, 2:], [19.5, 23.5] - expected.shifts)
    assert panel["said"].value == expected.summary()
    assert panel["progress"].value <= panel["progress"].max
    assert [float(each) for each in panel["table"].value["dy"]] == pytest.approx(expected.shifts[:, 0], abs=6e-4)
    assert ("angle" in panel["table"].value) == (motion == "rigid")
    red = Layer(data=movie(seed=2), name="red", scale=(1, 1, 1), colormap="red")
    panel["other layer"].value = red
    panel["Apply to layer"].changed.emit()
    np.testing.assert_array_equal(viewer.layers[-1].data, move(movie(seed=2), expected, border="nearest"))
    assert len(viewer.tracks) == 1


def test_a_mask_and_a_channel_are_taken(panel_of):
    frames = movie()
    both = np.stack([frames[::-1], frames], axis=1)
    image, mask = (Layer(data=data, name="m", scale=(1,) * 4, colormap="") for data in (both, frames[0] > 0))
    panel = panel_of(Viewer(image))
    panel["layer"].value, panel["mask"].value, panel["channel (-1: mean)"].value = image, mask, 1
    panel["Align"].changed.emit()
    expected = xc.estimate_shifts(frames, max_shift=20, mask=frames[0] > 0)
    assert panel["said"].value == expected.summary()
    panel["channel (-1: mean)"].value = 7
    panel["Align"].changed.emit()
    assert "has no channel 7" in panel["said"].value


def test_it_can_be_cancelled(panel_of, monkeypatch):
    image = Layer(data=movie(), name="m", scale=(1, 1, 1), colormap="")
    viewer = Viewer(image)
    panel = panel_of(viewer)
    panel["layer"].value = image

    def slow(data, *, progress, **_):
        progress("measure", 0, 4)
        panel["Cancel"].changed.emit()
        progress("measure", 1, 4)

    monkeypatch.setattr(widget, "measure", slow)
    panel["Align"].changed.emit()
    assert panel["said"].value == "cancelled"
    assert len(viewer.layers) == 1
    assert [panel[name].enabled for name in ("Align", "Cancel", "Apply to layer")] == [True, False, False]


def test_a_call_in_a_thread_tells_how_far_it_is_and_can_be_stopped():
    stop = threading.Event()

    def call(progress):
        assert threading.current_thread() is not threading.main_thread()
        for done in range(100):
            progress("measure", done, 100)
            if done == 3:
                stop.set()
        return "not stopped"

    running = steps(call, stop)
    assert [next(running) for _ in range(4)] == [("measure", done, 100) for done in range(4)]
    with pytest.raises(CancelledError):
        next(running)
    ended = steps(lambda progress: 7, threading.Event())
    with pytest.raises(StopIteration, match="7"):
        next(ended)
    failed = steps(lambda progress: measure(movie()[0], max_shift=8), threading.Event())
    with pytest.raises(ShapeError, match="no movie"):
        next(failed)
