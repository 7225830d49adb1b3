"""More than a page shows: what comes to the driver is bounded, and what is cut is counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.web.pages import START, Page
from zenwire.web.report import Source, render, tables_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS, SAMPLES, SESSIONS = 1000, 20_000, 350


def _write(spark: SparkSession, out: Path) -> None:
    """Sessions of clients with five routers, and samples on many keys, the first ones most."""
    seen = "'fleet.pcap' AS capture, id AS flow, 0 AS connection"
    sessions = (
        seen,
        "if(id % 7 = 0, 'udp', 'tcp') AS link",
        "concat('10.0.1.', id % 256) AS connector_address, 40000 + int(id) AS connector_port",
        "concat('10.0.0.', id % 5) AS acceptor_address, 7447 AS acceptor_port",
        "md5(string(id)) AS connector_zid, 'CLIENT' AS connector_mode",
        "md5(concat('router', id % 5)) AS acceptor_zid, 'ROUTER' AS acceptor_mode",
        "1000 * (id + 1) AS connector_bytes, 10 * id AS acceptor_bytes",
        "true AS qos, id % 2 = 0 AS compression, false AS lowlatency, false AS shm",
        "false AS auth, false AS multilink, 65535 AS batch_size, 10000L AS acceptor_lease",
        f"{START} AS first_seen, {START} + id AS opened, cast(null AS bigint) AS closed",
        "cast(null AS string) AS closed_by, cast(null AS string) AS close_reason",
        f"{START} + 1000000000 * id AS last_seen",
    )
    messages = (
        f"'fleet.pcap' AS capture, id % {SESSIONS} AS flow, 0 AS connection",
        "'to_acceptor' AS direction, 0Y AS side",
        f"{START} + id * 5000000 AS time, id AS sequence, 0 AS offset",
        "'network' AS layer, 'PUSH' AS message, if(id % 100 = 7, 'DEL', 'PUT') AS body",
        "60 AS length, cast(repeat('x', 40) AS binary) AS payload",
        "cast(null AS binary) AS attachment, cast(null AS string) AS key_fault",
        # Every third sample is on one of the first keys.
        f"concat('fleet/r', if(id % 3 = 0, id % 99, id % {KEYS}), '/', repeat('long', 60)) AS key",
    )
    for name, columns, rows in (
        ("sessions", sessions, SESSIONS),
        ("messages", messages, SAMPLES),
    ):
        made = spark.sql(f"SELECT {', '.join(columns)} FROM range({rows})")
        made.write.parquet(str(out / name))


def test_what_is_cut_is_counted(spark: SparkSession, tmp_path: Path) -> None:
    from zenwire.web.report.summary import summarise

    _write(spark, tmp_path)
    source = Source("tables", [str(tmp_path)])
    with tables_of(spark, source) as tables:
        summary = summarise(source, tables)
        keys = tables["messages"].select("key").distinct().count()

    assert summary.message_total == SAMPLES
    assert summary.timeline is not None
    assert summary.timeline.bins <= 120
    assert sum(map(sum, summary.timeline.messages)) == SAMPLES

    assert summary.keys is not None
    assert (summary.keys.rows.total, len(summary.keys.rows.rows)) == (keys, 50)
    assert (summary.keys.samples, summary.keys.bytes) == (SAMPLES, 40 * SAMPLES)
    first = summary.keys.rows.rows[0]
    assert first.key is not None
    assert len(first.key) == 200
    assert first.length > 240
    assert sum(first.spark) == first.samples

    found = summary.sessions
    assert found is not None
    assert (found.rows.total, len(found.rows.rows)) == (SESSIONS, 200)
    assert (found.edges.total, len(found.edges.rows)) == (SESSIONS, 300)
    assert found.nodes == SESSIONS + 5
    assert found.bytes == sum(1000 * (i + 1) + 10 * i for i in range(SESSIONS))
    # Those with most traffic are the ones that are there.
    assert min(s.bytes_to_acceptor for s in found.rows.rows) == 1000 * (SESSIONS - 200 + 1)

    text = Page(render(summary)).text
    assert f"{keys - 50} more keys" in text
    assert "50 more connections" in text
    assert "150 more sessions" in text
    assert "The table losses is not in this directory." in text
