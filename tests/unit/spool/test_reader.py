"""Reading: ranges, times, growing spools, and files that are not what they should be."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import ipc

from tests.unit.spool.rows import numbers, samples
from zenwire.columns.samples import SAMPLES
from zenwire.errors import ZError
from zenwire.spool import Settings, Spool, SpoolDamaged, SpoolError, Writer
from zenwire.spool.files import Local
from zenwire.spool.inspection import info, ls, verify
from zenwire.spool.reader import MANIFEST
from zenwire.spool.segment import SegmentWriter, message_of


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three segments of two batches of five rows, and a loss."""
    path = tmp_path_factory.mktemp("spools") / "good"
    with Writer.open(path, Settings(segment_bytes=5000, sync_interval=3600.0)) as writer:
        for first in range(0, 30, 5):
            writer.append(samples(range(first, first + 5), size=200))
            writer.flush()
        writer.lose("session", "gone", count=3)
    assert len(Spool.open(path).samples.segments()) == 3
    return path


def test_every_range(good: Path) -> None:
    log = Spool.open(good).samples
    for start in range(32):
        for end in range(34):
            assert numbers(log, start, end) == list(range(start, min(end, 30)))


def test_a_spool_that_grows(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s", Settings(segment_bytes=4000)) as writer:
        spool = Spool.open(tmp_path / "s")
        assert (spool.samples.earliest(), spool.samples.latest()) == (0, 0)
        for i in range(20):
            writer.append(samples([i], size=500))
            writer.flush()
            assert spool.samples.latest() == i + 1
            assert numbers(spool.samples) == list(range(i + 1))
            assert numbers(spool.samples, i) == [i]
            assert ls(tmp_path / "s")[-1].end == i + 1


def test_offsets_of_times(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s", Settings(segment_bytes=1)) as writer:
        # The clock goes back by 50 after the first ten rows.
        for first, time in ((0, 100), (10, 60), (20, 105)):
            writer.append(samples(range(first, first + 10), time=time))
            writer.flush()
    log = Spool.open(tmp_path / "s").samples
    times = [*range(100, 110), *range(60, 70), *range(105, 115)]
    for time in range(55, 120):
        true = next((i for i, t in enumerate(times) if t >= time), 30)
        assert log.offset_of_time(time) == true


def test_what_there_is_for_people(good: Path) -> None:
    found = info(good)
    assert (found.rows, found.losses, found.lost) == (30, 1, {"session": 3})
    assert [(s.first, s.end) for s in ls(good)] == [(0, 10), (10, 20), (20, 30)]
    checked = verify(good)
    assert (checked.rows, checked.faults) == (31, ())
    text = (good / MANIFEST).read_text()
    assert json.loads(text)["name"] == "good"
    assert "T" in json.loads(text)["samples"][0]["from"]
    assert max(map(len, text.splitlines())) < 400


def test_no_spool(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="no spool"):
        Spool.open(tmp_path)
    (tmp_path / MANIFEST).mkdir()
    with pytest.raises(SpoolError, match="cannot be read"):
        Spool.open(tmp_path)
    with pytest.raises(SpoolError, match="PyArrow or fsspec"):
        Spool.open("no-such-thing://x/y")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        "[" * 100_000,
        '{"format": "zenwire spool 2"}',
        '{"format": "zenwire spool 1"}',
    ],
)
def test_what_is_no_manifest(good: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "s"
    shutil.copytree(good, path)
    (path / MANIFEST).write_text(text)
    for use in (Spool.open, Writer.open):
        with pytest.raises(SpoolDamaged, match="manifest"):
            use(path)


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("first", -1),
        ("first", "0"),
        ("first", 1 << 70),
        ("end", 5.5),
        ("end", -4),
        ("bytes", None),
        ("from", "yesterday"),
        ("to", 7),
        ("note", []),
    ],
)
def test_a_manifest_with_a_wrong_value(good: Path, tmp_path: Path, at: str, value: object) -> None:
    path = tmp_path / "s"
    shutil.copytree(good, path)
    said = json.loads((path / MANIFEST).read_text())
    said["samples"][1][at] = value
    (path / MANIFEST).write_text(json.dumps(said))
    with pytest.raises(SpoolDamaged):
        Spool.open(path)


def test_a_manifest_that_is_gone_does_not_begin_the_spool_anew(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    shutil.copytree(good, path)
    (path / MANIFEST).unlink()
    with pytest.raises(SpoolDamaged, match="segments are"):
        Writer.open(path)


def test_files_that_do_not_belong_there(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    shutil.copytree(good, path)
    for folder in ("", "samples", "losses", "readers"):
        (path / folder).mkdir(exist_ok=True)
        (path / folder / "garbage").write_bytes(b"\xff" * 100)
        (path / folder / ".x.json").write_bytes(b"{")
        (path / folder / "dir.arrow").mkdir()
    (path / "samples" / "00000000000000000007.arrow").write_bytes(b"left by a crash")
    assert numbers(Spool.open(path).samples) == list(range(30))
    with Writer.open(path) as writer:
        writer.append(samples([30]))
    assert numbers(Spool.open(path).samples) == list(range(31))
    assert not (path / "samples" / "00000000000000000007.arrow").exists()
    assert (path / "samples" / "garbage").exists()


def test_damaged_files_give_one_error_and_nothing_else(good: Path, tmp_path: Path) -> None:
    """Whatever a file is changed to, rows that are read are those that were written."""
    chance = random.Random(11)
    files = [p.relative_to(good) for p in good.rglob("*") if p.suffix in (".arrow", ".index")]
    seen = 0
    for number in range(300):
        path = tmp_path / str(number)
        shutil.copytree(good, path)
        file = path / chance.choice(files)
        content = bytearray(file.read_bytes())
        match chance.randrange(5):
            case 0:
                del content[chance.randrange(len(content)) :]
            case 1:
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
            case 2:
                at = chance.randrange(len(content))
                content[at : at + 50] = chance.randbytes(50)
            case 3:
                content[:0] = chance.randbytes(8)
            case 4:
                content = bytearray()
        file.write_bytes(content)
        spool = Spool.open(path)
        for first in range(0, 30, 5):
            try:
                assert numbers(spool.samples, first, first + 5) == list(range(first, first + 5))
            except SpoolDamaged as e:
                seen += file.stem in e.file
        verify(path)
        try:
            spool.samples.offset_of_time(17)
            spool.losses.latest()
        except SpoolDamaged:
            pass
        shutil.rmtree(path)
    assert seen > 100


def test_a_segment_that_is_gone(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    shutil.copytree(good, path)
    (path / "samples" / f"{10:020d}.arrow").unlink()
    (path / "samples" / f"{20:020d}.index").unlink()
    log = Spool.open(path).samples
    assert numbers(log, 0, 10) == list(range(10))
    for first, name in ((12, "arrow"), (22, "index")):
        with pytest.raises(SpoolDamaged, match=f"{name} is damaged: it is not there"):
            numbers(log, first)
    assert len(verify(path).faults) >= 2


def test_rows_that_were_made_to_do_harm(tmp_path: Path) -> None:
    """The checksums are right, the offsets within the columns are not."""
    path = tmp_path / "s"
    with Writer.open(path) as writer:
        writer.append(samples(range(5)))
    batch = samples(range(5))
    offsets = pa.py_buffer(b"".join(i.to_bytes(4, "little") for i in (0, 9, 3, 2_000_000, 1, 40)))
    wrong = pa.Array.from_buffers(pa.binary(), 5, [None, offsets, pa.py_buffer(b"x" * 40)])
    batch = batch.set_column(2, SAMPLES.field("payload"), wrong)
    first = Spool.open(path).samples.segments()[0]
    try:
        message = message_of(batch)
    except pa.ArrowException:
        pytest.skip("Arrow does not write it")
    segment = SegmentWriter(Local(path), "samples", 0, SAMPLES, 1)
    segment.write(message, 1)
    segment.sync()
    assert segment.seal().end == first.end
    segment.close()
    with pytest.raises(SpoolDamaged):
        numbers(Spool.open(path).samples)


def test_columns_of_something_else(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    shutil.copytree(good, path)
    rows = pa.table({"x": [1, 2]})
    with ipc.new_stream(path / "samples" / f"{0:020d}.arrow", rows.schema) as stream:
        stream.write_table(rows)
    with pytest.raises(SpoolDamaged, match="columns"):
        numbers(Spool.open(path).samples)


def test_another_spool_in_its_place_is_seen(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with Writer.open(tmp_path / name) as writer:
            writer.append(samples(range(5)))
    spool = Spool.open(tmp_path / "a")
    assert spool.samples.latest() == 5
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "b").rename(tmp_path / "a")
    with pytest.raises(ZError, match="another spool"):
        spool.samples.latest()
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(SpoolError, match="no spool"):
        spool.samples.latest()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200])
def test_names_that_no_reader_has(good: Path, name: str) -> None:
    with pytest.raises(SpoolError, match="name a reader"):
        Spool.open(good).register(name)
