"""Documents are true where a machine can tell: links lead somewhere, named files exist."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from zenwire.routing import Counters, Limits

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "zenwire"
PAGES = sorted(
    str(page.relative_to(ROOT)) for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text()
    links = re.findall(r"\]\(([^)#\s]+)", text)
    missing = [
        link
        for link in links
        if "://" not in link and not (ROOT / page).parent.joinpath(link).exists()
    ]
    assert missing == []


def test_readme_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "README.md").read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


# A section about a layer names files without it.
_LAYERS = ("", "wire", "columns", "capture", "spark", "spark/tables")


def test_architecture_names_files_that_exist_and_plans_those_that_do_not() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    named = re.findall(r"`([a-z0-9_/]+\.py)`( \*\(planned\)\*)?", text)
    assert named
    for path, planned in named:
        exists = any((SRC / layer / path).exists() for layer in _LAYERS)
        assert exists != bool(planned), path


def test_every_decision_is_listed_and_has_its_four_parts() -> None:
    folder = ROOT / "docs" / "adr"
    listing = (folder / "README.md").read_text()
    for record in folder.glob("0*.md"):
        assert f"({record.name})" in listing
        parts = re.findall(r"^## (.*)$", record.read_text(), re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences", "What would change our mind"]


def test_every_limit_of_routing_is_documented_with_its_default_and_counters() -> None:
    text = (ROOT / "docs" / "limits.md").read_text().partition("\n## Routing\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| .+ \| .+ \| (.+) \|$", text, re.MULTILINE)
    documented = {name: int(default.replace(",", "")) for name, default, _ in rows}
    assert documented == {one.name: one.default for one in fields(Limits)}
    counters = {name for *_, named in rows for name in re.findall(r"`(\w+)`", named)}
    known = {one.name for one in fields(Counters)}
    assert counters <= known
    assert {name for name in known if name.startswith("limit_")} <= counters
