"""The manifest says what it was told, and nothing else is one."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyarrow")

from hypothesis import given
from hypothesis import strategies as st

from zenwire.spool.manifest import LOGS, Manifest, ManifestFault, Segment, time_of, time_text

times = st.integers(-(1 << 63), (1 << 63) - 1)


@given(times)
def test_times_come_back_to_the_nanosecond(nanoseconds: int) -> None:
    assert time_of(time_text(nanoseconds)) == nanoseconds


def test_times_are_for_people() -> None:
    assert time_text(1_800_000_000_000_000_001) == "2027-01-15T08:00:00.000000001Z"
    for text in ("", "yesterday", "2027-01-15T08:00:00.x1Z", 7, None):
        with pytest.raises((ValueError, TypeError)):
            time_of(text)


@st.composite
def segments(draw: st.DrawFn) -> list[Segment]:
    at = draw(st.integers(0, 1 << 40))
    found = []
    for last in draw(st.lists(st.booleans(), max_size=4)):
        first = at + draw(st.integers(0, 5))
        at = first + draw(st.integers(0, 1000))
        bounds = draw(st.none() | times), draw(st.none() | times)
        size = draw(st.integers(0, 1 << 50))
        found.append(Segment(first, at, size, *bounds, draw(st.text(max_size=5))))
        if last and len(found) == 4:
            found[-1] = Segment(first)
    return found


@given(st.text(), segments(), segments(), st.none() | times)
def test_a_manifest_comes_back(
    name: str, samples: list[Segment], losses: list[Segment], closed: int | None
) -> None:
    manifest = Manifest(name, "id", 5, "who", closed, settings={"a": [1, None]})
    for log, found in zip(LOGS, (samples, losses), strict=True):
        manifest = manifest.with_log(log, found, 17)
    assert Manifest.of_text(manifest.to_text()) == manifest
    # A line for each segment, for those who look at it.
    lines = manifest.to_text().splitlines()
    assert sum('"file"' in line for line in lines) == len(samples) + len(losses)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_other_json_is_no_manifest(value: object) -> None:
    good = json.loads(Manifest("n", "i", 1).with_log("samples", [Segment(0, 5)], 5).to_text())
    with pytest.raises(ManifestFault):
        Manifest.of_text(json.dumps(value))
    for name in ("samples", "next", "closed", "created", "settings"):
        text = json.dumps({**good, "next": {"samples": 5, "losses": 0}, name: value})
        try:
            found = Manifest.of_text(text)
        except ManifestFault:
            continue
        assert isinstance(found, Manifest)
        assert value in (None, [], 0) or isinstance(value, str | list)
