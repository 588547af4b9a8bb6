"""Records of what a run has finished: used only where they hold, and never to touch what lies elsewhere."""

import json
import os

import pytest

from xcorr_app.errors import OutputError
from xcorr_app.io.series import Discovery
from xcorr_app.pipeline.output import check_output, prepared_output
from xcorr_app.pipeline.state import State, _of_text, asked_of

NOTHING = Discovery("stacks", (), ())
DEEP = "[" * 100_000
USELESS = [
    "",
    "\0",
    "[1]",
    "null",
    "3",
    '"a"',
    DEEP,
    '{"outputs": null}',
    '{"outputs": [1]}',
    '{"outputs": ' + DEEP,
    "\ud7ff",
]


@pytest.fixture
def out(tmp_path):
    out = tmp_path / "out"
    (out / "a").mkdir(parents=True)
    (out / "a" / "a.tif").write_bytes(bytes(1000))
    (out / "a" / "shifts.csv").write_text("frame\n0\n")
    outputs = [out / "a" / "a.tif", out / "a" / "shifts.csv"]
    facts = {"frames": 3, "share": float("nan"), "counts": {2: 1, 10: 5}, "pair": (1, 2)}
    State(out).save("a", "mark", outputs, facts, {"report": {"unit": None}})
    return out


def test_a_record_is_used_while_all_holds(out):
    record = State(out).load("a", "mark")
    assert record is not None
    assert record["facts"]["frames"] == 3
    assert record["report"] == {"unit": None}
    assert State(out).load("a", "another") is None
    assert State(out).load("b", "mark") is None


@pytest.mark.parametrize("name", ["a.tif", "shifts.csv"])
def test_an_output_of_the_same_size_with_other_bytes_or_that_is_missing_is_noticed(out, name):
    path = out / "a" / name
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    assert State(out).load("a", "mark") is None
    path.unlink()
    assert State(out).load("a", "mark") is None


def test_a_changed_record_is_noticed(out):
    path = out / ".xcorr" / "a.json"
    text = path.read_text()
    for old, new in (('"frames": 3', '"frames": 4'), ("null", "true"), ("a/a.tif", "a/b.tif"), ("mark", "marl")):
        assert old in text
        path.write_text(text.replace(old, new))
        assert State(out).load("a", "mark") is None


@pytest.mark.parametrize("text", USELESS)
def test_useless_records_are_none(out, text):
    for name in (".xcorr/a.json", ".xcorr/run", "run.json"):
        (out / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    assert State(out).load("a", "mark") is None
    check_output(out, NOTHING, [], asked_of("xcorr filter", {}, []), resume=True, overwrite=False)
    with prepared_output(out, resume=False, overwrite=True):
        pass
    assert not (out / ".xcorr").exists()
    assert (out / "a" / "a.tif").exists()  # nothing says that it is ours


def test_files_outside_the_folder_are_never_removed(tmp_path, out):
    keep = tmp_path / "keep.tif"
    keep.write_text("kept")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "keep.tif").write_text("kept")
    (out / "link").symlink_to(tmp_path / "elsewhere")
    names = [
        "../keep.tif",
        str(keep),
        "a/../../keep.tif",
        "link/keep.tif",
        "..",
        ".",
        "",
        "a",
        "\0",
        "x" * 5000,
        "a/a.tif",
    ]
    forged = {"outputs": dict.fromkeys([*names, "a/notes.txt", "a/a_aligned.tif", "notes.txt"], 1), "facts": {}}
    for name in ("a/notes.txt", "a/a_aligned.tif", "notes.txt"):
        (out / name).write_text("kept")
    for record in (forged, forged | {"checksum": "0"}, forged | {"checksum": _of_text(json.dumps(forged))}):
        (out / ".xcorr").mkdir(exist_ok=True)
        (out / ".xcorr" / "a.json").write_text(json.dumps(record))
        assert (out / "a" / "a_aligned.tif").exists()
        with prepared_output(out, resume=False, overwrite=True):
            pass
        assert keep.read_text() == (tmp_path / "elsewhere" / "keep.tif").read_text() == "kept"
        assert (out / "a" / "notes.txt").read_text() == (out / "notes.txt").read_text() == "kept"
        assert (out / "a" / "shifts.csv").exists()
    assert not (out / "a" / "a_aligned.tif").exists()  # a whole record names it, and it is called as a result is


@pytest.mark.parametrize("place", ["run.json", ".xcorr/a.json", ".xcorr/run"])
def test_a_pipe_in_the_place_of_a_record_holds_nobody_up(out, place):
    (out / place).unlink(missing_ok=True)
    os.mkfifo(out / place)
    check_output(out, NOTHING, [], asked_of("xcorr align", {}, []), resume=True, overwrite=False)
    assert State(out).load("a", "mark") is None or place != ".xcorr/a.json"
    with prepared_output(out, resume=True, overwrite=False):
        State(out).begin(asked_of("xcorr align", {}, []))
    with prepared_output(out, resume=False, overwrite=True):
        pass


def test_a_folder_where_a_file_is_to_be_written_is_not_removed(out):
    (out / "a" / "shifts.csv").unlink()
    (out / "a" / "shifts.csv" / "mine").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"shifts.csv: is a folder, .* remove it by hand"):
        State(out).discard("a", [out / "a" / "shifts.csv"])
    assert (out / "a" / "shifts.csv" / "mine").is_dir()


def test_no_empty_folders_are_left_of_an_image_of_many_files(out):
    (out / "b" / "b_aligned.ome.zarr" / "0" / "c").mkdir(parents=True)
    (out / "b" / "b_aligned.ome.zarr" / "0" / "c" / "0").write_bytes(b"1")
    State(out).save("b", "mark", [out / "b" / "b_aligned.ome.zarr"], {}, {})
    (out / "a" / "mine.txt").write_text("kept")
    with prepared_output(out, resume=False, overwrite=True):
        pass
    assert {path.name for path in out.iterdir()} == {"a"}


def test_a_run_that_was_killed_is_not_gone_on_with_by_another_command(out):
    """Its run.json, which comes last, is not there."""
    State(out).begin(asked_of("xcorr align", {}, []))
    assert not (out / "run.json").exists()
    check_output(out, NOTHING, [], asked_of("xcorr align", {}, []), resume=True, overwrite=False)
    with pytest.raises(OutputError, match="holds results of `xcorr align`; choose another -o"):
        check_output(out, NOTHING, [], asked_of("xcorr filter", {}, []), resume=True, overwrite=False)
