"""The tables of every recorded capture hold what the applications saw."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from zenwire.spark import tables

TRUTH = {p.stem: json.loads(p.read_text()) for p in (Path(__file__).parent / "truth").iterdir()}
Row = dict[str, Any]
Link = tuple[str, int, int, int]


@pytest.fixture(scope="module")
def messages(batches: DataFrame) -> DataFrame:
    return tables.messages(batches).persist()


@pytest.fixture(scope="module")
def samples(messages: DataFrame) -> list[Row]:
    # The 60,000 of that capture are counted by Spark.
    some = tables.samples(messages).where("capture not like '%thousands%'")
    return _rows(some.drop("value"))


@pytest.fixture(scope="module")
def queries(messages: DataFrame) -> list[Row]:
    return _rows(tables.queries(messages))


@pytest.fixture(scope="module")
def replies(messages: DataFrame) -> list[Row]:
    return _rows(tables.replies(messages).drop("value"))


@pytest.fixture(scope="module")
def declarations(messages: DataFrame) -> list[Row]:
    return _rows(tables.declarations(messages))


@pytest.fixture(scope="module")
def sessions(batches: DataFrame, messages: DataFrame) -> list[Row]:
    return tables.sessions(batches, messages).toArrow().to_pylist()


def _rows(frame: DataFrame) -> list[Row]:
    rows: list[Row] = frame.toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["sequence"], row["offset"]))


def _of(rows: Iterable[Row], name: str) -> list[Row]:
    return [row for row in rows if Path(row["capture"]).stem == name]


def _links(rows: Iterable[Row], form: Callable[[Row], Any] = lambda row: row) -> dict[Link, list]:
    """What went over each link in each direction, in order."""
    found: dict[Link, list] = defaultdict(list)
    for row in rows:
        found[row["capture"], row["flow"], row["connection"], row["side"]].append(form(row))
    return found


def _sample(row: Row) -> Row:
    """A row as the truth files tell it."""
    payload = row["payload"] or b""
    encoding = ";".join(part for part in (row["encoding"], row["schema"]) if part)
    source = {"zid": row["source_zid"], "eid": row["source_eid"], "sn": row["source_sn"]}
    return {
        "key": row["key"],
        "kind": row["kind"],
        "payload": payload.hex() if len(payload) <= 4096 else None,
        "payload_len": len(payload),
        "encoding": encoding or "zenoh/bytes",
        "priority": row["priority"],
        "congestion_control": row["congestion_control"],
        "express": row["express"],
        "timestamp": row["ntp64"] and f"{row['ntp64']}/{row['clock_id']}",
        "attachment": row["attachment"] and row["attachment"].hex(),
        "source_info": source if row["source_zid"] else None,
    }


@pytest.mark.parametrize(
    "name", [name for name in TRUTH if TRUTH[name]["samples"] and name != "advanced"]
)
def test_a_link_towards_the_subscriber_has_its_samples_and_nothing_else(
    samples: list[Row], name: str
) -> None:
    links = _links(_of(samples, name), _sample)
    assert TRUTH[name]["samples"] in links.values()


@pytest.mark.parametrize(
    "name",
    [
        "client_router_pubsub",
        "compression",
        "fragmentation",
        "lowlatency",
        "no_qos",
        "shared_memory",
    ],
)
def test_what_crosses_a_router_is_there_twice(samples: list[Row], name: str) -> None:
    def unstamped(row: Row) -> Row:
        # The router adds a timestamp where there is none.
        return {**_sample(row), "timestamp": None}

    links = list(_links(_of(samples, name), unstamped).values())
    expected = [{**sample, "timestamp": None} for sample in TRUTH[name]["samples"]]
    assert links == [expected, expected]


def test_an_advanced_subscriber_gets_history_as_replies_and_the_rest_as_samples(
    samples: list[Row], replies: list[Row]
) -> None:
    (pushed,) = _links(_of(samples, "advanced")).values()
    (answered,) = _links(_of(replies, "advanced")).values()
    data = [row for row in pushed if "@adv" not in row["key"]]
    seen = sorted([*answered, *data], key=lambda row: (row["sequence"], row["offset"]))
    # It asks more than once, and drops what it has already.
    once = {(row["source_zid"], row["source_eid"], row["source_sn"]): row for row in seen[::-1]}
    assert [_sample(row) for row in [*once.values()][::-1]] == TRUTH["advanced"]["samples"]
    beats = [int.from_bytes(row["payload"], "little") for row in pushed if "@adv" in row["key"]]
    assert beats == sorted(beats)
    assert beats[-1] == seen[-1]["source_sn"]


def test_every_one_of_thousands(messages: DataFrame) -> None:
    found = tables.samples(messages).where("capture like '%thousands%'")
    (row,) = found.selectExpr(
        "count(*) as count", "count(key) as keys", "count(distinct key) as different",
        "min(octet_length(payload)) as shortest", "max(octet_length(payload)) as longest",
    ).collect()  # fmt: skip
    assert row.asDict() == {
        "count": TRUTH["thousands"]["sent"][0]["received"],
        "keys": 60_000,
        "different": 16,
        "shortest": 8,
        "longest": 8,
    }


def test_samples_straight_from_batches_are_the_same(batches: DataFrame, samples: list[Row]) -> None:
    found = tables.samples(batches).where("capture not like '%thousands%'").drop("value")
    where = ("capture", "flow", "side", "sequence", "offset")
    order = sorted(samples, key=lambda row: tuple(row[name] for name in where))
    assert found.orderBy(*where).toArrow().to_pylist() == order


# --- queries ------------------------------------------------------------------------------------


def _query(row: Row) -> Row:
    selector = row["key"] + (f"?{row['parameters']}" if row["parameters"] else "")
    return {
        "selector": selector,
        "payload": row["payload"] and row["payload"].hex(),
        "encoding": row["encoding"],
        "attachment": row["attachment"] and row["attachment"].hex(),
    }


def _reply(row: Row) -> Row:
    if row["kind"] == "ERR":
        return {"err": row["payload"].hex(), "encoding": row["encoding"]}
    return {"ok": _sample(row)}


@pytest.mark.parametrize("name", [name for name in TRUTH if TRUTH[name]["queries"]])
def test_a_link_towards_the_queryable_has_the_queries_that_it_saw(
    queries: list[Row], name: str
) -> None:
    assert TRUTH[name]["queries"] in _links(_of(queries, name), _query).values()


@pytest.mark.parametrize("name", [name for name in TRUTH if TRUTH[name]["queries"]])
def test_a_link_towards_the_querier_has_its_replies(
    queries: list[Row], replies: list[Row], name: str
) -> None:
    """With the query that they answer. The truth has no replies of a querier: the last query."""
    asked = {
        (row["capture"], row["flow"], row["connection"], row["sequence"], row["offset"]): row
        for row in queries
    }

    def told(row: Row) -> Row:
        place = row["query_sequence"], row["query_offset"]
        query = asked[row["capture"], row["flow"], row["connection"], *place]
        assert query["request_id"] == row["request_id"]
        assert query["side"] != row["side"]
        assert 0 <= row["latency"] <= query["latency"]
        return {"selector": _query(query)["selector"], **_reply(row)}

    expected = TRUTH[name]["replies"]
    for link in _links(_of(replies, name), told).values():
        # Consolidation hands the replies to one query over in no order.
        if name == "peer_query_reply":
            counts = [row["replies"] + row["errors"] for row in _of(queries, name)]
            if _runs(link, counts)[:14] == _runs(expected, counts)[:14]:
                break
        elif link == expected:
            break
    else:
        pytest.fail("no link has these replies")


def _runs(rows: list[Row], counts: list[int]) -> list[list[str]]:
    found, start = [], 0
    for count in counts:
        found.append(sorted(json.dumps(row, sort_keys=True) for row in rows[start : start + count]))
        start += count
    return found


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


def test_liveliness(declarations: list[Row]) -> None:
    links = _links(row for row in _of(declarations, "liveliness") if row["kind"] == "token")
    (seen,) = [tokens for tokens in links.values() if any(row["snapshot"] for row in tokens)]
    lives = [row for row in seen if not row["snapshot"]]
    changes = [(row["declared"], {"key": row["key"], "kind": "PUT"}) for row in lives]
    changes += [(row["undeclared"], {"key": row["key"], "kind": "DELETE"}) for row in lives]
    changes.sort(key=lambda change: change[0])
    assert [change for _, change in changes] == TRUTH["liveliness"]["liveliness"]
    answers = defaultdict(list)
    for row in seen:
        if row["snapshot"]:
            answers[row["interest_id"]].append(row["key"])
    alive = [{"alive": sorted(keys)} for _, keys in sorted(answers.items())]
    assert alive == TRUTH["liveliness"]["sent"]


def test_a_token_across_three_routers(declarations: list[Row]) -> None:
    tokens = [row for row in _of(declarations, "three_routers") if row["kind"] == "token"]
    assert {row["key"] for row in tokens} == {"net/alive/a"}
    assert sorted(row["ended_by"] or "" for row in tokens) == [
        "", "closed", "undeclared", "undeclared",
    ]  # fmt: skip


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
