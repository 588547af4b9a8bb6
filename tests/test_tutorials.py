"""Every block of a tutorial runs as printed, one after another, in a folder beside the sample data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TUTORIALS = ROOT / "docs" / "tutorials"
_PRELUDE = f'set -e\nxcorr() {{ "{sys.executable}" -W error -m xcorr_app "$@"; }}\n'


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of what the page tells to run."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
        return [("python", "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))]
    return re.findall(r"^```(sh|python)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.share(7)
@pytest.mark.parametrize(
    "page", sorted(p for p in TUTORIALS.iterdir() if p.suffix in {".md", ".ipynb"}), ids=lambda page: page.stem
)
def test_tutorial_runs(page: Path, tmp_path: Path) -> None:
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    parts = blocks(page)
    assert parts
    for language, text in parts:
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-c", _PRELUDE + text]
        run = subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True
        )
        assert run.returncode == 0, f"{text}\n{run.stdout}\n{run.stderr}"
