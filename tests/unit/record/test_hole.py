"""A hole that a recorder did not come to fill is left to the next one."""

from __future__ import annotations

import shutil
from pathlib import Path

from zenwire.record.hole import NAME, Hole
from zenwire.spool import Writer


def test_a_hole_is_kept_until_it_is_filled(tmp_path: Path) -> None:
    place = tmp_path / "s"
    Writer.open(place).close()
    hole = Hole(place, 100)
    assert hole.first == 100
    assert not hole.begin(120)
    # Killed here: what came since is behind the hole.
    assert Hole(place, 150).first == 100
    assert hole.take(again=True) == 100
    assert hole.take(again=False) == 100
    assert hole.begin(170)
    # Killed while it filled the first, and the second was there.
    assert Hole(place, 180).first == 100
    hole.keep(filled=True)
    assert Hole(place, 180).first == 170
    assert hole.take(again=False) == 170
    hole.keep(filled=True)
    assert not (place / NAME).exists()
    assert Hole(place, 180).first == 180


def test_rows_that_were_not_published_are_behind_it(tmp_path: Path) -> None:
    place = tmp_path / "s"
    Writer.open(place).close()
    assert Hole(place, 90).begin(95) is False
    assert Hole(place, 80).first == 80


def test_what_is_no_hole_is_passed_over(tmp_path: Path) -> None:
    place = tmp_path / "s"
    Writer.open(place).close()
    for text in ("{", "[]", '{"from": -1}', '{"from": "x"}', "{}"):
        (place / NAME).write_text(text)
        assert Hole(place, 7).first == 7


def test_a_spool_that_was_taken_away_does_not_come_back(tmp_path: Path) -> None:
    place = tmp_path / "s"
    Writer.open(place).close()
    hole = Hole(place, 7)
    shutil.rmtree(place)
    hole.begin(9)
    assert not place.exists()
