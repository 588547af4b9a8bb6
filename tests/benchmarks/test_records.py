"""Who wins, what ``auto`` takes and how far it is behind; tables and files made of planted times."""

import io
import json

import pytest
from rich.console import Console

from benchmarks.correlation.records import CaseResult, Timing, as_dict
from benchmarks.correlation.tables import print_case, print_ceilings, print_summary
from benchmarks.harness.device_rates import DeviceRates
from benchmarks.harness.ranking import WHEN_ASKED
from benchmarks.harness.record import write_json
from xcorr_app.errors import OutputError
from xcorr_app.gpu.runtime.device import DeviceStatus


def timing(what, microseconds, choice="", **rest):
    return Timing("planted", what, microseconds, 0.5, 0.25, own=bool(choice), choice=choice, error=1e-7, **rest)


def result(*timings, auto="combined", name="planted"):
    return CaseResult(name, "2.0 us", 16, 1e9, 9e8, 1e6, 1.5, timings, auto)


PLANTED = result(
    timing("combined", 12.5, "combined", registers=128),
    timing("row-product", 10.0, "row-product", registers=123),
    Timing(
        "planted", "shift-per-warp", own=True, choice="shift-per-warp", failure="DeviceError: [red] no room\nat all"
    ),
    timing("FFT, CuPy", 9.0),
    timing("FFT, PyTorch", 8.0, note="in chunks of 256"),
)


def printed(call, *arguments, **options):
    console = Console(file=io.StringIO(), width=200)
    call(console, *arguments, **options)
    return console.file.getvalue()


def test_winner_and_distances():
    assert PLANTED.winner.what == "FFT, PyTorch"
    assert PLANTED.best_own.what == "row-product"
    assert PLANTED.best_peer.what == "FFT, PyTorch"
    assert PLANTED.of_auto.what == "combined"
    assert PLANTED.auto_behind_percent == pytest.approx(25.0)
    assert PLANTED.speed_over_peer == pytest.approx(0.8)


def test_what_is_done_only_when_asked_for_is_none_of_autos_choices():
    faster = result(timing("combined", 10.0, choice="combined"), timing("single halves", 2.0, choice=WHEN_ASKED))
    assert faster.winner.what == faster.best_own.what == "single halves"
    assert faster.auto_behind_percent == 0


def test_what_failed_or_was_not_timed_does_not_count():
    failed = result(Timing("planted", "combined", own=True, choice="combined", failure="no"), timing("FFT, CuPy", 9.0))
    assert failed.winner.what == "FFT, CuPy"
    assert failed.best_own is None
    assert failed.of_auto is None
    assert failed.auto_behind_percent is None
    assert failed.speed_over_peer is None
    nothing = result()
    assert nothing.winner is None
    assert "nobody" in printed(print_case, nothing)
    assert "which was not timed" in printed(print_case, failed)


def test_the_table_of_a_case():
    text = printed(print_case, PLANTED)
    rows = [line for line in text.splitlines()[2:] if line.strip()]
    names = ["FFT, PyTorch", "FFT, CuPy", "row-product", "combined", "shift-per-warp"]
    assert [next(name for name in names if row.startswith(name)) for row in rows[:5]] == names
    assert rows[3].split()[:6] == ["combined", "12.50", "0.250", "0.500", "128", "1e-07"]
    assert [row.startswith("combined") for row in rows if "<- auto" in row] == [True]
    assert "in chunks of 256" in rows[0]
    assert "DeviceError: [red] no room\\nat all" in rows[4]
    assert rows[5] == "wins: FFT, PyTorch; auto takes combined, 25.0 % behind the best engine; goal: 2.0 us"
    assert "floor 1.500 us" in text


def test_the_summary():
    good = result(timing("combined", 1.0, "combined"), timing("FFT, CuPy", 3.0), name="other")
    lines = printed(print_summary, [PLANTED, good]).splitlines()
    assert " ".join(lines[1].split()) == "planted FFT, PyTorch 8.000 0.250 0.80x combined 25.0 % 2.0 us"
    assert " ".join(lines[2].split()) == "other combined 1.000 0.250 3.00x combined 0.0 % 2.0 us"
    assert lines[3] == "auto is at most 25.0 % behind the best engine, in 'planted'"


@pytest.mark.parametrize("has_torch", [True, False])
def test_the_ceilings_say_where_pytorch_is_missing(has_torch):
    status = DeviceStatus(available=True, name="A GPU", driver="13.0", multiprocessors=132)
    text = printed(print_ceilings, status, DeviceRates(32.2e12, 4.2e12, 5e-7), has_torch=has_torch)
    assert "32.2 T multiply-adds/s" in text
    assert "copy 4.20 TB/s" in text
    assert ("PyTorch is not installed" in text) is not has_torch


def test_json_holds_every_number_and_null_where_there_is_none(tmp_path):
    path = tmp_path / "results.json"
    path.write_text("old")
    write_json({"cases": [as_dict(PLANTED)], "timings": [vars(each) for each in PLANTED.timings]}, path)
    read = json.loads(path.read_text(), parse_constant=pytest.fail)
    case = read["cases"][0]
    assert case["winner"] == "FFT, PyTorch"
    assert case["auto"] == "combined"
    assert case["auto_behind_percent"] == pytest.approx(25.0)
    assert "timings" not in case
    assert [each["microseconds_a_pair"] for each in read["timings"]] == [12.5, 10.0, None, 9.0, 8.0]
    with pytest.raises(OutputError, match="cannot be written"):
        write_json({}, tmp_path / "missing" / "results.json")
