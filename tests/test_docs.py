"""The pages: drawings are what their scripts draw, links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "kernels" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def test_the_drawing_is_what_its_script_draws() -> None:
    spec = importlib.util.spec_from_file_location("draw_tensor_cores", ROOT / "docs" / "draw_tensor_cores.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.drawing() == (ROOT / "docs" / "tensor_cores.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if ":" not in link and not (page.parent / link).exists()] == []


def test_every_kernel_and_shared_header_is_explained_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    kernels = ROOT / "kernels"
    files = [*kernels.rglob("*.cu"), *(kernels / "include").glob("*.cuh")]
    assert files
    assert [path.name for path in files if path.name not in text] == []
