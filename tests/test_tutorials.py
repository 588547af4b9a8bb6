"""Every block of the pages runs as printed, one after another, in a folder beside the sample data.

What stands below a line ``<!-- not run: ... -->`` needs what a test does not have. Where a block asks for kernels by
name and there is no GPU, the answer that says so is right.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.page_data import ARRAYS, write_files

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOK = ROOT / "docs" / "tutorials" / "pipeline.ipynb"
_BLOCK = re.compile(r"(^<!-- not run: .*? -->\n\n?)?^```(sh|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_PRELUDE = f'set -e\nxcorr() {{ "{sys.executable}" -W error -m xcorr_app "$@"; }}\n'
_ELSEWHERE = re.compile(r"^(pip|make|pytest) .*$", re.MULTILINE)
"""What installs and tests: see `test_what_pages_make_is_there`."""
_BY_NAME = re.compile(r"--kernel|kernel=|method=")


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of what the page tells to run."""
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    return [(language, _ELSEWHERE.sub("", text)) for skipped, language, text in found if not skipped]


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run(language: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text] if language == "python" else ["bash", "-c", _PRELUDE + text]
    variables = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)


@pytest.mark.share(3)
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_page_runs(page: Path, tmp_path: Path) -> None:
    """Python blocks of a tutorial stand alone; those of other pages follow one another, on arrays that they name."""
    write_files(tmp_path)
    alone = page.parent.name == "tutorials"
    before = "" if alone or page.name == "README.md" else ARRAYS
    for language, text in blocks(page):
        lines = [text] if alone or not _BY_NAME.search(text) else text.splitlines()
        for part in lines:
            done = run(language, before + part if language == "python" else part, tmp_path)
            no_gpu = _BY_NAME.search(part) and re.search("GPU|CUDA", done.stderr + done.stdout)
            assert done.returncode == 0 or no_gpu, f"{part}\n{done.stdout}\n{done.stderr}"
        if language == "python" and not alone and not _BY_NAME.search(text):
            before += text


def test_what_pages_make_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    extras = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert set(re.findall(r"`?make ([a-z]+(?:-[a-z]+)?)\b(?=`|  | *#|$)", text)) <= targets, page
        for extra in re.findall(r"pip install [^\n]*?\[(\w[\w,-]*)\]", text):
            assert all(f"\n{each} = [" in extras for each in extra.split(",")), (page, extra)


def test_the_notebook_runs_where_it_lies_and_shows_what_comes_out(tmp_path: Path) -> None:
    (tmp_path / "docs" / "tutorials").mkdir(parents=True)
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    texts = ["".join(cell["source"]) for cell in cells]
    done = run("python", "\n".join(texts), tmp_path / "docs" / "tutorials")
    assert done.returncode == 0, done.stderr
    printed = "".join("".join(each.get("text", "")) for cell in cells for each in cell["outputs"])
    assert printed == done.stdout != ""
    assert all(cell["outputs"] for cell in cells if not cell["source"][-1].startswith("assert"))
