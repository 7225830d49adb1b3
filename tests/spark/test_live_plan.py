"""Offsets, options and partitions of format("zenoh"), without a Spark session."""

from __future__ import annotations

import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows

from tests.unit.spool.rows import samples
from zenwire.errors import ZError
from zenwire.spark.live.batch import SpoolReader
from zenwire.spark.live.offsets import share
from zenwire.spark.live.options import Options
from zenwire.spark.live.plan import Spools, cut
from zenwire.spark.live.source import ZenohSource
from zenwire.spark.live.stream import SpoolStream
from zenwire.spool import OffsetGone, Retention, Settings, Spool, SpoolDamaged, SpoolError, Writer


def fill(path: Path, start: int, count: int, *, each: int = 10, size: int = 8, **keep: Any) -> None:
    """So many batches; a segment for each two of them or so."""
    settings = Settings(segment_bytes=4000, sync_interval=3600.0, retention=Retention(**keep))
    with Writer.open(path, settings) as writer:
        for first in range(start, start + count * each, each):
            writer.append(samples(range(first, first + each), size=size))
            writer.flush()


def options(*paths: Path, **said: str) -> Options:
    return Options.of(CaseInsensitiveDict({"spool": ",".join(map(str, paths)), **said}))


def numbers(reader: SpoolReader | SpoolStream, parts: Any) -> list[tuple[str, int, int]]:
    """Spool, offset and what the payload says, of partitions that went to tasks."""
    found = []
    for part in parts:
        for rows in pickle.loads(pickle.dumps(reader)).read(pickle.loads(pickle.dumps(part))):
            of = rows.to_pylist()
            found += [
                (r["spool"], r["offset"], int.from_bytes(r["payload"][:8], "little")) for r in of
            ]
    return found


def offsets(said: dict[str, Any]) -> dict[str, int]:
    return {name: at["0"] for name, at in said.items()}


# Options.


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({}, "reads spools"),
        ({"spool": "x", "startingOffset": "earliest"}, "no option startingoffset"),
        ({"spool": "x", "connect": "tcp/1.2.3.4:5"}, "what to record"),
        ({"spool": "x", "sourceId": "a"}, "no option sourceid"),
        ({"spool": "x", "zenoh.mode": "router"}, "live sessions"),
        ({"spool": "x", "kafka.group.id": "a"}, "checkpoint"),
        ({"spool": "x", "subscribe": "a"}, "keyexpr"),
        ({"spool": "x", "startingOffsets": "soon"}, "earliest, latest"),
        ({"spool": "x", "startingOffsets": '{"a": {"1": 3}}'}, "earliest, latest"),
        ({"spool": "x", "startingOffsets": '{"a": -3}'}, "earliest, latest"),
        ({"spool": "x", "startingTimestamp": "noon"}, "milliseconds"),
        ({"spool": "x", "startingOffsets": "latest", "startingTimestamp": "5"}, "two ways"),
        ({"spool": "x", "maxRecordsPerTrigger": "0"}, "above 0"),
        ({"spool": "x", "failOnDataLoss": "maybe"}, "true or false"),
        ({"spool": "x", "keyexpr": "a//b"}, "key expression"),
        ({"spool": "x", "columns": "key,colour"}, "no colour"),
        ({"spool": "x", "table": "queries"}, "samples or losses"),
        ({"spool": "nothing-is-here-*"}, "no spool is like"),
        *(
            ({"spool": "x", name: "1"}, f"(?i)^{name}: ")
            for name in (
                "assign",
                "subscribePattern",
                "kafka.bootstrap.servers",
                "startingOffsetsByTimestamp",
                "endingOffsetsByTimestamp",
                "startingOffsetsByTimestampStrategy",
                "maxOffsetsPerTrigger",
                "minOffsetsPerTrigger",
                "maxTriggerDelay",
                "maxRecordsPerPartition",
                "includeHeaders",
                "groupIdPrefix",
                "fetchOffset.numRetries",
                "kafkaConsumer.pollTimeoutMs",
                "kafka.security.protocol",
            )
        ),
    ],
)
def test_options_that_are_refused(said: dict[str, str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Options.of(CaseInsensitiveDict(said))


@pytest.mark.parametrize(
    ("said", "stream"),
    [
        ({"endingOffsets": "latest"}, True),
        ({"endingTimestamp": "7"}, True),
        ({"startingOffsets": "latest"}, False),
        ({"startingOffsets": '{"a": {"0": -1}}'}, False),
        ({"endingOffsets": "earliest"}, False),
        ({"maxRecordsPerTrigger": "7"}, False),
        ({"maxBytesPerTrigger": "7"}, False),
        ({"reader": "me"}, False),
    ],
)
def test_options_of_the_other(said: dict[str, str], stream: bool) -> None:
    source = ZenohSource(CaseInsensitiveDict({"spool": "x", **said}))
    with pytest.raises(ValueError, match=r"for streams|for spark.read|nothing to read"):
        source.streamReader(source.schema()) if stream else source.reader(source.schema())


def test_columns_that_are_asked_for() -> None:
    source = ZenohSource(CaseInsensitiveDict({"spool": "x", "columns": "offset, key"}))
    assert source.schema().names == ["offset", "key"]
    without = ZenohSource(CaseInsensitiveDict({"spool": "x", "INCLUDEattachment": "false"}))
    assert "attachment" not in without.schema().names
    assert "payload" in without.schema().names


def test_times_are_read_as_iso_or_milliseconds() -> None:
    for text in ("2026-03-01T12:00:00.25Z", "2026-03-01T13:00:00.25+01:00", "1772366400250"):
        found = options(Path("x"), startingTimestamp=text)
        assert found.starting_time == 1772366400250 * 1_000_000


# Shares and cuts.


def test_shares_are_no_more_than_asked_for_and_leave_nobody_out() -> None:
    chance = random.Random(2)
    for _ in range(300):
        left = {name: chance.choice([0, 1, 5, 1000]) for name in "abcd"}
        most = chance.randrange(1, 50)
        found = share(left, most)
        assert sum(found.values()) == min(most, sum(left.values()))
        assert all(0 <= found[name] <= left[name] for name in left)
        if most >= 4:
            assert all(found[name] for name in left if left[name])


def test_cuts_cover_everything_once() -> None:
    chance = random.Random(4)
    for _ in range(300):
        batches, at = [], 0
        for _batch in range(chance.randrange(6)):
            rows = chance.randrange(1, 20)
            batches.append((at, at + rows, chance.randrange(1, 1000)))
            at += rows
        found = list(cut(batches, chance.randrange(1, 1500)))
        assert [row for first, end in found for row in range(first, end)] == list(range(at))


# Batches.


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, range(100)),
        ({"startingOffsets": '{"s": {"0": 15}}', "endingOffsets": '{"s": 42}'}, range(15, 42)),
        ({"startingOffsets": "earliest", "endingOffsets": '{"s": {"0": -1}}'}, range(100)),
        ({"startingOffsets": '{"s": 90}', "endingOffsets": '{"s": 1000}'}, range(90, 100)),
        ({"startingTimestamp": "0", "endingTimestamp": "1970-01-01T00:00:00.000001Z"}, range(100)),
        ({"minPartitions": "7"}, range(100)),
        ({"maxPartitionBytes": "1"}, range(100)),
    ],
)
def test_ranges(tmp_path: Path, said: dict[str, str], expected: range) -> None:
    fill(tmp_path / "s", 0, 10)
    reader = SpoolReader(options(tmp_path / "s", **said).for_batch())
    parts = reader.partitions()
    assert numbers(reader, parts) == [("s", i, i) for i in expected]
    if "minPartitions" in said:
        assert len(parts) >= 7
    if "maxPartitionBytes" in said:
        assert len(parts) == 100


def test_offsets_that_name_other_spools(tmp_path: Path) -> None:
    fill(tmp_path / "s", 0, 1)
    for said in ('{"t": 5}', '{"s": 5, "t": 5}', "{}"):
        reader = SpoolReader(options(tmp_path / "s", startingOffsets=said))
        with pytest.raises(ValueError, match="in one of them alone"):
            reader.partitions()


def test_spools_of_one_name(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        fill(tmp_path / folder / "s", 0, 1)
    reader = SpoolReader(options(tmp_path / "a/s", tmp_path / "b/s"))
    with pytest.raises(ValueError, match="both named s"):
        reader.partitions()


def test_patterns_and_several_spools(tmp_path: Path) -> None:
    for name in ("s1", "s2", "other"):
        fill(tmp_path / name, 0, 2)
    (tmp_path / "s3").mkdir()
    reader = SpoolReader(options(tmp_path / "s*"))
    assert numbers(reader, reader.partitions()) == [
        (name, i, i) for name in ("s1", "s2") for i in range(20)
    ]


def test_damaged_rows_are_an_error_or_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, 0, 6, each=10, size=100)
    second = Spool.open(path).samples.segments()[1]
    file = path / "samples" / second.data
    content = bytearray(file.read_bytes())
    content[-100] ^= 4
    file.write_bytes(content)
    strict = SpoolReader(options(path))
    with pytest.raises(SpoolDamaged):
        numbers(strict, strict.partitions())
    loose = SpoolReader(options(path, failOnDataLoss="false"))
    found = [offset for _, offset, _ in numbers(loose, loose.partitions())]
    assert 0 < len(found) < 60
    assert found[-1] == 59
    (path / "samples" / second.index).unlink()
    with pytest.raises(SpoolDamaged):
        strict.partitions()
    found = [offset for _, offset, _ in numbers(loose, loose.partitions())]
    assert set(found) == set(range(60)) - set(range(second.first, second.end or 0))


# Streams.


def everything(stream: SpoolStream, at: dict[str, Any]) -> tuple[list[Any], dict[str, Any], int]:
    rows: list[Any] = []
    turns = 0
    while (to := stream.latestOffset(at, stream.getDefaultReadLimit())) != at:
        rows += numbers(stream, stream.partitions(at, to))
        at, turns = to, turns + 1
    return rows, at, turns


def test_where_a_stream_begins(tmp_path: Path) -> None:
    fill(tmp_path / "s", 0, 5)
    for said, expected in (
        ({}, 50),
        ({"startingOffsets": "earliest"}, 0),
        ({"startingOffsets": '{"s": {"0": 17}}'}, 17),
        ({"startingTimestamp": "1970-01-01T00:00:00Z"}, 0),
    ):
        stream = SpoolStream(options(tmp_path / "s", **said))
        assert offsets(stream.initialOffset()) == {"s": expected}


@pytest.mark.parametrize("said", [{}, {"maxRecordsPerTrigger": "7"}, {"maxBytesPerTrigger": "900"}])
def test_a_stream_gives_each_row_once(tmp_path: Path, said: dict[str, str]) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    at: dict[str, Any] | None = None
    rows: list[Any] = []
    for run in range(3):
        for path in paths:
            fill(path, run * 30, 3)
        # Each run is a query that was started again.
        stream = SpoolStream(options(*paths, startingOffsets="earliest", **said))
        at = stream.initialOffset() if at is None else at
        found, at, turns = everything(stream, at)
        rows += found
        assert turns > 3 if said else turns == 1
        assert stream.reportLatestOffset() == at
    assert sorted(rows) == [(name, i, i) for name in "ab" for i in range(90)]


def test_limits(tmp_path: Path) -> None:
    fill(tmp_path / "s", 0, 5, size=1000)
    stream = SpoolStream(
        options(tmp_path / "s", startingOffsets="earliest", maxBytesPerTrigger="1")
    )
    start = stream.initialOffset()
    assert stream.getDefaultReadLimit() == ReadMaxBytes(1)
    # A row that is larger than the limit goes through alone.
    assert offsets(stream.latestOffset(start, ReadMaxBytes(1))) == {"s": 1}
    assert offsets(stream.latestOffset(start, ReadAllAvailable())) == {"s": 50}
    plain = SpoolStream(options(tmp_path / "s"))
    assert offsets(plain.latestOffset(start, ReadMaxRows(13))) == {"s": 13}
    assert 2 <= offsets(plain.latestOffset(start, ReadMaxBytes(5000)))["s"] <= 5


def test_available_now_ends(tmp_path: Path) -> None:
    fill(tmp_path / "s", 0, 2)
    stream = SpoolStream(options(tmp_path / "s", startingOffsets="earliest"))
    stream.prepareForTriggerAvailableNow()
    fill(tmp_path / "s", 20, 2)
    rows, at, _ = everything(stream, stream.initialOffset())
    assert len(rows) == 20
    assert offsets(at) == {"s": 20}
    assert offsets(stream.reportLatestOffset() or {}) == {"s": 40}


def test_rows_that_retention_took(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, 0, 4)
    stream = SpoolStream(options(path, startingOffsets="earliest"))
    start = stream.initialOffset()
    fill(path, 40, 4, bytes=1)
    earliest = Spool.open(path).samples.earliest()
    assert earliest > 0
    for ask in (
        lambda: stream.latestOffset(start, ReadAllAvailable()),
        lambda: stream.partitions(start, stream.reportLatestOffset() or {}),
    ):
        with pytest.raises(OffsetGone, match=str(earliest)):
            ask()
    loose = SpoolStream(options(path, startingOffsets="earliest", failOnDataLoss="false"))
    rows, _, _ = everything(loose, start)
    assert [offset for _, offset, _ in rows] == list(range(earliest, 80))


def test_a_registered_stream_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, 0, 4)
    stream = SpoolStream(options(path, startingOffsets='{"s": 10}', reader="mine"))
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(15))
    assert Spool.open(path).readers()[0].position == 10
    fill(path, 40, 4, bytes=1)
    assert Spool.open(path).samples.earliest() <= 10
    stream.commit(end)
    assert Spool.open(path).readers()[0].position == 25
    # A restart does not go back.
    again = SpoolStream(options(path, reader="mine"))
    again.latestOffset(end, ReadAllAvailable())
    assert Spool.open(path).readers()[0].position == 25


def test_another_spool_of_that_name(tmp_path: Path) -> None:
    path = tmp_path / "s"
    fill(path, 0, 4)
    start = SpoolStream(options(path, startingOffsets='{"s": 20}')).initialOffset()
    shutil.rmtree(path)
    fill(path, 0, 3)
    with pytest.raises(SpoolError, match="another spool named s"):
        SpoolStream(options(path)).latestOffset(start, ReadAllAvailable())
    rows, _, _ = everything(SpoolStream(options(path, failOnDataLoss="false")), start)
    assert len(rows) == 30
    shutil.rmtree(path)
    with pytest.raises(SpoolError, match="no spool"):
        SpoolStream(options(path)).latestOffset(start, ReadAllAvailable())


def test_spools_that_come_and_go(tmp_path: Path) -> None:
    for name in "ab":
        fill(tmp_path / name, 0, 1)
    one = SpoolStream(options(tmp_path / "a"))
    start = one.initialOffset()
    both = SpoolStream(options(tmp_path / "a", tmp_path / "b"))
    rows, at, _ = everything(both, start)
    # What is new is read from its beginning.
    assert rows == [("b", i, i) for i in range(10)]
    with pytest.raises(ValueError, match="checkpoint is of b"):
        one.latestOffset(at, ReadAllAvailable())
    with pytest.raises(ValueError, match="no offsets of format zenoh"):
        one.latestOffset({"file": "x"}, ReadAllAvailable())


def test_losses_are_a_table(tmp_path: Path) -> None:
    with Writer.open(tmp_path / "s") as writer:
        writer.append(samples(range(4)))
        writer.lose("session", "closed", count=5)
    reader = SpoolReader(options(tmp_path / "s", table="losses"))
    (rows,) = [r for part in reader.partitions() for r in reader.read(part)]
    (loss,) = rows.to_pylist()
    assert (loss["spool"], loss["number"], loss["kind"], loss["offset"]) == ("s", 0, "session", 4)


def test_every_error_is_one_of_ours(tmp_path: Path) -> None:
    for error in (
        OffsetGone("p", 1, 2),
        SpoolDamaged("p", "f", "r"),
        SpoolError("p", "r"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert isinstance(again, ZError)
        assert str(again) == str(error)


def test_ranges_that_are_handed_on_are_not_tiny(tmp_path: Path) -> None:
    fill(tmp_path / "s", 0, 100)
    said = {"spool": str(tmp_path / "s"), "minPartitions": "50"}
    assert len(Spools(Options.of(said)).partitions({"s": (0, 100)})) > 1
    (one,) = Spools(Options.of(said | {"table": "ranges"})).partitions({"s": (0, 100)})
    assert (one.first, one.end) == (0, 100)
    few = {"table": "ranges", "maxPartitionBytes": "1"}
    assert len(Spools(Options.of(said | few)).partitions({"s": (0, 100)})) > 1
