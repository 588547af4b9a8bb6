"""Pages of their own, which stacks of a run of many have."""

import re
from urllib.parse import unquote

from tests.batch.movies import align, write_movie

NAMES = ("a", "b c", "d", "e")


def pages(out):
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("report.html"))}


def test_each_of_many_stacks_has_a_page_with_all_of_it(tmp_path):
    for seed, name in enumerate(NAMES):
        write_movie(tmp_path / "in" / f"{name}.tif", seed=seed)
    (tmp_path / "in" / "broken.tif").write_bytes(b"II*\0")
    out = tmp_path / "out"
    assert align(tmp_path / "in", "-o", out, "--layout", "stacks").code == 1
    found = pages(out)
    assert list(found) == ["a/report.html", "b c/report.html", "d/report.html", "e/report.html", "report.html"]
    links = re.findall(r'href="([^"#][^"]*)"', found["report.html"].decode())
    names = ("a", "b%20c", "d", "e")
    assert [link for link in links if link.endswith(".html")] == [f"{name}/report.html" for name in names]
    assert [link for link in links if link.endswith(".csv")] == [f"{name}/shifts.csv" for name in names]
    assert all((out / unquote(link)).is_file() for link in links)
    assert "xcorr align" in found["report.html"].decode()
    text = found["b c/report.html"].decode()
    assert "<title>b c</title>" in text
    assert "Kymograph" in text
    assert "a/report.html" not in text
    # What was there before is the same, drawn from what is kept.
    assert align(tmp_path / "in", "-o", out, "--layout", "stacks", "--resume").code == 1
    assert pages(out) == found
    assert align(tmp_path / "in", "-o", tmp_path / "none", "--layout", "stacks", "--report", "none").code == 1
    assert pages(tmp_path / "none") == {}
    assert align(tmp_path / "in", "-o", tmp_path / "quick", "--layout", "stacks", "--report", "quick").code == 1
    assert list(pages(tmp_path / "quick")) == ["report.html"]


def test_no_page_of_an_earlier_run_is_left(tmp_path):
    for seed, name in enumerate(NAMES):
        write_movie(tmp_path / "in" / f"{name}.tif", seed=seed)
    out = tmp_path / "out"
    assert align(tmp_path / "in", "-o", out, "--layout", "stacks").code == 0
    assert len(pages(out)) == 5
    assert align(tmp_path / "in" / "a.tif", "-o", out, "--overwrite").code == 0
    assert list(pages(out)) == ["report.html"]
