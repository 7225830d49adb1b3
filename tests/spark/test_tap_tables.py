"""What a router's tap wrote, as tables: eclipse-zenoh's clients through ``zenwire router --tap``."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.interop.tapped import PART, come_and_go, tap
from tests.ports import free_port
from zenwire.spark import tables

zenoh = pytest.importorskip("zenoh")

pytestmark = [pytest.mark.long, pytest.mark.interop]

LIMIT = 60.0
MANY = 5_000
"""Publications, so that many come at once."""
LINKS = 2
"""Over which each of them went: to the router, and from it."""


def _client(where: str) -> Any:
    settings = {
        "mode": "client",
        "connect": {"endpoints": [where]},
        "scouting": {"multicast": {"enabled": False}},
    }
    return zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))


def _until(true: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < ends, "it did not come"
        time.sleep(0.02)


def _talk(where: str) -> None:
    """Publications of a declared key and of others, a deletion, and queries with replies."""
    got: list[str] = []
    with _client(where) as here, _client(where) as there:
        there.declare_subscriber("tap/**", lambda sample: got.append(str(sample.key_expr)))
        there.declare_queryable("tap/asked", lambda query: query.reply("tap/asked", b"42"))
        block = zenoh.CongestionControl.BLOCK
        numbers = here.declare_publisher("tap/number", congestion_control=block)
        # What was declared is on its way.
        _until(lambda: numbers.matching_status.matching)
        for at in range(MANY):
            numbers.put(f"{at}", encoding="text/plain", attachment=f"n={at}")
        here.put("tap/alone", b"\x00\x01", congestion_control=block)
        here.put("tap/large", bytes(200_000), congestion_control=block)
        here.delete("tap/alone", congestion_control=block)
        _until(lambda: len(got) == MANY + 3)
        _until(lambda: len(list(here.get("tap/asked"))) == 1)


@pytest.fixture(scope="module")
def tapped(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    """The batches of a file that a router has written."""
    path = tmp_path_factory.mktemp("tap") / "traffic.pcapng"
    where = f"tcp/127.0.0.1:{free_port()}"
    command = ["router", "--tap", str(path), "-l", where, "--no-multicast-scouting"]
    with subprocess.Popen(
        [sys.executable, "-m", "zenwire", *command], stderr=subprocess.PIPE, text=True
    ) as router:
        try:
            assert router.stderr is not None
            assert "listens on" in router.stderr.readline()
            _talk(where)
            router.send_signal(signal.SIGTERM)
            said = router.communicate(timeout=LIMIT)[1]
        finally:
            router.kill()
    assert "packets are missing" not in said
    assert router.returncode == 0
    return spark.read.format("zenoh.capture").load(str(path)).persist()


def test_samples(tapped: DataFrame) -> None:
    found = tables.samples(tapped).where("key like 'tap/%'").persist()
    counted = {
        (row["key"], row["kind"]): row["count"]
        for row in found.groupBy("key", "kind").count().collect()
    }
    assert counted == {
        ("tap/number", "PUT"): MANY * LINKS,
        ("tap/alone", "PUT"): LINKS,
        ("tap/large", "PUT"): LINKS,
        ("tap/alone", "DELETE"): LINKS,
    }
    # On each link all that was said, in order.
    numbers = found.where("key = 'tap/number'").orderBy("sequence", "offset")
    links: dict[Any, list[tuple[str, str, bool]]] = {}
    columns = ("flow", "connection", "side", "text", "attachment", "ntp64")
    for *link, text, attachment, ntp64 in numbers.select(*columns).collect():
        links.setdefault(tuple(link), []).append((text, bytes(attachment).decode(), ntp64 is None))
    said = [(f"{at}", f"n={at}") for at in range(MANY)]
    assert [[row[:2] for row in rows] for rows in links.values()] == [said] * LINKS
    # The router gives them a time.
    assert sorted([*{row[2] for row in rows}] for rows in links.values()) == [[False], [True]]
    sizes = found.where("key = 'tap/large'").selectExpr("length(payload) as n").collect()
    assert [row["n"] for row in sizes] == [200_000] * LINKS


def test_nothing_is_missing_or_malformed(tapped: DataFrame) -> None:
    assert tables.malformed(tapped).count() == 0
    assert tables.losses(tapped).count() == 0


def test_sessions_and_queries(tapped: DataFrame) -> None:
    sessions = tables.sessions(tapped)
    assert sessions.where("opened is not null").count() == 2
    asked = tables.queries(tapped).where("key = 'tap/asked' and outcome = 'replied'").collect()
    assert len(asked) == LINKS
    assert len({row["query_id"] for row in asked}) == 1


def test_numbers_are_lost_only_while_somebody_had_subscribed(
    spark: SparkSession, tmp_path: Path
) -> None:
    from zenwire.web.report import open_source, render, tables_of
    from zenwire.web.report.summary import summarise

    path = tmp_path / "traffic.pcapng"
    tap(path, come_and_go)
    source = open_source([str(path)])
    with tables_of(spark, source) as found:
        rows = found["losses"].orderBy("time").collect()
        summary = summarise(source, found)
    told = [(row["kind"], row["reason"], row["from_sn"], row["count"]) for row in rows]
    lost, no_loss = ("source", "gap", PART, 3), ("not_sent", "not sent here", 2 * PART, 2 * PART)
    assert told == [lost] * LINKS + [no_loss] * LINKS
    assert summary.losses is not None
    assert summary.losses.by_kind["source"] == {"gaps": 2, "count": 6, "missing": 0, "skipped": 0}
    assert (summary.losses.not_sent, summary.losses.rows.total) == (LINKS, LINKS)
    assert [text for text, _ in summary.verdict.points] == [
        "2 gaps in publishers' numbers: 6 samples missing on 2 directions of sessions"
    ]
    assert "numbers (40 samples) fell into times without a matching subscription" in render(summary)
