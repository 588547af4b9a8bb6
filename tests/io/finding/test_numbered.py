"""File names that number axes: put together, or refused with both readings, never one movie of unlike images."""

import itertools
from contextlib import nullcontext

import numpy as np
import pytest
import tifffile

from tests.io.samples import noise, write_ome, write_plain
from xcorr_app.errors import InputError
from xcorr_app.io import discover

T, Z, C = range(3), range(2), range(2)


def value(t=0, z=0, c=0, s=0):
    """Constant planes by which every place is told."""
    return 1 + t + 10 * z + 100 * c + 1000 * s


def folder_of(folder, names):
    """Single-page files from names to values."""
    folder.mkdir(exist_ok=True)
    for name, number in names.items():
        write_plain(folder / f"{name}.tif", np.full((4, 5), number, np.uint16))
    return folder


def values_of(spec):
    """Values of all planes, in an array [t, z, c]."""
    with spec.open() as source:
        sizes = [source.sizes[axis] for axis in "TZC"]
        found = np.zeros(sizes, int)
        for t, z, c in np.ndindex(*sizes):
            plane = source.plane(t, z, c)
            assert (plane == plane[0, 0]).all()
            found[t, z, c] = plane[0, 0]
            path, page = source.origin(t, z, c)
            assert page == 0
            assert path in source.paths
            assert tifffile.imread(path)[0, 0] == found[t, z, c]
    return found


def expected(t=1, z=1, c=1, s=0):
    return np.fromfunction(lambda i, j, k: value(i, j, k, s), (t, z, c)).astype(int)


@pytest.mark.parametrize(
    "pattern",
    [
        "exp_t{t:03d}_c{c}_z{z}",
        "exp-ch{c:02d}-z{z:03d}-t{t}",
        "C{c}-name_Z{z:02d}_T{t:04d}",
        "img_channel{c:03d}_position000_time{t:09d}_z{z:03d}",
        "t{t}c{c}z{z}",
        "scan T{t} Z{z} C{c}",
        "a_time_{t:02d}_slice_{z}_channel={c}",
        "{n:05d}_t{t}_z{z}_c{c}",
        "20240305_1200_t{t}_z{z}_ch{c}",
    ],
)
def test_names_place_files_along_time_depth_and_channels(tmp_path, pattern):
    places = list(itertools.product(T, Z, C))
    names = {pattern.format(t=8 + t, z=z, c=c + 1, n=n): value(t, z, c) for n, (t, z, c) in enumerate(places)}
    (series,) = discover(folder_of(tmp_path / "exp", names)).series
    assert (series.name, series.layout) == ("exp", "numbered")
    np.testing.assert_array_equal(values_of(series), expected(3, 2, 2))
    assert series.open().metadata.axes == "TZCYX"
    assert series.notes == ()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([f"{dye}_{k}" for dye in ("DAPI", "GFP") for k in T], r"2 kinds of names.*6 frames of one movie.*or 2 stacks"),
        ([f"img_{t:09d}_{dye}_000" for dye in ("DAPI", "GFP") for t in T], "2 kinds of names"),
        ([f"img_{t:09d}_Default_{z:03d}" for t in T for z in Z], "2 numbers without letters, 3 x 2 of them"),
        ([f"img{t:03d}-ch{c:02d}" for t in T for c in C], "3 points in time of one stack along C, or 3 stacks"),
        ([f"a_s{s}" for s in range(4)], "4 stacks of one image .*, or 4 frames of one movie"),
        ([*(f"x_t{t}_c{c}" for t in T for c in C), "overview"], "count C, but not so that overview.tif fit in"),
        ([f"c{number}" for number in range(17)], "one image of 17 channels, or 17 frames of one movie"),
        ([f"2024-03-05T12-3{t}-01_c{c}" for t in T for c in C], "3 points in time"),
        ([f"20240305T12300{t}_c{c}" for t in T for c in C], "3 points in time"),
        (["left_c0", "right_c1"], "count C, but not so that"),
    ],
    ids=range(10),
)
def test_two_readings_are_refused_with_both(tmp_path, names, words):
    folder_of(tmp_path / "m", {name: number for number, name in enumerate(names, 1)})
    with pytest.raises(InputError, match=words):
        discover(tmp_path / "m")
    (series,) = discover(tmp_path / "m", layout="frames").series
    assert series.open().sizes["T"] == len(names)
    assert len(discover(tmp_path / "m", layout="stacks").series) == len(names)


@pytest.mark.parametrize(
    "names",
    [
        ["2024-03-05T12-30-01", "2024-03-05T12-31-15", "2024-03-05T13-02-44", "2024-03-06T01-02-03"],
        ["a9c4f2", "b3d1e7", "c0", "ff00c1"],
        ["alpha", "beta", "gamma"],
        ["def_1", "def_2", "ref"],
        ["exp1_001_a", "exp1_001_b"],
        ["Sample5 Reference", "Sample5-000 X0.00 C75 R10", "Sample5-001 X0.10 C100 R20"],
        ["t1", "t1b", "t2"],
        ["abc1", "abc2", "abc3"],
        ["a_t0.5", "a_t1.0", "a_t1.5"],
    ],
    ids=lambda names: names[0],
)
def test_other_names_are_one_movie_in_natural_order(tmp_path, names):
    folder_of(tmp_path / "m", {name: number for number, name in enumerate(names)})
    (series,) = discover(tmp_path / "m").series
    assert series.layout == "frames"
    assert [path.stem for path in series.paths] == names


def test_a_file_named_unlike_the_others_is_told(tmp_path):
    folder_of(tmp_path / "m", {"def_1": 1, "def_2": 2, "ref": 3})
    (series,) = discover(tmp_path / "m").series
    assert "Named unlike the others" in series.notes[0]
    assert "ref.tif" in series.notes[0]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 1, 2, 5, 6, 9), "skip .* 3 to 4, 7 to 8;"),
        ((1, 2, 3, 5, 6), "skip .* 4;"),
        ((0, 10, 20, 40, 50), "skip .* 30;"),
        ((0, 2, 4, 6), None),
        ((5, 6, 7), None),
        ((1, 100, 7000), None),
        ((1, 3, 5, 6, 7, 9, 10, 12, 13, 15, 16), "skip .* 2, 4, 8 and 2 more gaps;"),
    ],
)
@pytest.mark.parametrize("prefix", ["x_t", "f"])
def test_gaps_in_numbering_are_told(tmp_path, numbers, words, prefix):
    folder_of(tmp_path / "m", {f"{prefix}{number:05d}": index for index, number in enumerate(numbers)})
    (series,) = discover(tmp_path / "m").series
    np.testing.assert_array_equal(values_of(series)[:, 0, 0], range(len(numbers)))
    if words is None:
        assert series.notes == ()
    else:
        import re

        assert re.search(words, series.notes[0])


def test_an_incomplete_stack_names_what_is_missing_and_the_others_go_on(tmp_path):
    names = {f"a_s{s}_t{t}_c{c}": value(t, 0, c, s) for t, c, s in itertools.product(T, C, (1, 2))}
    del names["a_s1_t2_c1"]
    found = discover(folder_of(tmp_path / "m", names))
    assert [series.name for series in found.series] == ["a_s2"]
    assert "5 of 6 files that T=3 x C=2 need are there; t=2 c=1 is missing" in found.failures[0].message


def test_two_files_for_one_place_are_refused(tmp_path):
    folder_of(tmp_path / "m", {"t1": 1, "t01": 2, "t2": 3})
    with pytest.raises(InputError, match=r"t01\.tif and t1\.tif have the same numbers"):
        discover(tmp_path / "m")


def test_files_that_differ_are_named(tmp_path):
    folder_of(tmp_path / "m", {f"a_t{t}_c{c}": 1 for t, c in itertools.product(T, C)})
    write_plain(tmp_path / "m" / "a_t1_c1.tif", noise((4, 6)))
    found = discover([tmp_path / "m", tmp_path])
    assert "a_t1_c1.tif: is 4 x 6 uint16" in found.failures[0].message


def test_a_channel_of_names_is_read_alone(tmp_path):
    names = {f"a_t{t}_ch{c + 1:02d}": value(t, 0, c) for t, c in itertools.product(T, C)}
    folder_of(tmp_path / "m", names)
    (series,) = discover(tmp_path / "m", channel=1).series
    np.testing.assert_array_equal(values_of(series)[:, 0, 0], expected(3, 1, 2)[:, 0, 1])
    assert series.notes == ("Channel 1, counted from 0, is that of a_t0_ch02.tif.",)
    with pytest.raises(InputError, match="names number 2 channels: --channel counts from 0, up to 1"):
        discover(tmp_path / "m", channel=2)


def test_stacks_of_one_channel_each_are_joined(tmp_path):
    data = noise((2, 5, 6, 7))
    for c in C:
        write_plain(tmp_path / f"movie_ch{c:02d}.tif", data[c])
    (series,) = discover(tmp_path).series
    assert (series.name, series.layout) == ("movie", "numbered")
    with series.open() as source:
        assert (source.metadata.axes, source.metadata.shape) == ("TCYX", (5, 2, 6, 7))
        for c, t in itertools.product(C, range(5)):
            np.testing.assert_array_equal(source.plane(t, 0, c), data[c, t])
            assert source.origin(t, 0, c) == (tmp_path / f"movie_ch{c:02d}.tif", t)
    assert len(discover(tmp_path, layout="stacks").series) == 2


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["well_C1", "well_C2", "well_C3", "well_C4"], False),
        (["x_A1", "x_B2", "x_C1", "x_C2"], False),
        (["A1-x", "C1-x", "C2-x"], False),
        (["exp_C01", "exp_C02", "exp_C24"], True),
    ],
)
@pytest.mark.parametrize("single", ["frames", "stacks"])
def test_wells_of_row_c_are_stacks_of_their_own(tmp_path, names, told, single):
    for c, name in enumerate(names):
        write_plain(tmp_path / f"{name}.tif", np.full((3, 6, 7), c, np.uint16))
    found = discover(tmp_path, single=single).series
    assert [spec.name for spec in found] == names
    for c, spec in enumerate(found):
        with spec.open() as source:
            assert source.metadata.axes == "TYX"
            assert (source.plane(2, 0, 0) == c).all()
        assert ["wells of a plate" in note for note in spec.notes] == [True] * told
    with pytest.raises(InputError, match="either channels of one stack, or wells") if told else nullcontext():
        assert len(discover(tmp_path, channel=0, single=single).series) == len(names)


@pytest.mark.parametrize("pattern", ["C{}-movie", "movie_c{}", "movie_ch{}", "B2_movie_c{}", "z3_T1_C{}"])
def test_channels_are_no_wells(tmp_path, pattern):
    for c in (1, 2):
        write_plain(tmp_path / f"{pattern.format(c)}.tif", noise((3, 6, 7)))
    (series,) = discover(tmp_path).series
    with series.open() as source:
        assert source.sizes["C"] == 2


def test_volumes_numbered_by_time_are_joined_and_movies_are_not(tmp_path):
    data = noise((2, 2, 6, 7))
    for t in range(2):
        (tmp_path / "z").mkdir(exist_ok=True)
        (tmp_path / "m").mkdir(exist_ok=True)
        write_ome(tmp_path / "z" / f"v_t{t}.ome.tif", data[t], "ZYX")
        write_plain(tmp_path / "m" / f"v_t{t}.tif", data[t])
    (series,) = discover(tmp_path / "z").series
    with series.open() as source:
        assert source.metadata.axes == "TZYX"
        np.testing.assert_array_equal(source.plane(1, 1), data[1, 1])
    assert [spec.name for spec in discover(tmp_path / "m").series] == ["v_t0", "v_t1"]
