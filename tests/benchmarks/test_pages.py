"""Figures on the pages: the commands that measure them and the records that hold them are there."""

from __future__ import annotations

import importlib.util
import re

import pytest

from benchmarks.commands import bench
from tests.test_docs import PAGES
from tests.test_house import ROOT

TEXT = {page: page.read_text(encoding="utf-8") for page in PAGES}
RECORDS = ROOT / "benchmarks" / "results"
NAMED = re.compile(r"[a-z0-9_]+\.(?:json|csv)")


def test_every_record_is_named_on_a_page():
    named = {name for text in TEXT.values() for name in NAMED.findall(text)}
    # A page names the profiles of the four documents together.
    kept = {path.name for path in RECORDS.iterdir() if path.suffix in (".json", ".csv")}
    assert kept - named == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_there(page):
    text = " ".join(TEXT[page].split())
    for module in re.findall(r"python -m (benchmarks\.[a-z_.]+[a-z])", text):
        assert importlib.util.find_spec(module), module
    for command in re.findall(r"python -m benchmarks ([a-z0-9]+)", text):
        assert command in bench.commands
    for name in re.findall(r"benchmarks/results/([a-z0-9_]+\.(?:json|csv|txt))", text):
        assert (RECORDS / name).exists(), name
