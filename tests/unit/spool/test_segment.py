"""Recovery: whatever a crash leaves behind the synced rows, a prefix of all rows is kept."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc

from tests.unit.spool.rows import losses, numbers, samples
from zenwire.columns.samples import SAMPLES
from zenwire.spool import Spool, SpoolDamaged, Writer
from zenwire.spool.files import Local
from zenwire.spool.index import ENTRY_SIZE, HEADER_SIZE, PUBLISHED_AT
from zenwire.spool.inspection import verify
from zenwire.spool.manifest import LOGS, Manifest, Segment
from zenwire.spool.reader import MANIFEST
from zenwire.spool.segment import END, SegmentWriter, message_of, recover

NAMES = Segment(0).data, Segment(0).index


class Crashed:
    """A spool whose writer died: ``batches`` were written, the first ``synced`` of them synced."""

    def __init__(self, path: Path, batches: list[int], synced: int) -> None:
        path.mkdir()
        self.path = path
        place = Local(path)
        writer = SegmentWriter(place, "samples", 0, SAMPLES, 1)
        self.ends = [(0, writer.size, HEADER_SIZE)]
        at = 0
        for number, rows in enumerate(batches):
            if number == synced:
                writer.sync()
            writer.write(message_of(samples(range(at, at + rows))), 1)
            at += rows
            self.ends.append((at, writer.size, HEADER_SIZE + (number + 1) * ENTRY_SIZE))
        if synced >= len(batches):
            writer.sync()
        writer.close()
        self.rows = at
        self.synced = self.ends[min(synced, len(batches))]
        manifest = Manifest("s", "id", 1, "the dead one")
        for log in LOGS:
            manifest = manifest.with_log(log, [Segment(0)] if log == "samples" else [], 0)
        place.replace(MANIFEST, manifest.to_text().encode())

    def file(self, index: bool) -> Path:
        return self.path / "samples" / NAMES[index]

    def check(self) -> int:
        """Opens it as the next writer does. Gives the rows that are there."""
        with Writer.open(self.path) as writer:
            end = writer.append(samples([]))
            assert end is not None
            assert self.synced[0] <= end <= self.rows
            writer.append(samples(range(1000, 1003)))
        spool = Spool.open(self.path)
        assert numbers(spool.samples) == [*range(end), 1000, 1001, 1002]
        assert verify(self.path).faults == ()
        assert losses(self.path)[0]["kind"] == "recorder"
        for file in (self.path / "samples").glob("*.arrow"):
            with ipc.open_stream(file) as stream:
                stream.read_all()
        return end


batches = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), sizes=batches)
def test_any_damage_behind_the_synced_rows(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, sizes: list[int]
) -> None:
    synced = data.draw(st.integers(0, len(sizes)))
    path = tmp_path_factory.mktemp("crash") / "s"
    crashed = Crashed(path, sizes, synced)
    for index in (False, True):
        file = crashed.file(index)
        kept = crashed.synced[1 + index]
        content = file.read_bytes()
        cut = data.draw(st.integers(kept, len(content)))
        tail = data.draw(
            st.one_of(
                st.just(b""),
                st.integers(0, 300).map(bytes),
                st.binary(max_size=200),
                st.just(content[cut:]),
                # Later pages reached the disk, earlier ones did not.
                st.just(bytes(min(40, len(content) - cut)) + content[cut + 40 :]),
                st.just(END),
            )
        )
        file.write_bytes(content[:cut] + tail)
    try:
        crashed.check()
    finally:
        shutil.rmtree(path.parent)


def test_every_byte_of_the_tail(tmp_path: Path) -> None:
    """Cut at each byte of what was not synced."""
    whole = Crashed(tmp_path / "whole", [3, 2, 4], 1)
    for index in (False, True):
        size = whole.file(index).stat().st_size
        step = 1 if index else 97
        for cut in range(whole.synced[1 + index], size + 1, step):
            path = tmp_path / f"{index}{cut}"
            shutil.copytree(whole.path, path)
            place = Local(path)
            file = path / "samples" / NAMES[index]
            with file.open("r+b") as f:
                f.truncate(cut)
            found = recover(place, "samples", 0, SAMPLES)
            expected = max(end[0] for end in whole.ends if end[1 + index] <= cut)
            assert found.segment.end == expected
            assert found.lost == 0
            shutil.rmtree(path)


def test_nothing_was_written(tmp_path: Path) -> None:
    for number, damage in enumerate((b"", bytes(64), b"x" * 10)):
        crashed = Crashed(tmp_path / str(number), [2], 0)
        crashed.file(True).write_bytes(damage)
        assert crashed.check() == 0
    crashed = Crashed(tmp_path / "none", [2], 0)
    crashed.file(True).unlink()
    crashed.file(False).unlink()
    assert crashed.check() == 0


def test_a_disk_that_lost_what_it_had_synced_gives_no_offset_twice(tmp_path: Path) -> None:
    crashed = Crashed(tmp_path / "s", [3, 3, 3], 3)
    with crashed.file(False).open("r+b") as f:
        f.truncate(crashed.ends[2][1] + 5)
    with Writer.open(crashed.path) as writer:
        assert writer.append(samples(range(100, 102))) == 9
    spool = Spool.open(crashed.path)
    assert numbers(spool.samples) == [*range(6), 100, 101]
    assert [r.first for r in spool.samples.read(0, 11)] == [0, 3, 9]
    (lost,) = [x for x in losses(crashed.path) if x["kind"] == "damage"]
    assert (lost["count"], lost["offset"]) == (3, 6)


def test_a_flipped_bit_among_published_rows_hides_those_alone(tmp_path: Path) -> None:
    crashed = Crashed(tmp_path / "s", [3, 3, 3], 3)
    content = bytearray(crashed.file(False).read_bytes())
    content[crashed.ends[1][1] + 700] ^= 1
    crashed.file(False).write_bytes(content)
    with Writer.open(crashed.path) as writer:
        assert writer.append(samples(range(100, 102))) == 9
    log = Spool.open(crashed.path).samples
    assert numbers(log, 0, 3) == [0, 1, 2]
    with pytest.raises(SpoolDamaged, match="offsets 3 to 5: the checksum"):
        numbers(log, 0, 11)
    assert numbers(log, 6, 11) == [6, 7, 8, 100, 101]
    checked = verify(crashed.path)
    assert checked.rows == 8 + len(losses(crashed.path))
    assert len(checked.faults) == 1


def test_half_a_header_is_no_header(tmp_path: Path) -> None:
    crashed = Crashed(tmp_path / "s", [3], 1)
    with crashed.file(True).open("r+b") as f:
        f.seek(PUBLISHED_AT)
        f.write(b"\x01")
    with pytest.raises(SpoolDamaged, match="published"):
        Spool.open(crashed.path).samples.latest()
    with pytest.raises(SpoolDamaged, match="published"):
        Writer.open(crashed.path)
