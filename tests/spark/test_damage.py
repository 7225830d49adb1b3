"""Captures that begin late or lack packets: no job fails, and what can be right is right."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.conftest import CAPTURES
from zenwire.spark import tables

NAME = "client_router_pubsub"
SAME = ("kind", "payload", "encoding", "priority", "congestion_control", "express", "ntp64")


def _records(path: Path) -> tuple[bytes, list[bytes]]:
    raw = path.read_bytes()
    records, at = [], 24
    while at < len(raw):
        size = 16 + struct.unpack_from("<I", raw, at + 8)[0]
        records.append(raw[at : at + size])
        at += size
    return raw[:24], records


@pytest.fixture
def late(spark: SparkSession, tmp_path: Path) -> DataFrame:
    """Without its first half, and without every fiftieth packet of the rest."""
    head, records = _records(CAPTURES / f"{NAME}.pcap")
    rest = [r for i, r in enumerate(records[len(records) // 2 :]) if i % 50 != 20]
    path = tmp_path / "late.pcap"
    path.write_bytes(head + b"".join(rest))
    return spark.read.format("zenoh.capture").load(str(path)).persist()


def test_a_capture_that_begins_late_and_has_holes(late: DataFrame, batches: DataFrame) -> None:
    found = tables.samples(late).drop("value").toArrow().to_pylist()
    whole = batches.where(batches.capture.contains(NAME))
    known = tables.samples(whole).drop("value").toArrow().to_pylist()
    begin = min(row.first_time for row in late.select("first_time").collect())
    possible = [row for row in known if row["time"] >= begin]
    assert 0.9 * len(possible) < len(found) < len(possible)

    # Every sample that is there is one that was sent at that time on that flow, and its key is
    # the right one or none.
    sent = {(row["flow"], row["time"], *(row[name] for name in SAME)): row["key"] for row in known}
    for row in found:
        key = sent[row["flow"], row["time"], *(row[name] for name in SAME)]
        assert row["key"] in (key, None)
        assert (row["key"] is None) == (row["key_fault"] is not None)
    assert any(row["key"] is None for row in found)

    (session, other) = tables.sessions(late).toArrow().to_pylist()
    assert session["connector_zid"] is None
    assert other["opened"] is None

    lost = tables.losses(late).toArrow().to_pylist()
    assert {row["kind"] for row in lost} >= {"capture", "sequence"}
    assert sum(row["missing"] for row in lost) > 0
    assert tables.malformed(late).count() == 0
