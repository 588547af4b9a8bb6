"""What is found: series, stacks, names in human order."""

import imagecodecs
import numpy as np
import pytest

from tests.io.samples import noise, write_plain
from xcorr_app.errors import ArgumentError, DamagedFileError, InputError, LimitError
from xcorr_app.io import Limits, discover
from xcorr_app.io.names import natural_key, safe_name, unique_names


def _frames(folder, numbers, shape=(6, 5), dtype="uint16"):
    folder.mkdir(parents=True, exist_ok=True)
    data = {number: noise(shape, dtype, seed=number) for number in numbers}
    for number, plane in data.items():
        write_plain(folder / f"t{number}.tif", plane)
    return data


def test_single_pages_are_one_series_in_human_order(tmp_path):
    data = _frames(tmp_path / "movie", [10, 1, 2])
    (tmp_path / "movie" / "notes.csv").write_text("x")
    (tmp_path / "movie" / "LICENSE").write_text("x")
    (tmp_path / "movie" / "._t1.tif").write_text("x")
    found = discover([tmp_path / "movie"])
    (series,) = found.series
    assert (found.layout, series.name, found.failures) == ("frames", "movie", ())
    assert [path.name for path in series.paths] == ["t1.tif", "t2.tif", "t10.tif"]
    with series.open() as source:
        assert (source.metadata.axes, source.sizes["T"]) == ("TYX", 3)
        for t, number in enumerate([1, 2, 10]):
            np.testing.assert_array_equal(source.plane(t), data[number])
            assert source.origin(t) == (tmp_path / "movie" / f"t{number}.tif", 0)
        with pytest.raises(ArgumentError, match="T index 3 is outside 0 to 2"):
            source.plane(3)
        with pytest.raises(ArgumentError):
            source.plane(-1)


def test_multi_page_files_are_stacks(tmp_path):
    for name in ("b10", "b9"):
        write_plain(tmp_path / f"{name}.tif", noise((3, 6, 5), seed=len(name)))
    found = discover(tmp_path)
    assert found.layout == "stacks"
    assert [series.name for series in found.series] == ["b9", "b10"]
    with found.series[0].open() as source:
        np.testing.assert_array_equal(source.plane(2), noise((3, 6, 5), seed=2)[2])
        assert source.origin(2) == (tmp_path / "b9.tif", 2)


def test_mixed_folder_is_refused_with_both_lists_and_the_way_out(tmp_path):
    _frames(tmp_path, range(5))
    write_plain(tmp_path / "stack.tif", noise((3, 6, 5)))
    with pytest.raises(InputError) as caught:
        discover([tmp_path])
    message = str(caught.value)
    assert "files of one page (t0.tif, t1.tif, t2.tif, ... and 2 more) and of several (stack.tif)" in message
    assert "--layout frames" in message
    assert "--layout stacks" in message


def test_layout_resolves_a_mixed_folder(tmp_path):
    data = _frames(tmp_path / "m", [1, 2])
    stack = noise((3, 6, 5))
    write_plain(tmp_path / "m" / "t1b.tif", stack)
    (series,) = discover([tmp_path / "m"], layout="frames").series
    with series.open() as source:
        expected = [data[1], *stack, data[2]]
        assert source.sizes["T"] == 5
        for t, plane in enumerate(expected):
            np.testing.assert_array_equal(source.plane(t), plane)
        assert source.origin(2) == (tmp_path / "m" / "t1b.tif", 1)
    assert [spec.name for spec in discover([tmp_path / "m"], layout="stacks").series] == ["t1", "t1b", "t2"]


def test_tiff_and_png_together_are_refused_unless_named(tmp_path):
    _frames(tmp_path, [1, 2])
    (tmp_path / "a.png").write_bytes(imagecodecs.png_encode(noise((6, 5))))
    with pytest.raises(InputError, match="both TIFF and PNG"):
        discover([tmp_path])
    assert len(discover([f"{tmp_path}/*.tif"]).series[0].paths) == 2


def test_sub_folders_are_series_of_their_own(tmp_path):
    _frames(tmp_path / "day10", [1])
    _frames(tmp_path / "day2", [1, 2])
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        write_plain(tmp_path / folder / "pos1.tif", noise((2, 6, 5)))
    (tmp_path / "loop").symlink_to(tmp_path)
    found = discover([tmp_path])
    assert [series.name for series in found.series] == ["day2", "day10", "x_pos1", "y_pos1"]
    assert found.layout == "both"


def test_files_one_by_one_belong_together_by_folder(tmp_path):
    _frames(tmp_path / "a", [1, 2, 10])
    _frames(tmp_path / "b", [1])
    found = discover([tmp_path / "a" / "t10.tif", tmp_path / "a" / "t2.tif", tmp_path / "b" / "t1.tif"])
    assert [(series.name, [path.name for path in series.paths]) for series in found.series] == [
        ("a", ["t2.tif", "t10.tif"]),
        ("t1", ["t1.tif"]),
    ]


@pytest.mark.parametrize("name", ["two words.tif", "two\nlines.tif", "...tif", "[1].tif", "-o.tif", "run.json.tif"])
def test_odd_names(tmp_path, name):
    write_plain(tmp_path / name, noise((2, 6, 5)))
    (series,) = discover([tmp_path / name]).series
    assert not set(series.name) & set("/\n")
    assert series.name.strip(".")
    assert series.name != "run.json"
    with series.open() as source:
        np.testing.assert_array_equal(source.plane(1), noise((2, 6, 5))[1])


def test_bad_frames_keep_their_place(tmp_path):
    data = _frames(tmp_path, range(5))
    (tmp_path / "t2.tif").write_bytes((tmp_path / "t2.tif").read_bytes()[:-1])
    (tmp_path / "t3.tif").write_bytes(b"")
    (tmp_path / "t5.tif").symlink_to(tmp_path / "t5.tif")
    (tmp_path / "t6.tif").symlink_to(tmp_path / "nowhere")
    found = discover([tmp_path])
    assert found.failures == ()
    with found.series[0].open() as source:
        assert source.sizes["T"] == 7
        for t in (0, 1, 4):
            np.testing.assert_array_equal(source.plane(t), data[t])
        for t, error in ((2, DamagedFileError), (3, DamagedFileError), (5, InputError), (6, InputError)):
            with pytest.raises(error, match=rf"t{t}\.tif"):
                source.plane(t)
            assert source.origin(t) == (tmp_path / f"t{t}.tif", 0)


def test_frames_of_another_size_name_the_first_that_differs(tmp_path):
    _frames(tmp_path / "a", range(4))
    write_plain(tmp_path / "a" / "t2.tif", noise((6, 4)))
    _frames(tmp_path / "b", [1, 2])
    found = discover([tmp_path / "a", tmp_path / "b"])
    assert [series.name for series in found.series] == ["b"]
    (failure,) = found.failures
    assert "t2.tif: its pages are 6 x 4 uint16" in failure.message
    assert "6 x 5 uint16" in failure.message


def test_nothing_found_is_an_error_that_says_so(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.csv").write_text("x")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name, message in (
        ("missing", "does not exist"),
        ("empty", "holds no TIFF or PNG"),
        ("text", "holds no TIFF or PNG"),
        ("*.tif", "no image or folder"),
        ("circle", "cannot be read"),
        ("nul\0", "cannot be looked up"),
        ("x" * 300, "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            discover([f"{tmp_path}/{name}"])
    with pytest.raises(InputError, match="no input"):
        discover([])


def test_limits_reach_every_file(tmp_path):
    write_plain(tmp_path / "a.tif", noise((2, 6, 5)))
    found = discover([tmp_path], limits=Limits(max_pixels=29))
    assert "--max-pixels 30" in found.failures[0].message
    _frames(tmp_path / "f", [1])
    write_plain(tmp_path / "f" / "t2.tif", noise((60, 50)))
    (series,) = discover([tmp_path / "f"], limits=Limits(max_pixels=30)).series
    with pytest.raises(LimitError):
        series.open().plane(1)


def test_numbers_in_names_compare_as_numbers():
    names = ["t10", "t2", "t1", "T3", "t01", "a9b10", "a9b9", "10", "9"]
    assert sorted(names, key=natural_key) == ["9", "10", "a9b9", "a9b10", "t01", "t1", "t2", "T3", "t10"]


def test_other_digits_do_not_break_the_order():
    assert min(["x²", "x٣", "x1"], key=natural_key) == "x1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain name", "plain name"),
        ("..", "stack"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("two\nlines", "two_lines"),
        (" .hidden ", "hidden"),
        ("", "stack"),
        ("a\0b", "a_b"),
        ("C:\\x", "C_x"),
        ("µm", "µm"),
        ("broken\udcff", "broken_"),
        ("aux", "aux_"),
        ("Com1.tif", "Com1.tif_"),
        ("console", "console"),
    ],
)
def test_safe_names(text, expected):
    assert safe_name(text) == expected


def test_unique_names_ignore_case_and_reserved_names():
    assert unique_names(["a", "A", "a_2", "run.json"], ["run.json"]) == ["a", "A_2", "a_2_2", "run.json_2"]
