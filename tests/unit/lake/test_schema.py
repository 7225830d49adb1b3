"""docs/lake.md has every table and column as the code defines them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zenwire.lake.schema import TABLES

PAGE = (Path(__file__).parents[3] / "docs" / "lake.md").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_the_page_has_every_column(name: str) -> None:
    part = PAGE.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
    table = TABLES[name]
    assert table.meaning in part
    rows = [tuple(c.strip() for c in line.split("|")[1:-1]) for line in part.splitlines()]
    told = [row for row in rows if row and re.fullmatch(r"`\w+`", row[0])]
    wanted = [(f"`{c.name}`", c.unit, c.meaning) for c in table.columns]
    assert [(column, unit, meaning) for column, _, unit, meaning in told] == wanted


def test_the_page_has_no_other_table() -> None:
    assert re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE) == list(TABLES)
