"""The plug-in: its manifest, its reader and what its buttons do; the widget itself where napari is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import DRIFT, align, movie, write_movie
from tests.conftest import ROOT
from xcorr_app.errors import ShapeError
from xcorr_app.napari.align import HEADINGS, measure, move, rows, summary
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
    assert summary(result).startswith("4 of 4 frames trusted, largest shift 3.61 px, median standard error 0.0")
    lines = rows(result)
    assert [len(line) for line in lines] == [len(HEADINGS)] * 4
    assert [float(line[1]) for line in lines] == pytest.approx([dy for dy, _ in DRIFT], abs=0.05)


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


def test_without_a_layer_the_widget_says_so(monkeypatch):
    """With stand-ins of napari and magicgui that have what the widget asks of them."""

    class Widget:
        def __init__(self, *, value=None, choices=None, widgets=(), **_):
            self.value, self.widgets, self.enabled, self.connected = value, list(widgets), False, []
            self.changed = SimpleNamespace(connect=self.connected.append)
            if callable(choices):
                assert choices(self) == []

        def press(self):
            for each in self.connected:
                each()

    names = ("ComboBox", "FloatSpinBox", "PushButton", "Label", "Table", "Container")
    monkeypatch.setitem(
        sys.modules, "magicgui", SimpleNamespace(widgets=SimpleNamespace(**dict.fromkeys(names, Widget)))
    )
    monkeypatch.setitem(sys.modules, "napari", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "napari.layers", SimpleNamespace(Image=type("Image", (), {})))

    class Layers(list):
        events = SimpleNamespace(inserted=Widget().changed, removed=Widget().changed)

    panel = align_widget(SimpleNamespace(layers=Layers(["no image"])))
    said = panel.widgets[4]
    for button in (panel.widgets[3], panel.widgets[7]):
        said.value = ""
        button.press()
        assert said.value == NO_LAYER == "there is no image layer: open or drop a stack first"


def test_the_widget_aligns_the_chosen_layer_and_others(monkeypatch):
    """On napari's model of a viewer, without the window, which would need OpenGL."""
    components = pytest.importorskip("napari.components")
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    from qtpy.QtWidgets import QApplication

    application = QApplication.instance() or QApplication([])
    viewer = components.ViewerModel()
    panel = align_widget(viewer)
    viewer.add_image(movie(), name="green")
    viewer.add_image(movie(seed=2), name="red")
    panel[0].value, panel[1].value = viewer.layers["green"], 8
    panel[3].changed.emit(True)
    expected = measure(movie(), max_shift=8)
    assert panel[4].value == summary(expected)
    np.testing.assert_array_equal(viewer.layers["green aligned"].data, move(movie(), expected))
    assert panel[5].shape == (4, len(HEADINGS))
    panel[6].value = viewer.layers["red"]
    panel[7].changed.emit(True)
    np.testing.assert_array_equal(viewer.layers["red aligned"].data, move(movie(seed=2), expected))
    application.processEvents()
