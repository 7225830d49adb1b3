"""What plans do to the files of a lake: also twice, also half."""

from __future__ import annotations

from pathlib import Path

import pytest

from zenwire.spark.ingest import exchange as exchanging
from zenwire.spark.ingest.exchange import exchange
from zenwire.spark.ingest.lake import Change, Lake
from zenwire.spark.write_layout import TableError


def staged(lake: Lake, *names: str) -> list[Path]:
    folder = lake.journal("samples").begin()
    paths = [folder / name for name in names]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"new {path.name}")
    return paths


def put(lake: Lake, *names: str) -> None:
    for name in names:
        path = lake.out / "samples" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"old {path.name}")


def test_files_move_and_replace_once(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    put(lake, "p/a.parquet")
    new, more = staged(lake, "x.parquet", "y.parquet")
    (one, two) = lake.store.plan(Change("samples", {new: "p/a.parquet", more: "p/b.parquet"}))
    for plan in (one, one, two, two):
        lake.store.apply(plan)
    assert lake.store.files("samples") == ["p/a.parquet", "p/b.parquet"]
    assert (tmp_path / "samples/p/a.parquet").read_text() == "new x.parquet"


@pytest.mark.parametrize("at_once", [True, False])
def test_files_become_fewer_in_one_moment(
    tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(exchanging, "_at_once", lambda *_: False)
    lake = Lake(tmp_path)
    put(lake, "p/a.parquet", "p/b.parquet", "p/stays.parquet", "q/other.parquet")
    (new,) = staged(lake, "x.parquet")
    change = Change("samples", {new: "p/ab.parquet"}, ["p/a.parquet", "p/b.parquet"])
    (plan,) = lake.store.plan(change)
    before = lake.store.files("samples")
    assert before == ["p/a.parquet", "p/b.parquet", "p/stays.parquet", "q/other.parquet"]
    for _ in range(3):
        lake.store.apply(plan)
    assert lake.store.files("samples") == ["p/ab.parquet", "p/stays.parquet", "q/other.parquet"]
    assert [p.name for p in (tmp_path / "samples/p").iterdir() if p.name[0] == "."] == []


def test_an_exchange_that_was_ended_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no exchange, the old directory has stepped aside already."""
    monkeypatch.setattr(exchanging, "_at_once", lambda *_: False)
    new, old = tmp_path / "new", tmp_path / "old"
    new.mkdir()
    (tmp_path / "new.aside").mkdir()
    exchange(new, old)
    assert old.is_dir()
    assert new.is_dir()


def test_a_lake_has_one_writer_and_one_format(tmp_path: Path) -> None:
    with Lake(tmp_path / "l").locked(), pytest.raises(TableError, match="another ingest"):
        Lake(tmp_path / "l").locked().__enter__()
    with pytest.raises(TableError, match="are of format parquet"):
        Lake(tmp_path / "l", "delta").locked().__enter__()
    with pytest.raises(TableError, match="no format orc"):
        Lake(tmp_path / "l", "orc")


def test_tables_of_another_program_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    with pytest.raises(TableError, match="not made by ingest"):
        Lake(tmp_path).locked().__enter__()
