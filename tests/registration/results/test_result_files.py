"""Results: how they print, compare and draw; archives and tables."""

import dataclasses
import sys

import matplotlib as mpl
import numpy as np
import pytest

import xcorr_app as xc
from tests.batch.movies import movie
from xcorr_app.errors import ArgumentError, DamagedFileError, InputError
from xcorr_app.io.shift_table import read_shift_table


@pytest.fixture(scope="module")
def result():
    frames = np.concatenate([movie(), np.zeros((1, 40, 48), np.uint16), movie()[1:2]])
    return xc.estimate_shifts(frames, max_shift=6)


def test_an_archive_gives_back_everything_but_the_decision(tmp_path, result):
    result.save(tmp_path / "r.npz")
    again = xc.ShiftResult.load(tmp_path / "r.npz")
    for field in dataclasses.fields(result):
        before, after = getattr(result, field.name), getattr(again, field.name)
        if isinstance(before, np.ndarray):
            np.testing.assert_array_equal(after, before, err_msg=field.name)
            assert after.dtype == before.dtype
        elif field.name != "decision":
            assert after == before, field.name
    np.testing.assert_array_equal(xc.load_shifts(tmp_path / "r.npz"), result.applied())


def test_a_table_holds_what_is_applied(tmp_path, result):
    result.save(tmp_path / "r.csv")
    np.testing.assert_allclose(xc.load_shifts(tmp_path / "r.csv"), result.applied(), atol=5e-7)
    assert (tmp_path / "r.csv").read_text().splitlines()[0].startswith("frame,source,page,dy,dx,score,")
    assert "flat" in (tmp_path / "r.csv").read_text().splitlines()[5]
    again = xc.ShiftResult.load(tmp_path / "r.csv")
    for name in ("shifts", "sigma", "score", "peak_ratio", "significance", "fft_shifts"):
        np.testing.assert_allclose(getattr(again, name), getattr(result, name), atol=5e-7, err_msg=name)
    assert (again.flags, len(again)) == (result.flags, 6)
    np.testing.assert_array_equal(again.trusted, result.trusted)
    for policy in ("interpolate", "leave", "drop"):
        np.testing.assert_allclose(again.applied(policy), result.applied(policy), atol=5e-7)
    again.save(tmp_path / "r.npz")
    assert xc.ShiftResult.load(tmp_path / "r.npz") == again


def test_a_shift_that_is_no_number_in_any_way_is_of_a_frame_left_out(tmp_path):
    shifts = np.array([[0.5, 1], [2, 3]], np.float32)
    shifts.view(np.uint32)[1, 0] = 0x7F800001  # signals when it is converted
    np.save(tmp_path / "a.npy", shifts)
    np.testing.assert_array_equal(xc.load_shifts(tmp_path / "a.npy"), [[0.5, 1], [np.nan, np.nan]])


def test_a_result_moves_another_channel(result):
    other = np.concatenate([movie(seed=3), movie(seed=3)[:2]])
    np.testing.assert_array_equal(xc.apply_shifts(other, result), xc.apply_shifts(other, result.applied()))


def test_what_cannot_be_written_or_read(tmp_path, result):
    with pytest.raises(ArgumentError, match=r"\.npz or \.csv"):
        result.save(tmp_path / "r.txt")
    with pytest.raises(InputError, match="does not exist"):
        xc.ShiftResult.load(tmp_path / "none.npz")
    (tmp_path / "no.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DamagedFileError, match="line 1: columns are"):
        xc.ShiftResult.load(tmp_path / "no.csv")
    result.save(tmp_path / "no.csv")
    (tmp_path / "no.csv").write_text((tmp_path / "no.csv").read_text().replace("\n3,", "\n5,"))
    with pytest.raises(DamagedFileError, match="not numbered from 0"):
        xc.ShiftResult.load(tmp_path / "no.csv")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(DamagedFileError, match="holds no result"):
        xc.ShiftResult.load(tmp_path / "bad.npz")
    result.save(tmp_path / "r.npz")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "r.npz").read_bytes()[:-1000])
    with pytest.raises(DamagedFileError):
        xc.ShiftResult.load(tmp_path / "cut.npz")


def test_a_table_for_pandas(result, monkeypatch):
    class Pandas:
        DataFrame = dict

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    frame = result.to_dataframe()
    assert list(frame)[:5] == ["frame", "source", "page", "dy", "dx"]
    assert all(len(column) == 6 for column in frame.values())


def test_the_shift_of_a_table_of_matrices_is_that_of_its_last_column(tmp_path, rng):
    matrices = np.eye(3) + np.pad(rng.normal(0, 0.1, (4, 2, 3)), ((0, 0), (0, 1), (0, 0)))
    matrices[2] = np.nan
    names = [f"m{i}{j}" for i in range(2) for j in range(3)]
    lines = [",".join(str(value) for value in matrix[:2].ravel()) for matrix in matrices]
    (tmp_path / "m.csv").write_text("\n".join([",".join(names), *lines]))
    table = read_shift_table(tmp_path / "m.csv")
    np.testing.assert_array_equal(table.matrices, matrices)
    np.testing.assert_array_equal(table.shifts, -matrices[:, :2, 2])
    np.testing.assert_allclose(table.inverted().matrices[0] @ matrices[0], np.eye(3), atol=1e-12)


def test_results_are_equal_but_for_what_decided(result, tmp_path):
    result.save(tmp_path / "r.npz")
    assert result == xc.ShiftResult.load(tmp_path / "r.npz")  # with NaN of the flat frame
    for field in dataclasses.fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray) and value.size:
            other = value.copy()
            other.flat[0] = 7
            assert result != dataclasses.replace(result, **{field.name: other}), field.name
    assert result != dataclasses.replace(result, engine="other")
    assert result != "result"
    with pytest.raises(TypeError, match="unhashable"):
        hash(result)


def test_it_prints_as_one_line(result):
    text = repr(result)
    assert "\n" not in text
    assert len(text) < 120
    assert "6 frames, 5 trusted, largest shift 3.61 px, median standard error 0.0" in text


def test_every_result_has_a_length_a_summary_a_table_and_a_drawing(result):
    mpl.use("agg")
    field = xc.displacement_field(*movie((64, 64))[:2], window=16, step=8)
    assert "7 x 7 points, 0 replaced, 0 masked, largest displacement " in field.summary()
    motion = xc.estimate_motion(movie(), "translation")
    quality = xc.assess(movie(), xc.apply_shifts(movie(), motion.shifts), None)
    assert quality.summary().startswith("correlation 0.")
    pairs = xc.find_shifts(movie()[0], movie(), "one-to-many", max_shift=6)
    assert pairs.summary().startswith("4 pairs, largest shift 3.6")
    for shown, length in ((pairs, 4), (result, 6), (motion, 4), (field, 49), (quality, None)):
        table = shown._repr_html_()
        assert shown.summary() in table
        assert table.count("<tr>") > 3
        assert length is None or len(shown) == length
    assert pairs.plot().collections[0].get_offsets().shape == (4, 2)
    axes = result.plot()
    rows, doubted, columns, _ = (line.get_xydata() for line in axes.lines)
    np.testing.assert_array_equal(rows[:4, 1], result.shifts[:4, 0])
    np.testing.assert_array_equal(columns[:4, 1], result.shifts[:4, 1])
    assert doubted[:, 0].tolist() == [4]
    assert motion.plot(axes) is axes
    assert field.plot(axes).collections[-1].N == 49
