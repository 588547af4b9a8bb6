"""The pages: tables and figures are those of the program and its records, links lead somewhere."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

import xcorr_app
from xcorr_app.registration import quality

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "kernels" / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


def test_the_table_of_options_is_what_the_commands_declare() -> None:
    assert module_at(ROOT / "docs" / "write_options.py").page() == (ROOT / "docs" / "options.md").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if ":" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_headings(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8"))
    assert [each for each in links if each[1] not in anchors(page.parent / each[0] if each[0] else page)] == []


def anchors(page: Path) -> set[str]:
    """What GitHub and mkdocs both call the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", heading.lower().strip())) for heading in headings}


def test_figures_of_the_readme_are_those_of_the_results() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {
        line.split("|")[1].strip(): [cell.strip(" *") for cell in line.split("|")[2:-1]]
        for line in text.splitlines()
        if line.startswith("| ")
    }
    results = ROOT / "benchmarks" / "results"
    records = json.loads((results / "accuracy.json").read_text(encoding="utf-8"))["records"]
    plain = {
        each["snr"]: each["methods"] for each in records if (each["scene"], each["condition"]) == ("spots", "plain")
    }
    for label, snr, digits in (
        ("rms error, SNR 2, px <sup>1</sup>", 2.0, 3),
        ("the same, SNR 20, px <sup>1</sup>", 20.0, 4),
    ):
        ours, _, _, stackreg, skimage, _ = rows[label]
        assert ours == f"{plain[snr]['xcorr']['rms']:.{digits}f}"
        assert float(stackreg) == pytest.approx(plain[snr]["pystackreg"]["rms"], abs=0.0005)
        assert float(skimage.split()[0]) == pytest.approx(plain[snr]["scikit-image, none"]["rms"], abs=0.0005)
    speed = json.loads((results / "speed_cpu.json").read_text(encoding="utf-8"))["results"]
    ours, _, _, stackreg, skimage, _ = rows["frames/s, two CPU cores <sup>2</sup>"]
    measured = [speed[f"xcorr, verify {check}"]["frames_per_second"] for check in ("none", "all")]
    assert [int(number) for number in re.findall(r"\d+", ours)] == [round(each) for each in measured]
    assert int(stackreg) == round(speed["pystackreg"]["frames_per_second"])
    assert int(skimage.split()[0]) == round(speed["scikit-image, loop"]["frames_per_second"])
    real = json.loads((results / "real.json").read_text(encoding="utf-8"))["rows"].values()
    ours, _, _, _, skimage, _ = rows["nine real sets, 126 frames, CPU s <sup>5</sup>"]
    assert (len(real), sum(each["frames"] for each in real)) == (9, 126)
    assert float(ours) == pytest.approx(sum(each["call"]["cpu_s"] for each in real), abs=0.05)
    assert float(re.findall(r"[\d.]+", skimage)[0]) == pytest.approx(
        sum(r["scikit-image"]["cpu_s"] for r in real), abs=0.05
    )
    bent = json.loads((results / "motion.json").read_text(encoding="utf-8"))["patches"]
    errors = {row["tool"]: f"{row['rms_px']:.3f}" for row in bent if (row["periods"], row["snr"]) == (1.0, 2.0)}
    of_fields = rows["rms error of a field to 5 px, SNR 2, px <sup>4</sup>"]
    assert of_fields[:3] == [errors[tool] for tool in ("xcorr", "suite2p", "jnormcorre")]
    calls = (results / "calls.json").read_text(encoding="utf-8")
    rate = {r["call"]: 1e6 / r["us_a_frame"] for r in json.loads(calls)["estimate_shifts"] if r["side"] == 512}
    assert int(rows["frames/s, one H100 <sup>3</sup>"][0]) == pytest.approx(rate["defaults"], rel=0.005)
    (checked,) = re.findall(r"\(unchecked\);\s+(\d+)\s+when every", text)
    assert int(checked) == pytest.approx(rate["every frame checked"], rel=0.005)


def test_the_reference_has_every_public_name() -> None:
    listed = re.findall(
        r"^::: xcorr_app\.(\w+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted([*listed, "shift_pair", "__version__"]) == sorted(xcorr_app.__all__)


def test_what_is_drawn_as_flagged_is_flagged() -> None:
    script = module_at(ROOT / "docs" / "draw_flags.py")
    page = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8")
    for name, flags in script.flagged().items():
        assert name in flags
        assert f"(flags/{name}.webp)" in page


def test_every_flag_has_a_line_on_its_page() -> None:
    page = (ROOT / "docs" / "flags.md").read_text(encoding="utf-8")
    words = quality.DOUBTFUL | quality.FAILED | quality.REMARKS | {quality.NON_FINITE}
    assert [word for word in words if f"`{word}`" not in page] == []


def module_at(path: Path) -> Any:
    """A script of the pages as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_every_kernel_and_shared_header_is_explained_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    kernels = ROOT / "kernels"
    files = [*kernels.rglob("*.cu"), *(kernels / "include").glob("*.cuh")]
    assert files
    assert [path.name for path in files if path.name not in text] == []
