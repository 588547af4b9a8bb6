"""The page in a browser: every picture loads and nothing is wider than the window."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.builders import assessment, failed, pictures, preview, row, run, stack, unread
from xcorr_app.report.html import render_report

_FOUND = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
CHROMIUM = Path(next((path for path in _FOUND if path), "chromium"))
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
PROBE = """<script>
addEventListener("load", () => {
  const images = [...document.images];
  document.body.dataset.images = images.length;
  document.body.dataset.loaded = images.filter(i => i.complete && i.naturalWidth > 0).length;
  document.body.dataset.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
});
</script></body>"""


def dump(page: Path, profile: Path, width: int) -> str:
    switches = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync",
                "disable-background-networking", "disable-component-update", f"user-data-dir={profile}",
                f"window-size={width},900", "dump-dom")  # fmt: skip
    command = [str(CHROMIUM), *(f"--{switch}" for switch in switches), page.as_uri()]
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode("utf-8")


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 800, 500])
def test_pictures_load_and_fit(tmp_path: Path, width: int) -> None:
    rows = (row(0), row(1, source="long" * 60 + ".tif", flags=("edge",), remarks=("low-score",)), unread(2))
    wide = dataclasses.replace(pictures((20, 60), 3, (1,)), preview=preview())
    quality = assessment(closure=0.1)
    text = render_report(
        run(
            stack("wide <b>", rows, pictures=wide, pixel_size=(0.1, 0.1), unit="µm", assessment=quality),
            stack("tall", (), pictures=pictures((60, 3))),
            stack("unbroken" * 30, ()),
            failed("broken", "reason" * 40),
        )
    )
    # The page forbids scripts but its own; a copy without that line, and with a probe, is what can be asked.
    page = tmp_path / "report.html"
    # What is folded is not laid out: unfolded, it must fit too.
    text = text.replace("<details", "<details open")
    probed, policies = POLICY.subn("", text)
    assert policies == 1
    page.write_text(probed.replace("</body>", PROBE), encoding="utf-8")
    dom = dump(page, tmp_path / "profile", width)
    expected = 2 * 6 + 1 + 1
    assert f'data-images="{expected}"' in dom
    assert f'data-loaded="{expected}"' in dom
    assert 'data-overflow="0"' in dom
    assert "wide &lt;b&gt;" in dom


@pytest.mark.skipif(not CHROMIUM.exists(), reason="needs Chromium")
def test_the_page_lets_no_script_run_but_its_own(tmp_path: Path) -> None:
    """Its own gives the movie a button and a slider, pairs a line to slide, the table of stacks headings to sort by."""
    page = tmp_path / "report.html"
    shown = dataclasses.replace(pictures(), preview=preview())
    stacks = (stack("one", (row(0), row(1)), pictures=shown), failed("two"), failed("three"))
    page.write_text(render_report(run(*stacks)).replace("</body>", PROBE), encoding="utf-8")
    dom = dump(page, tmp_path / "profile", 1280)
    assert "Registration of cells" in dom
    assert "data-images" not in dom
    film = re.search(r'<div class="film".*?</figure>', dom, re.DOTALL)
    assert film is not None
    assert re.search(r"<button[^>]*>(Pause|Play)</button>", film[0])
    assert re.search(r"<output>\d+ of \d+</output>", film[0])
    assert dom.count(">Slide</button>") == 2
    assert 'type="search"' in dom
    assert '<button type="button">residual (px)</button>' in dom
