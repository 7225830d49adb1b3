"""Retention: by age and bytes, and never of what a registered reader has not read."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from tests.unit.spool.rows import losses, numbers, samples
from zenwire.spool import OffsetGone, Retention, Settings, Spool, Writer
from zenwire.spool.inspection import info, verify
from zenwire.spool.manifest import Segment
from zenwire.spool.retention import Ages, to_drop

SECOND = 1_000_000_000


def fill(path: Path, retention: Retention, start: int = 0, count: int = 10) -> None:
    """A segment for each ten rows."""
    settings = Settings(segment_bytes=1, sync_interval=3600.0, retention=retention)
    with Writer.open(path, settings) as writer:
        for first in range(start, start + count * 10, 10):
            assert writer.append(samples(range(first, first + 10))) == first
            writer.flush()


def test_bytes(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, Retention(), count=2)
    each = Spool.open(path).samples.segments()[0].bytes
    fill(path, Retention(bytes=3 * each), start=20)
    spool = Spool.open(path)
    assert spool.samples.earliest() == 90
    assert numbers(spool.samples) == list(range(90, 120))
    with pytest.raises(OffsetGone) as gone:
        numbers(spool.samples, 89)
    assert (gone.value.offset, gone.value.earliest) == (89, 90)
    assert len(list((path / "samples").iterdir())) == 6
    assert losses(path) == []
    assert verify(path).faults == ()


def test_a_slow_reader_keeps_what_it_has_not_read(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, Retention(), count=4)
    spool = Spool.open(path)
    assert spool.register("slow") == 0
    assert spool.register("quick", 20) == 20
    fill(path, Retention(bytes=1), start=40, count=2)
    assert numbers(spool.samples) == list(range(60))
    spool.commit("quick", 60)
    spool.commit("slow", 25)
    fill(path, Retention(bytes=1), start=60, count=1)
    assert spool.samples.earliest() == 20
    (quick, slow) = info(path).readers
    assert (quick.name, quick.behind, slow.behind) == ("quick", 10, 45)
    spool.forget("slow")
    fill(path, Retention(bytes=1), start=70, count=1)
    assert spool.samples.earliest() == 60
    assert spool.register("quick") == 60
    # The file of a reader that nobody can read keeps everything.
    (path / "readers" / "odd.json").write_text("{}")
    fill(path, Retention(bytes=1), start=80, count=2)
    assert spool.samples.earliest() == 60
    assert [r.name for r in info(path).readers if r.broken] == ["odd"]


def test_unread_rows_go_if_told_so_and_that_is_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, Retention(), count=4)
    Spool.open(path).register("slow", 5)
    fill(path, Retention(bytes=1, unread=True), start=40, count=1)
    lost = [x for x in losses(path) if x["kind"] == "retention"]
    assert sum(int(str(x["count"])) for x in lost) == Spool.open(path).samples.earliest() - 5


def test_offsets_go_on_where_nothing_is_left(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, Retention(bytes=1), count=3)
    spool = Spool.open(path)
    assert spool.samples.earliest() == spool.samples.latest() == 30
    assert numbers(spool.samples) == []
    fill(path, Retention(), start=30, count=1)
    assert numbers(spool.samples) == list(range(30, 40))


def test_age_is_not_counted_by_a_clock_that_jumps() -> None:
    old = [Segment(i * 10, i * 10 + 10, 100, 0, (100 + i) * SECOND) for i in range(3)]
    ages = Ages(old, 110 * SECOND, 5.0)
    keep = Retention(age=9.5)
    assert to_drop(old, 300, retention=keep, ages=ages, readers={}, monotonic=5.0) == 1
    new = [*old, Segment(30, 40, 100, 0, 10**18)]
    assert to_drop(new, 400, retention=keep, ages=ages, readers={}, monotonic=6.0) == 2
    assert to_drop(new, 400, retention=keep, ages=ages, readers={}, monotonic=15.4) == 3
    assert to_drop(new, 400, retention=keep, ages=ages, readers={}, monotonic=15.6) == 4
    # Rows of the future are not old.
    assert Ages(new, 110 * SECOND, 5.0).age(new[3], 5.0) == 0


def test_age(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, Retention(), count=3)
    # Their times are of 1970.
    fill(path, Retention(age=1000.0), start=30, count=1)
    assert Spool.open(path).samples.earliest() == 30


def test_what_is_old_goes_though_nothing_comes(tmp_path: Path) -> None:
    settings = Settings(segment_age=0.05, sync_interval=0.01, retention=Retention(age=0.1))
    with Writer.open(tmp_path / "s", settings) as writer:
        assert writer.append(samples(range(5))) == 0
        spool = Spool.open(tmp_path / "s")
        while spool.samples.earliest() < 5:
            time.sleep(0.01)
        assert spool.samples.latest() == 5
        assert writer.append(samples(range(5, 7))) == 5
        writer.flush()
        assert spool.samples.latest() == 7


def fill_lossy(path: Path, retention: Retention, start: int, count: int) -> None:
    """A segment for each ten rows, and one of losses with each."""
    settings = Settings(segment_bytes=1, sync_interval=3600.0, retention=retention)
    with Writer.open(path, settings) as writer:
        for first in range(start, start + count * 10, 10):
            writer.lose("link", f"before {first}", count=1)
            writer.append(samples(range(first, first + 10)))
            writer.flush()


def told(path: Path) -> list[str]:
    log = Spool.open(path).losses
    read = log.read(log.earliest(), log.latest())
    return [row["reason"] for rows in read for row in rows.batch.to_pylist()]


def test_losses_go_with_the_samples_around_them(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill_lossy(path, Retention(), 0, 4)
    each = Spool.open(path).samples.segments()[0].bytes
    fill_lossy(path, Retention(bytes=3 * each), 40, 4)
    spool = Spool.open(path)
    assert spool.samples.earliest() == 50
    # What is missing in front of the first row that is there is told.
    assert told(path) == ["before 50", "before 60", "before 70"]
    assert spool.losses.earliest() == 5
    assert len(list((path / "losses").iterdir())) == 6
    assert verify(path).faults == ()


def test_a_slow_reader_keeps_losses_too(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill_lossy(path, Retention(), 0, 4)
    spool = Spool.open(path)
    assert spool.register("slow", log="losses") == 0
    assert spool.register("slow", log="losses") == 0
    fill_lossy(path, Retention(bytes=1), 40, 2)
    assert spool.samples.earliest() == 60
    assert len(told(path)) == 6
    (reading,) = info(path).readers
    assert (reading.name, reading.position, reading.behind) == ("slow", 0, 6)
    spool.commit("slow", 3, log="losses")
    fill_lossy(path, Retention(bytes=1), 60, 1)
    assert told(path)[0] == "before 30"
    fill_lossy(path, Retention(bytes=1, unread=True), 70, 1)
    assert "losses were removed before slow had read them" in told(path)
    assert "before 40" not in told(path)


def test_a_damaged_segment_of_losses_goes_as_well(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill_lossy(path, Retention(), 0, 3)
    data = path / "losses" / Spool.open(path).losses.segments()[0].data
    data.write_bytes(data.read_bytes()[:-40] + bytes(40))
    fill_lossy(path, Retention(bytes=1), 30, 1)
    assert told(path) == []
    assert verify(path).faults == ()
