"""Damaged captures: no job fails, what can be right is right, the rest is counted.

All damaged files are read by one job for each table; the column ``capture`` tells them apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tests.spark.conftest import CAPTURES
from tests.spark.damage import KINDS, Damaged, damaged
from zenwire.errors import DecodeError
from zenwire.spark import tables
from zenwire.spark.tables.accounts import LOSSLESS
from zenwire.wire import expand_batch

NAMES = ("client_router_pubsub", "three_routers", "udp", "compression", "lowlatency",
         "peer_query_reply", "fragmentation")  # fmt: skip
SEEDS = range(1)
Row = dict[str, Any]

SAME = ("kind", "payload", "encoding", "schema", "ntp64", "clock_id", "source_zid", "source_eid",
        "source_sn", "priority", "congestion_control", "express", "reliability", "attachment",
        "shm")  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A damaged file, and the captures that it was made from."""

    path: str
    names: tuple[str, ...]
    damage: Damaged


@dataclass(frozen=True)
class Run:
    """The tables of many captures, by capture."""

    batches: dict[str, list[Row]]
    samples: dict[str, list[Row]]
    losses: dict[str, list[Row]]
    malformed: dict[str, list[Row]]
    accounts: dict[str, list[Row]]
    declarations: dict[str, list[Row]]
    sums: dict[tuple[str, int, int, int, int], int]
    pieces: set[tuple[Any, ...]]
    frame: DataFrame
    messages: DataFrame


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    home = tmp_path_factory.mktemp("damaged")
    found = []
    for kind in KINDS:
        for i, name in enumerate(NAMES):
            for seed in SEEDS:
                other = NAMES[(i + 1 + seed) % len(NAMES)]
                made = damaged(kind, CAPTURES / f"{name}.pcap", CAPTURES / f"{other}.pcap", seed)
                path = home / f"{kind}-{name}-{seed}.pcap"
                path.write_bytes(made.content)
                names = (name, other) if kind == "joined" else (name,)
                found.append(Case(str(path), names, made))
    return found


@pytest.fixture(scope="module")
def hurt(spark: SparkSession, cases: list[Case]) -> Run:
    home = str(Path(cases[0].path).parent)
    batches = spark.read.format("zenoh.capture").load(home).persist()
    return _run(batches, tables.messages(batches).persist())


@pytest.fixture(scope="module")
def whole(batches: DataFrame, messages: DataFrame) -> Run:
    some = F.col("capture").isin([str(CAPTURES / f"{name}.pcap") for name in NAMES])
    return _run(batches.where(some), messages.where(some))


def _run(batches: DataFrame, messages: DataFrame) -> Run:
    return Run(
        _by_capture(batches),
        _by_capture(tables.samples(messages).drop("value", "text")),
        _by_capture(tables.losses(batches, messages)),
        _by_capture(tables.malformed(batches)),
        _by_capture(tables.accounts(batches)),
        _by_capture(tables.declarations(messages)),
        _sums(messages),
        {tuple(row) for row in _last_pieces(messages).collect()},
        batches,
        messages,
    )


def _by_capture(frame: DataFrame) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in frame.toArrow().to_pylist():
        found[row["capture"]].append(row)
    for rows in found.values():
        if "sequence" in rows[0]:
            rows.sort(key=lambda row: (row["sequence"] or 0, row["offset"] or 0))
    return found


def _sums(messages: DataFrame) -> dict[tuple[str, int, int, int, int], int]:
    """The length of the messages of each batch. What came in pieces is in its FRAGMENTs."""
    at = Window.partitionBy("capture", "flow", "connection", "side", "sequence", "offset")
    in_pieces = F.bool_or(F.col("message") == "FRAGMENT").over(at) & (F.col("layer") == "network")
    sums = (
        messages.select("*", in_pieces.alias("in_pieces"))
        .where(~F.col("in_pieces"))
        .groupBy("capture", "flow", "connection", "side", "sequence")
        .agg(F.sum("length").alias("length"))
    )
    return {tuple(row[:5]): row.length for row in sums.collect()}


def _last_pieces(messages: DataFrame) -> DataFrame:
    last = messages.where((F.col("message") == "FRAGMENT") & ~F.col("more"))
    return last.select("capture", "flow", "side", "sequence", "offset")


def _side(row: Row) -> int:
    ends = (row["source"], row["source_port"]), (row["target"], row["target_port"])
    return int(ends[0] > ends[1])


def _original(name: str) -> str:
    return str(CAPTURES / f"{name}.pcap")


def _content(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in SAME)


def _links(rows: Iterable[Row]) -> dict[tuple[int, int], list[Row]]:
    found: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["flow"], row["side"]].append(row)
    return found


def _aligned(found: list[Row], known: list[Row], *, keys: bool = True) -> list[int] | None:
    """Where each row is among the known ones, in order; None if it is not.

    With the same key or none, unless ``keys`` does not matter.
    """

    def same(row: Row, other: Row) -> bool:
        if _content(row) != _content(other):
            return False
        return not keys or row["key"] in (other["key"], None)

    places, at = [], 0
    for row in found:
        while at < len(known) and not same(row, known[at]):
            at += 1
        if at == len(known):
            return None
        places.append(at)
        at += 1
    return places


# --- the books ----------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["whole", "hurt"])
def test_accounts_add_up_to_the_file(which: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(which)
    for capture, rows in run.accounts.items():
        assert sum(row["bytes"] for row in rows) == Path(capture).stat().st_size, capture
        assert len({row["category"] for row in rows}) == len(rows)
        # What is neither in batches nor harmless is in losses.
        lost = [row for row in rows if row["category"] not in ("batches", *LOSSLESS)]
        told = [row for row in run.losses[capture] if row["kind"] == "capture"]
        assert sum(row["skipped"] for row in told) == sum(row["bytes"] for row in lost)
        assert len(told) == sum(row["rows"] for row in lost)


@pytest.mark.parametrize("which", ["whole", "hurt"])
def test_messages_and_malformed_bytes_add_up_to_their_batch(
    which: str, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(which)
    bad: Counter[tuple[Any, ...]] = Counter()
    blocks = set()
    for capture, rows in run.malformed.items():
        for row in rows:
            place = (capture, row["flow"], row["connection"], row["side"], row["sequence"])
            if row["fault"] == "compression":
                blocks.add(place)
            # A message in pieces is counted by these.
            elif row["layer"] != "network":
                bad[place] += len(row["bytes"])
    for capture, rows in run.batches.items():
        for row in rows:
            if row["bytes"] is None:
                continue
            place = (capture, row["flow"], row["connection"], _side(row), row["sequence"])
            if row["compression"]:
                try:
                    size = len(expand_batch(row["bytes"]))
                except DecodeError:
                    assert place in blocks
                    continue
            else:
                size = len(row["bytes"])
            assert run.sums.get(place, 0) + bad[place] == size, (place, bad[place])


def test_no_table_fails(hurt: Run) -> None:
    """Of the others, every row with every column is computed."""
    found = hurt.messages
    for table in (
        found,
        tables.sessions(hurt.frame, found),
        tables.queries(found),
        tables.replies(found),
        tables.latest(tables.samples(found)),
        tables.key_stats(tables.samples(found)),
    ):
        table.write.format("noop").mode("overwrite").save()


def test_the_same_straight_from_batches(spark: SparkSession, cases: list[Case], hurt: Run) -> None:
    home = str(Path(cases[0].path).parent)
    batches = spark.read.format("zenoh.capture").load(home)
    assert _by_capture(tables.samples(batches).drop("value", "text")) == hurt.samples


# --- what is there is right ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in ("flipped", "scrambled")])
def test_every_sample_is_one_that_was_sent(
    cases: list[Case], hurt: Run, whole: Run, kind: str
) -> None:
    """On that link, in that order, with that key or none."""
    for case in (case for case in cases if case.damage.kind == kind):
        known: dict[tuple[int, int], list[Row]] = {}
        for name in case.names:
            known |= _links(whole.samples[_original(name)])
        found = _links(hurt.samples[case.path])
        assert found.keys() <= known.keys()
        for link, rows in found.items():
            if case.names[0] == "udp" and kind in ("duplicated", "reordered"):
                # A datagram that comes twice or late is there twice or late.
                sent = Counter(map(_content, known[link]))
                assert set(map(_content, rows)) <= sent.keys()
                assert kind == "duplicated" or len(rows) == len(known[link])
                continue
            assert _aligned(rows, known[link]) is not None, (case.path, link)
            for row in rows:
                assert (row["key"] is None) == (row["key_fault"] is not None)


@pytest.mark.parametrize("kind", ["duplicated", "reordered", "joined"])
def test_nothing_is_missing_where_nothing_was_lost(
    cases: list[Case], hurt: Run, whole: Run, kind: str
) -> None:
    for case in (case for case in cases if case.damage.kind == kind):
        known = [row for name in case.names for row in whole.samples[_original(name)]]
        if "udp" in case.names and kind == "duplicated":
            continue
        found = hurt.samples[case.path]
        assert Counter((r["key"], *_content(r)) for r in found) == Counter(
            (r["key"], *_content(r)) for r in known
        ), case.path
        kinds = {row["kind"] for row in hurt.losses[case.path]}
        # The seam of two files is a fault; a late datagram is a gap, since nodes drop it.
        allowed = {"joined": "capture"}.get(kind, "sequence" if "udp" in case.names else "")
        assert kinds <= {allowed}, case.path
        assert not hurt.malformed[case.path]


@pytest.mark.parametrize("kind", ["dropped", "truncated"])
def test_what_is_missing_is_told(cases: list[Case], hurt: Run, whole: Run, kind: str) -> None:
    """Where samples lack in the middle of a direction, it has a loss."""
    told = 0
    for case in (case for case in cases if case.damage.kind == kind):
        known = _links(whole.samples[_original(case.names[0])])
        lost = {(row["flow"], row["side"]) for row in hurt.losses[case.path]}
        for link, rows in _links(hurt.samples[case.path]).items():
            places = _aligned(rows, known[link])
            assert places is not None
            if places[-1] != len(rows) - 1:
                assert link in lost, (case.path, link)
                told += 1
    assert told


def test_flipped_bits_change_their_own_batches_only(
    cases: list[Case], hurt: Run, whole: Run
) -> None:
    """A batch that is not as it was sent has a packet with a flipped bit in it.

    What is in the other batches is as it was sent, but for keys that were declared in such one.
    """
    for case in (case for case in cases if case.damage.kind == "flipped"):
        original = _original(case.names[0])
        sent: dict[tuple[int, int], Counter[bytes]] = defaultdict(Counter)
        for row in whole.batches[original]:
            if row["bytes"] is not None:
                sent[row["flow"], _side(row)][row["bytes"]] += 1
        flips = [(p.ports, p.time) for p in case.damage.flips]
        touched = set()
        for row in hurt.batches[case.path]:
            if row["bytes"] is None or sent[row["flow"], _side(row)][row["bytes"]]:
                continue
            ports = row["source_port"], row["target_port"]
            assert any(
                ports == p and row["first_time"] <= time <= row["time"] for p, time in flips
            ), (case.path, row["sequence"])
            touched.add((row["flow"], _side(row), row["sequence"]))
        _check_the_others(case, hurt, whole, touched, _declaring(whole, original, flips))


def _declaring(whole: Run, original: str, flips: list[tuple[tuple[int, int], int]]) -> set[int]:
    """The flows of which a flipped batch declared key expressions."""
    declares = {
        (row["flow"], row["side"], row["sequence"])
        for row in whole.declarations[original]
        if row["kind"] == "keyexpr"
    }
    return {
        row["flow"]
        for row in whole.batches[original]
        if row["bytes"] is not None
        and (row["flow"], _side(row), row["sequence"]) in declares
        and any(
            (row["source_port"], row["target_port"]) == ports
            and row["first_time"] <= time <= row["time"]
            for ports, time in flips
        )
    }


def _check_the_others(
    case: Case, hurt: Run, whole: Run, touched: set[tuple[int, int, int]], declaring: set[int]
) -> None:
    known = _links(whole.samples[_original(case.names[0])])
    for link, rows in _links(hurt.samples[case.path]).items():
        clean = [
            row
            for row in rows
            # What came in pieces stands at the last one; a former one may have been flipped.
            if (*link, row["sequence"]) not in touched
            and (case.path, *link, row["sequence"], row["offset"]) not in hurt.pieces
        ]
        original = _original(case.names[0])
        sent = [
            row
            for row in known[link]
            if (original, *link, row["sequence"], row["offset"]) not in whole.pieces
        ]
        keys = link[0] not in declaring
        assert _aligned(clean, sent, keys=keys) is not None, (case.path, link)


def test_scrambled_files_still_have_what_was_not_touched(
    cases: list[Case], hurt: Run, whole: Run
) -> None:
    """Eight bytes anywhere cost their packets and what depends on those, not the rest."""
    for case in (case for case in cases if case.damage.kind == "scrambled"):
        known = Counter(map(_content, whole.samples[_original(case.names[0])]))
        found = Counter(map(_content, hurt.samples[case.path]))
        if known:
            assert (found & known).total() > 0
