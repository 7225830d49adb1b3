from __future__ import annotations

import pytest

from zenwire.api.ext.timerange import TimeRange
from zenwire.errors import EncodeError


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("[..]", None, None),
        ("[now()..]", 1000, None),
        ("[now(-1h)..now()]", 1000 - 3600, 1000),
        ("[..now(2m)]", None, 1120),
        ("[now(-1.5s)..]", 998.5, None),
        ("[now(-500ms)..]", 999.5, None),
        ("[now(-500000u)..]", 999.5, None),
        ("[now(-1d)..]", 1000 - 86400, None),
        ("[now(-1w)..]", 1000 - 7 * 86400, None),
        ("[now(-2h);1h]", 1000 - 7200, 1000 - 3600),
        ("[now(-10);1]", 990, 991),
        ("[1970-01-01T00:00:05Z..1970-01-01T00:00:06.5Z]", 5, 6.5),
    ],
)
def test_ranges(text: str, start: float | None, end: float | None) -> None:
    found = TimeRange.parse(text, 1000)
    assert (found.start, found.end) == (start, end)


@pytest.mark.parametrize(
    "text",
    ["", "[", "[]", "..", "[now..]", "[now(..]", "[now(-)..]", "[now(1y)..]", "[1s..]", "(..)",
     "[now(--1s)..]", "[;1h]", "[now()]", "[now();]", "[1970-13-01T00:00:00Z..]", "[now(1e9s)..]"],
)  # fmt: skip
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(EncodeError):
        TimeRange.parse(text, 1000)


def test_bounds_turned_outwards_exclude() -> None:
    inside, outside = (
        TimeRange.parse("[now(-1s)..now()]", 10),
        TimeRange.parse("]now(-1s)..now()[", 10),
    )
    assert [inside.contains(t) for t in (8.9, 9, 9.5, 10, 10.1)] == [False, True, True, True, False]
    assert [outside.contains(t) for t in (9, 9.5, 10)] == [False, True, False]
