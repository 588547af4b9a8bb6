"""Families of kernels: each imports only from those below it, and launches every source."""

import re
from pathlib import Path

import pytest

from tests.test_house import imported
from xcorr_app.gpu.direct.kernels import KERNELS as DIRECT
from xcorr_app.gpu.runtime.compile import kernel_root
from xcorr_app.gpu.tensor.kernels import KERNELS as TENSOR

GPU = Path(__file__).resolve().parent.parent / "xcorr_app" / "gpu"
BELOW = {
    "runtime": set(),
    "direct": {"runtime"},
    "peaks": {"runtime", "direct"},
    "tensor": {"runtime", "direct", "peaks"},
    "resample": {"runtime"},
}
"""Families that a family may import."""
TABLES = {"direct": DIRECT, "tensor": TENSOR}


@pytest.mark.parametrize("family", BELOW)
def test_a_family_imports_only_from_those_below_it(family: str) -> None:
    for path in sorted((GPU / family).glob("*.py")):
        families = {name.split(".")[2] for name in imported(path) if name.startswith("xcorr_app.gpu.")}
        assert families <= BELOW[family] | {family}, path.name


def test_every_source_is_launched_and_says_where_it_comes_from() -> None:
    named = {source for table in TABLES.values() for entry in table.values() for source in entry.sources}
    text = "".join(path.read_text() for path in GPU.rglob("*.py"))
    for path in kernel_root().glob("*/*.cu"):
        source = f"{path.parent.name}/{path.stem}"
        known = source in named or f'"{source}"' in text or f'"{path.stem}"' in text
        assert known or path.parent.name not in BELOW, path.name
        assert re.search(r"^// .*Documents?: [\w\"]", path.read_text(), re.MULTILINE), path.name


@pytest.mark.parametrize("family", TABLES)
def test_entries_say_who_they_are(family: str) -> None:
    for name, entry in TABLES[family].items():
        assert entry.name == name
