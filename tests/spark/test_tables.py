"""The tables of every recorded capture hold what the applications saw."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.conftest import CAPTURES, Row
from zenwire.spark import tables

TRUTH = {p.stem: json.loads(p.read_text()) for p in (Path(__file__).parent / "truth").iterdir()}
Link = tuple[str, int, int, int]


def _of(rows: Iterable[Row], name: str) -> list[Row]:
    return [row for row in rows if Path(row["capture"]).stem == name]


def test_samples_straight_from_batches_are_the_same(batches: DataFrame, samples: list[Row]) -> None:
    found = tables.samples(batches).where("capture not like '%thousands%'").drop("value")
    where = ("capture", "flow", "side", "sequence", "offset")
    order = sorted(samples, key=lambda row: tuple(row[name] for name in where))
    assert found.orderBy(*where).toArrow().to_pylist() == order


# --- queries ------------------------------------------------------------------------------------


def test_outcomes(queries: list[Row]) -> None:
    found = _of(queries, "peer_query_reply")
    outcomes = [(row["outcome"], row["replies"], row["errors"]) for row in found]
    gets = [row for row in TRUTH["peer_query_reply"]["sent"] if row["replies"]]
    expected = [
        ("error", 0, 1) if "err" in row["get"] else ("replied", row["replies"], 0) for row in gets
    ]
    assert outcomes[: len(gets)] == expected
    assert {row["target"] for row in found} == {"BEST_MATCHING", "ALL", "ALL_COMPLETE"}
    assert {row["consolidation"] for row in found} == {"NONE", "LATEST"}


# --- declarations and sessions ------------------------------------------------------------------


def test_every_declaration_has_a_key(declarations: list[Row]) -> None:
    assert {row["kind"] for row in declarations} == {"keyexpr", "subscriber", "queryable", "token"}
    assert not [row for row in declarations if not row["key"] or row["key_fault"]]
    assert not [row for row in declarations if row["undeclared"] and not row["declared"]]


def test_between_routers_an_undeclaration_names_the_key(declarations: list[Row]) -> None:
    found = {
        (row["key"], row["ended_by"])
        for row in _of(declarations, "three_routers")
        if row["kind"] == "subscriber" and row["id"] == 0
    }
    assert found == {("net/**", "undeclared"), ("net/*/t", "undeclared")}


@pytest.mark.parametrize(
    ("name", "agreed"),
    [
        ("client_router_pubsub", {"qos"}),
        ("no_qos", set()),
        ("lowlatency", {"lowlatency"}),
        ("compression", {"qos", "compression"}),
        ("shared_memory", {"qos", "shm"}),
        ("udp", {"qos"}),
        ("usrpwd", {"qos", "auth"}),
    ],
)
def test_what_sessions_agreed_on(sessions: list[Row], name: str, agreed: set[str]) -> None:
    possible = ("qos", "lowlatency", "compression", "shm", "auth", "multilink")
    found = [{what for what in possible if row[what]} for row in _of(sessions, name)]
    assert agreed in found


def test_a_session_from_its_opening_to_its_close(sessions: list[Row]) -> None:
    (row,) = _of(sessions, "advanced")
    assert row["connector_mode"] == row["acceptor_mode"] == "PEER"
    assert row["connector_zid"] != row["acceptor_zid"]
    assert row["acceptor_port"] == 21197
    assert row["first_seen"] < row["opened"] < row["closed"] <= row["last_seen"]
    assert (row["closed_by"], row["close_reason"]) == ("acceptor", "GENERIC")
    assert (row["connector_lease"], row["frame_sn_bits"]) == (10_000, 32)


def test_a_refused_session_never_opened(sessions: list[Row]) -> None:
    refused, opened = sorted(_of(sessions, "usrpwd"), key=lambda row: row["opened"] is not None)
    assert refused["opened"] is None
    assert refused["closed_by"] == "acceptor"
    assert opened["opened"]
    assert refused["auth"]
    assert opened["auth"]


# --- nothing is wrong with these captures ---------------------------------------------------------


def test_nothing_was_lost(batches: DataFrame, messages: DataFrame) -> None:
    assert tables.losses(batches, messages).toArrow().to_pylist() == []


def test_nothing_was_malformed(batches: DataFrame) -> None:
    assert tables.malformed(batches).toArrow().to_pylist() == []


def test_messages_have_fields_where_columns_do_not_say_it(messages: DataFrame) -> None:
    said = messages.where("fields is not null").selectExpr(
        "message", "variant_get(fields, '$.message', 'string') as said"
    )
    rows = said.distinct().collect()
    assert {(row.message, row.said) for row in rows} == {
        (name, name) for name in ("INIT", "OPEN", "INTEREST", "OAM")
    }


# --- from samples -------------------------------------------------------------------------------


def test_latest(messages: DataFrame, samples: list[Row]) -> None:
    only = tables.samples(messages).where("capture like '%client_router_pubsub%'")
    found = {row["key"]: row for row in tables.latest(only.drop("value")).toArrow().to_pylist()}
    seen = _of(samples, "client_router_pubsub")
    assert found.keys() == {row["key"] for row in seen}
    for key, row in found.items():
        stamps = [other["ntp64"] for other in seen if other["key"] == key and other["ntp64"]]
        if row["ntp64"]:
            assert row["ntp64"] == max(stamps)


def test_key_stats(messages: DataFrame, samples: list[Row]) -> None:
    only = tables.samples(messages).where("capture like '%udp%'")
    found = tables.key_stats(only, "1 hour").toArrow().to_pylist()
    seen = _of(samples, "udp")
    assert sum(row["messages"] for row in found) == len(seen)
    assert sum(row["bytes"] for row in found) == sum(len(row["payload"]) for row in seen)
    assert all(row["rate"] == row["messages"] / 3600 for row in found)


def test_the_example_of_the_readme(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = CAPTURES.parents[1]
    example = re.findall(r"```python\n(.*?)```", (root / "README.md").read_text(), re.DOTALL)[1]
    monkeypatch.chdir(root)
    exec(example, {})
    shown = capsys.readouterr().out
    keys = [line.split("|")[1].strip() for line in shown.splitlines() if line.startswith("|")]
    assert set(keys[1:]) == {sample["key"] for sample in TRUTH["client_router_pubsub"]["samples"]}
