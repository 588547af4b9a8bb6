"""The report as a page: what it says, that it is valid and fits."""

import base64
import dataclasses
import hashlib
import html
import math
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tests.report.builders import assessment, failed, pictures, preview, row, run, stack, unread
from xcorr_app.registration.assessment import BeforeAfter
from xcorr_app.report.html import render_report
from xcorr_app.report.pictures import Pictures
from xcorr_app.report.records import FLAG_MEANINGS, RunReport, StackReport


class Page(HTMLParser):
    """Every element with its attributes, and all text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def full() -> RunReport:
    rows = (
        row(0),
        row(1, flags=("edge",), remarks=("low-score",), applied_dy=0.125),
        unread(2),
        row(3, flags=("disagrees",)),
        row(4),
    )
    doubtful = stack(
        "doubtful",
        rows=rows,
        pictures=dataclasses.replace(pictures(flagged=(1, 3)), preview=preview()),
        pixel_size=(0.5, 0.5),
        unit="µm",
        notes=("7 pixels were not finite.",),
        assessment=assessment(closure=0.125),
        interval=(2.5, "s"),
    )
    stacks = stack("quiet", pictures=pictures()), doubtful, failed("broken", "ends inside page 3")
    return dataclasses.replace(run(*stacks), date="2026-03-04")


@pytest.fixture(scope="module")
def rendered(full: RunReport) -> str:
    return render_report(full)


def test_everything_is_said(rendered: str) -> None:
    page = Page(rendered)
    for words in (
        "Registration of cells",
        "CPU, 2 cores",
        "quiet",
        "doubtful",
        "broken",
        "failed: ends inside page 3",
        "2026-03-04",
        "7 of 10 frames in 2 stacks corrected. 1 stack failed; most frames of 1 stack could not be trusted",
        "Frames corrected 2 of 5",
        "Correlation with the mean 0.700 → 0.900",
        "Crispness of the mean 0.100 → 0.200 2.00 times",
        "Residual shift (px) 4.000 → 0.050 rms; 7 of 8 frames tried, registered again",
        "Closure (px) 0.125",
        "6 of 5 frames, before (left) and after (right)",
        "2.5 s from frame to frame",
        "3 frames flagged; 1 without a shift; 2 not moved as measured",
        "pixels to add to each frame to land on the reference: rows (dy) down, columns (dx) right",
        "7 pixels were not finite.",
        "4 of 5 frames verified",
        "tolerance 0.01 px",
        "0.125, −0.250",
        "Dotted: the shifts applied, where they are not those measured.",
        "5 of 5 frames verified",
        "pixel 0.5 × 0.5 µm",
        "2 µm",
        "1 flagged frame without a picture here",
    ):
        assert words in page.text
    for flag in ("edge", "low-score", "unreadable", "disagrees"):
        assert FLAG_MEANINGS[flag] in page.text
    assert FLAG_MEANINGS["flat"] not in page.text


def test_a_stack_that_could_not_be_registered_says_so() -> None:
    rows = tuple(row(frame, flags=("uncertain",), applied_dy=0.0, applied_dx=0.0) for frame in range(3))
    known = assessment(correlation=BeforeAfter(-0.25, -0.25))
    page = Page(render_report(run(stack(rows=rows, pictures=pictures(), assessment=known))))
    assert "Frames corrected 0 of 3" in page.text
    assert "Correlation with the mean −0.250 after equals before" in page.text
    assert page.text.count("after equals before: no frame was moved") == 3
    assert "Failed: 3 of 3 frames could not be trusted; no frame was moved, so after equals before" in page.text
    assert page.text.count("No frame was moved: after equals before.") == 1
    assert "verdict failed" in [attributes.get("class") for attributes in page.all("p")]


def test_a_stack_that_stands_still_is_no_failure() -> None:
    rows = tuple(row(frame, dy=0.0, dx=0.0) for frame in range(3))
    page = Page(render_report(run(stack(rows=rows, pictures=pictures(), assessment=assessment()))))
    assert page.text.count("after equals before: no frame was moved") == 3
    assert "failed" not in " ".join(element.get("class") or "" for _, element in page.elements)


def test_nothing_is_asked_of_the_network(rendered: str) -> None:
    page = Page(rendered)
    assert {tag for tag, _ in page.elements}.isdisjoint({"link", "iframe", "object", "embed", "base"})
    assert not re.search(r"https?:|//\w|@import|url\(", re.sub(r"data:[^\"]*", "", rendered))
    policies = [meta["content"] or "" for meta in page.all("meta") if meta.get("http-equiv")]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'")
    (script,) = re.findall("<script>(.*?)</script>", rendered, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policies[0].endswith(f"script-src 'sha256-{digest}'")


def test_same_records_same_bytes(full: RunReport, rendered: str) -> None:
    assert render_report(full) == rendered


def test_names_are_escaped() -> None:
    evil = '<b>.tif"><script>alert(1)</script>'
    rows = (row(0, source=evil, flags=("edge", "<i>new</i>")),)
    text = render_report(
        RunReport(
            f"Title {evil}",
            ((evil, evil),),
            (
                stack(evil, rows, description=evil, reference=evil, notes=(evil,), unit=evil, pixel_size=(1, 1),
                      pictures=pictures(flagged=(0,))),
                failed(evil, evil),
            ),
        )
    )  # fmt: skip
    page = Page(text)
    assert not {"b", "i"} & {tag for tag, _ in page.elements}
    assert len(page.all("script")) == 1
    assert page.text.count(evil) >= 10
    assert html.escape("<i>new</i>") in text


def test_names_that_are_not_text_can_be_written() -> None:
    text = render_report(run(stack("\udcff.tif", (unread(0, source="\udcff.tif"),))))
    assert b"\\udcff.tif" in text.encode("utf-8")


def test_every_frame_is_in_the_page_of_a_short_stack() -> None:
    rows = (
        row(0),
        row(1, sigma_y=0.0625, applied_dx=7.0, flags=("edge",)),
        *(row(frame) for frame in range(2, 229)),
        row(229, dy=-0.0, dx=-0.0002, sigma_y=3e-6, sigma_x=0.03),  # no zero has a minus, and no error is none
    )
    page = Page(render_report(run(stack(rows=rows, interval=(0.5, "s")))))
    assert "1 0.5 0.500 ± 0.062 −0.250 ± 0.020 0.500, 7.000 0.950 edge" in page.text
    for words in (
        "229 114.5 0.000 ± 0.001 0.000 ± 0.030",
        "All 230 frames",
        "Frames 0 to 99",
        "Frames 100 to 199",
        "Frames 200 to 229",
    ):
        assert words in page.text
    assert {"class": "flagged"} in page.all("tr")


def test_an_infinite_standard_error_is_an_unknown_one() -> None:
    rows = (row(0), row(1, sigma_y=math.inf, sigma_x=math.inf, flags=("uncertain",)), row(2))
    text = Page(render_report(run(stack(rows=rows)))).text
    assert ["± unknown −0.250 ± unknown" in text, "Unknown for 1 frame." in text] == [True, True]


@pytest.mark.parametrize(("sigma", "flags", "drawn"), [(1.1, (), False), (1.1, ("uncertain",), True), (0.2, (), True)])
def test_the_limit_of_standard_errors_is_drawn_unless_frames_beyond_it_are_not_flagged(
    sigma: float, flags: tuple[str, ...], drawn: bool
) -> None:
    """What frames share of their standard errors flags none of them."""
    text = render_report(run(stack(rows=(row(0), row(1, sigma_x=sigma, flags=flags), row(2)), sigma_limit=0.5)))
    found = [words in text for words in (">flagged above<", "Dotted: above it a shift is flagged.", "it flags none")]
    assert found == [drawn, drawn, not drawn]


@pytest.mark.share(3)
@pytest.mark.parametrize("count", [2000, 2001, 9_000])
def test_the_table_of_a_long_stack_stays_small(count: int) -> None:
    page = render_report(run(stack(rows=tuple(row(frame, source="cells" * 20) for frame in range(count)))))
    text = Page(page).text
    assert "Frames 1900 to 1999" in text
    assert "Frames 2000" not in text
    assert (f"{count - 2000:,}".replace(",", " ") + " more frame" in text) == (count > 2000)
    assert len(page) < 1_500_000


def test_the_page_of_very_many_stacks_is_a_table_that_leads_to_their_own_pages() -> None:
    stacks = (*(stack(f"a {number}") for number in range(500)), failed("broken"))
    text = render_report(dataclasses.replace(run(*stacks), pages=frozenset(each.name for each in stacks[:-1])))
    links = re.findall(r'href="([^"]*)"', text)
    assert links == [f"a%20{number}/report.html" for number in range(500)]
    assert len(text) < 500_000
    assert "href" not in render_report(run(*stacks))


def blank(shape: tuple[int, int], value: float) -> Pictures:
    image = np.full(shape, value, np.float32)
    return Pictures(image, image, {0: image})


EDGES: dict[str, tuple[StackReport, ...]] = {
    "no stacks": (),
    "no rows": (stack(rows=()),),
    "no rows but pictures": (stack(rows=(), pictures=pictures()),),
    "one frame": (stack(rows=(row(0),), pictures=pictures()),),
    "all unreadable": (stack(rows=tuple(map(unread, range(4))), pictures=blank((8, 9), np.nan)),),
    "one pixel": (stack(rows=(), pictures=blank((1, 1), 3.0), pixel_size=(1, 1), unit="nm"),),
    "one row": (stack(rows=(), pictures=blank((1, 5000), 3.0), pixel_size=(1, 1), unit="nm"),),
    "one column": (stack(rows=(), pictures=blank((5000, 1), 3.0), pixel_size=(1, 1), unit="nm"),),
    "infinite pixels": (stack(rows=(), pictures=blank((4, 4), np.inf)),),
    "senseless pixel size": (stack(rows=(), pictures=pictures(), pixel_size=(0, 0), unit="µm"),),
    "zero tolerance": (stack(tolerance=0.0),),
    "zero window": (stack(max_shift=(0.0, 0.0)),),
    "all failed": (failed("a"), failed("b")),
    "nothing assessed": (stack(assessment=assessment(crispness=BeforeAfter(0.0, math.nan))),),
}


@pytest.mark.parametrize("name", EDGES)
def test_edges_render(name: str) -> None:
    text = render_report(run(*EDGES[name]))
    assert text.endswith("</html>\n")
    assert "nan" not in Page(text).text.split()
    for one in EDGES[name]:
        assert one.name in Page(text).text


def test_what_turns_a_name_around_is_shown() -> None:
    evil = "photo\u202efit.exe\u2066\u200b\x1b[31m"
    text = render_report(run(stack("s", (row(0, source=evil, flags=("edge",)),), notes=(evil,))))
    assert "photo\\u202efit.exe\\u2066\\u200b\\u001b[31m" in text
    assert not set(evil) - set("photofit.exe[31m") & set(text)
    assert "\u200d" in render_report(run(stack("\u0915\u094d\u200d\u0937", (row(0),))))  # a joiner, part of the script


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
    wide = dataclasses.replace(pictures((20, 60), (1,)), preview=preview())
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
    expected = 2 * 2 + 1 + 1
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
    assert dom.count(">Slide</button>") == 1
    assert 'type="search"' in dom
    assert '<button type="button">residual (px)</button>' in dom
