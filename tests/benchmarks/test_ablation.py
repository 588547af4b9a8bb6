"""The plot of the ablation is made from a file of results, today's and that of the command."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.correlation.own_kernels import LEADING
from xcorr_app.gpu.direct.kernel_work import KERNEL_WORK
from xcorr_app.gpu.direct.kernels import KERNELS

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "plot_ablation.py"


@pytest.fixture(scope="module")
def plot():
    specification = importlib.util.spec_from_file_location("plot_ablation", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    sys.modules["plot_ablation"] = module
    specification.loader.exec_module(module)
    return module


def results(path, **microseconds):
    timings = [
        {
            "case": "ablation n-to-m",
            "what": what.replace("_", "-"),
            "microseconds_a_pair": time,
            "fraction_of_fma_rate": 0.1,
            "registers": 40,
        }
        for what, time in microseconds.items()
    ]
    timings.append(dict(timings[0], case="one-to-one", microseconds_a_pair=1.0))
    path.write_text(json.dumps({"timings": timings}))
    return path


def test_steps_are_in_the_order_of_the_design(plot, tmp_path):
    path = results(tmp_path / "r.json", combined=200.0, FFT=3.0, multi_row=None, overlap_wise=1500.0)
    steps = plot.read_steps(path)
    assert [(step.label.split(":")[0], step.microseconds) for step in steps] == [
        ("overlap-wise", 1500.0),
        ("combined", 200.0),
    ]


def test_every_step_is_a_variant_of_the_kernels(plot):
    assert set(plot.STEPS) <= set(KERNELS)


def test_what_may_be_the_fastest_is_drawn_and_timed_in_a_quick_run(plot):
    assert set(KERNEL_WORK) <= set(plot.STEPS)
    assert set(KERNEL_WORK) <= set(LEADING) <= set(KERNELS)


def test_labels_carry_times_and_registers(plot, tmp_path):
    figure = plot.draw(plot.read_steps(results(tmp_path / "r.json", combined=200.0, overlap_wise=1500.0)))
    texts = [text.get_text().strip() for axes in figure.axes for text in axes.texts]
    assert texts == ["1500 us, 40 registers", "200 us, 40 registers", "0.10", "0.10"]
    assert figure.axes[0].get_xscale() == "log"


def test_the_script_writes_a_picture(tmp_path):
    path = results(tmp_path / "r.json", combined=200.0, overlap_wise=1500.0)
    subprocess.run([sys.executable, SCRIPT, path, "-o", tmp_path / "plot.png"], check=True, capture_output=True)
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_file_without_an_ablation_is_refused(plot, tmp_path):
    with pytest.raises(ValueError, match="holds no timings of an ablation"):
        plot.read_steps(results(tmp_path / "r.json", FFT=3.0))
