"""Every link of every recorded capture carries what the applications saw, and nothing more.

Which node is which is known from the order in which they connected, and confirmed by their ids:
a role has one id, routers are the clocks that stamped the samples, and who declared what fits.
What each link must carry then follows from the truth files alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tests.spark.conftest import Row, rows_of
from zenwire.spark import tables

TRUTH = {p.stem: json.loads(p.read_text()) for p in (Path(__file__).parent / "truth").iterdir()}
Ends = tuple[str, str]
Links = dict[Ends, list[Any]]

THROUGH_A_ROUTER = ["client_router_pubsub", "compression", "fragmentation", "lowlatency", "no_qos",
                    "shared_memory"]  # fmt: skip
ROLES: dict[str, list[Ends]] = {
    **{name: [("publisher", "router"), ("subscriber", "router")] for name in THROUGH_A_ROUTER},
    **{name: [("subscriber", "publisher")] for name in ("advanced", "thousands", "udp")},
    "liveliness": [("watcher", "router"), *[(f"m{i}", "router") for i in range(4)]],
    "peer_query_reply": [("querier", "queryable")],
    "three_routers": [("b", "a"), ("c", "b"), ("left", "a"), ("right", "c"), ("peer", "b")],
    "usrpwd": [("allowed", "router"), ("refused", "router")],
}
"""Who connected to whom, in that order."""


@pytest.fixture(scope="module")
def zids(sessions: list[Row]) -> dict[str, dict[str, str]]:
    """The id of each role of each capture."""
    found: dict[str, dict[str, str]] = {}
    for name, roles in ROLES.items():
        rows = [row for row in sessions if _name(row) == name]
        assert len(rows) == len(roles), name
        ids: dict[str, set[str]] = defaultdict(set)
        for row, ends in zip(rows, roles, strict=True):
            ids[ends[0]].add(row["connector_zid"])
            ids[ends[1]].add(row["acceptor_zid"])
        assert all(len(each) == 1 for each in ids.values()), name
        found[name] = {role: min(each) for role, each in ids.items()}
        assert len(set(found[name].values())) == len(found[name])
    return found


@pytest.fixture(scope="module")
def ends(sessions: list[Row]) -> Callable[[Row], Ends]:
    """From whom to whom a row went."""
    roles = {}
    for name, expected in ROLES.items():
        rows = [row for row in sessions if _name(row) == name]
        for row, connected in zip(rows, expected, strict=True):
            roles[row["capture"], row["flow"], row["connection"]] = connected

    def of(row: Row) -> Ends:
        connector, acceptor = roles[row["capture"], row["flow"], row["connection"]]
        return {"to_acceptor": (connector, acceptor), "to_connector": (acceptor, connector)}[
            row["direction"]
        ]

    return of


@pytest.fixture(scope="module")
def replies(messages: DataFrame) -> list[Row]:
    return rows_of(tables.replies(messages).drop("value"))


def _name(row: Row) -> str:
    return Path(row["capture"]).stem


def _links(
    rows: Iterable[Row], name: str, ends: Callable[[Row], Ends], form: Callable[[Row], Any]
) -> Links:
    """What went from whom to whom, in order."""
    found: Links = defaultdict(list)
    for row in rows:
        if _name(row) == name:
            found[ends(row)].append(form(row))
    return dict(found)


# --- samples ------------------------------------------------------------------------------------


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


def _before(stamped: list[Row], router: str) -> list[Row]:
    """What a router was given that added the timestamps of its own clock."""
    return [
        {**sample, "timestamp": None}
        if sample["timestamp"] and sample["timestamp"].endswith(f"/{router}")
        else sample
        for sample in stamped
    ]


def _expected_samples(name: str, ids: dict[str, str]) -> Links:
    received = TRUTH[name]["samples"]
    if name in THROUGH_A_ROUTER:
        return {
            ("publisher", "router"): _before(received, ids["router"]),
            ("router", "subscriber"): received,
        }
    match name:
        case "udp":
            return {("publisher", "subscriber"): received}
        case "three_routers":
            of_peer = [sample for sample in received if sample["key"] == "net/p/t"]
            of_left = [sample for sample in received if sample["key"] != "net/p/t"]
            return {
                ("peer", "b"): _before(of_peer, ids["b"]),
                ("left", "a"): _before(of_left, ids["a"]),
                ("a", "b"): of_left,
                ("b", "peer"): of_left,
                ("b", "c"): received,
                ("c", "right"): received,
            }
    return {}


@pytest.mark.parametrize("name", sorted(set(ROLES) - {"advanced", "thousands", "usrpwd"}))
def test_samples_of_every_link(
    samples: list[Row], ends: Callable[[Row], Ends], zids: dict[str, dict[str, str]], name: str
) -> None:
    assert _links(samples, name, ends, _sample) == _expected_samples(name, zids[name])


def test_the_clocks_are_those_of_the_routers(zids: dict[str, dict[str, str]]) -> None:
    for name, truth in TRUTH.items():
        stamps = {s["timestamp"].split("/")[1] for s in truth["samples"] if s["timestamp"]}
        roles = {role for role, zid in zids[name].items() if zid in stamps}
        match name:
            case "three_routers":
                assert roles == {"a", "b"}
            case "client_router_pubsub":
                # Some are stamped by who put them.
                assert roles == {"router", "publisher"}
            case "advanced":
                assert roles == {"publisher"}
            case _:
                assert roles == ({"router"} if stamps else set())
        assert len(roles) == len(stamps)


def test_an_advanced_subscriber_gets_history_as_replies_and_the_rest_as_samples(
    samples: list[Row],
    queries: list[Row],
    replies: list[Row],
    ends: Callable[[Row], Ends],
    zids: dict[str, dict[str, str]],
) -> None:
    received = TRUTH["advanced"]["samples"]
    publisher = zids["advanced"]["publisher"]
    eid = received[0]["source_info"]["eid"]
    beat = f"adv/x/@adv/pub/{publisher}/{eid}/_"
    pushed = _links(samples, "advanced", ends, lambda row: row)
    assert pushed.keys() == {("publisher", "subscriber")}
    data = [row for row in pushed["publisher", "subscriber"] if row["key"] != beat]
    assert [_sample(row) for row in data] == received[10:]
    beats = [row for row in pushed["publisher", "subscriber"] if row["key"] == beat]
    # The number of the last sample that was put when each beat was sent.
    seen = {row["source_sn"]: (row["sequence"], row["offset"]) for row in data} | {9: (-1, 0)}
    assert [int.from_bytes(row["payload"], "little") for row in beats] == [
        max(n for n, place in seen.items() if place < (row["sequence"], row["offset"]))
        for row in beats
    ]
    asked = _links(queries, "advanced", ends, lambda row: (row["key"], row["parameters"]))
    assert asked == {("subscriber", "publisher"): [("adv/**/@adv/**", "_anyke"), (beat, "_anyke")]}
    answered = _links(replies, "advanced", ends, _sample)
    assert answered == {("publisher", "subscriber"): received[:10] * 2}


def test_every_one_of_thousands(messages: DataFrame, ends: Callable[[Row], Ends]) -> None:
    """The n-th put has n as its payload, and goes to the sensor n mod 16."""
    found = tables.samples(messages).where("capture like '%thousands%'")
    places = found.select("capture", "flow", "connection", "direction").distinct()
    links = [ends(row.asDict()) for row in places.collect()]
    assert links == [("publisher", "subscriber")]
    number = F.conv(
        F.concat(*[F.substring(F.hex("payload"), 2 * i + 1, 2) for i in reversed(range(8))]), 16, 10
    ).cast("bigint")
    order = Window.partitionBy("capture").orderBy("sequence", "offset")
    put = found.select("key", number.alias("n"), F.row_number().over(order).alias("at"), "kind")
    wrong = put.where(
        (F.col("n") != F.col("at") - 1)
        | (F.col("key") != F.concat(F.lit("thr/sensor/"), (F.col("n") % 16).cast("string")))
        | (F.col("kind") != "PUT")
    )
    assert put.count() == TRUTH["thousands"]["sent"][0]["received"] == 60_000
    assert wrong.count() == 0


def test_only_who_was_let_in_could_put(samples: list[Row], ends: Callable[[Row], Ends]) -> None:
    put = _links(samples, "usrpwd", ends, lambda row: (row["key"], row["kind"], row["payload"]))
    assert put == {("allowed", "router"): [("auth/x", "PUT", b"hello")]}


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


def _paths(name: str) -> dict[str, list[Ends]]:
    """The links that a query with each selector goes over, in that order."""
    if name == "three_routers":
        end = [("b", "a"), ("a", "left")]
        return {"net/q": [("right", "c"), ("c", "b"), *end], "net/*": [("peer", "b"), *end]}
    if name == "peer_query_reply":
        asked = {query["selector"] for query in TRUTH[name]["queries"]}
        return {selector: [("querier", "queryable")] for selector in asked}
    return {"q/x": [("subscriber", "router"), ("router", "publisher")]}


def _over(name: str, rows: list[Row]) -> Links:
    found: Links = defaultdict(list)
    for row in rows:
        for link in _paths(name)[row["selector"]]:
            found[link].append(row)
    return dict(found)


ONLY_SAMPLES = ["client_router_pubsub", "fragmentation", "thousands", "udp"]
OTHERS = sorted(set(ROLES) - {"advanced"})


@pytest.mark.parametrize("name", OTHERS)
def test_queries_of_every_link(queries: list[Row], ends: Callable[[Row], Ends], name: str) -> None:
    assert _links(queries, name, ends, _query) == _over(name, TRUTH[name]["queries"])


@pytest.mark.parametrize("name", OTHERS)
def test_replies_of_every_link(
    queries: list[Row], replies: list[Row], ends: Callable[[Row], Ends], name: str
) -> None:
    """With the query that they answer."""
    asked = {
        (row["capture"], row["flow"], row["connection"], row["sequence"], row["offset"]): row
        for row in queries
    }

    def told(row: Row) -> Row:
        place = row["query_sequence"], row["query_offset"]
        query = asked[row["capture"], row["flow"], row["connection"], *place]
        assert query["request_id"] == row["request_id"]
        assert query["side"] != row["side"]
        assert (query["query_id"], query["hop"]) == (row["query_id"], row["hop"])
        assert 0 <= row["latency"] <= query["latency"]
        return {"selector": _query(query)["selector"], **_reply(row)}

    expected = {link[::-1]: rows for link, rows in _over(name, TRUTH[name]["replies"]).items()}
    found = _links(replies, name, ends, told)
    if name == "peer_query_reply":
        # Consolidation hands the replies to one query over in no order.
        (link,) = found
        counts = [row["replies"] + row["errors"] for row in queries if _name(row) == name]
        found[link], last = _runs(found[link], counts[:-1]), found[link][sum(counts[:-1]) :]
        expected[link] = _runs(expected[link], counts[:-1])
        # The last query's were not written down; encodings and times are of each reply's own.
        answers = [(row["selector"], row["ok"]["key"], row["ok"]["payload"]) for row in last]
        assert answers == [
            ("store/a/**?many", f"store/a/{i}", f"value {i}".encode().hex()) for i in range(7)
        ]
    assert found == expected


def _runs(rows: list[Row], counts: list[int]) -> list[list[str]]:
    """Each query's, sorted."""
    found, start = [], 0
    for count in counts:
        found.append(sorted(json.dumps(row, sort_keys=True) for row in rows[start : start + count]))
        start += count
    return found


@pytest.mark.parametrize("name", OTHERS)
def test_one_query_over_its_links(
    queries: list[Row], ends: Callable[[Row], Ends], name: str
) -> None:
    """``query_id`` is one for all links of a query, and ``hop`` counts them from the querier."""
    by_id: dict[int, list[tuple[int, str, Ends]]] = defaultdict(list)
    for row in queries:
        if _name(row) == name:
            by_id[row["query_id"]].append((row["hop"], _query(row)["selector"], ends(row)))
    found = sorted(sorted(links) for links in by_id.values())
    expected = [
        [(hop, query["selector"], link) for hop, link in enumerate(_paths(name)[query["selector"]])]
        for query in TRUTH[name]["queries"]
    ]
    assert found == sorted(expected)


@pytest.mark.parametrize("name", OTHERS)
def test_who_answered_is_the_same_on_every_link(
    replies: list[Row], zids: dict[str, dict[str, str]], name: str
) -> None:
    who = {row["responder_zid"] for row in replies if _name(row) == name}
    role = {"peer_query_reply": "queryable", "three_routers": "left"}.get(name, "publisher")
    assert who == ({zids[name][role]} if TRUTH[name]["replies"] else set())


# --- liveliness and other declarations ----------------------------------------------------------


def test_tokens_of_every_link(declarations: list[Row], ends: Callable[[Row], Ends]) -> None:
    tokens = [row for row in declarations if row["kind"] == "token"]
    lives = _links(
        (row for row in tokens if not row["snapshot"]), "liveliness", ends, lambda row: row
    )
    keys = {link: [row["key"] for row in rows] for link, rows in lives.items()}
    members = [f"group/m{i}" for i in range(4)]
    assert keys == {("router", "watcher"): members} | {
        (f"m{i}", "router"): [f"group/m{i}"] for i in range(4)
    }
    seen = lives["router", "watcher"]
    changes = [(row["declared"], {"key": row["key"], "kind": "PUT"}) for row in seen]
    changes += [(row["undeclared"], {"key": row["key"], "kind": "DELETE"}) for row in seen]
    changes.sort(key=lambda change: change[0])
    assert [change for _, change in changes] == TRUTH["liveliness"]["liveliness"]
    answers: dict[int, list[str]] = defaultdict(list)
    for row in tokens:
        if row["snapshot"] and _name(row) == "liveliness":
            assert ends(row) == ("router", "watcher")
            answers[row["interest_id"]].append(row["key"])
    alive = [{"alive": sorted(keys)} for _, keys in sorted(answers.items())]
    assert alive == TRUTH["liveliness"]["sent"]


def test_a_token_across_three_routers(declarations: list[Row], ends: Callable[[Row], Ends]) -> None:
    tokens = (row for row in declarations if row["kind"] == "token")
    found = _links(tokens, "three_routers", ends, lambda row: (row["key"], row["ended_by"]))
    assert found == {
        ("left", "a"): [("net/alive/a", "closed")],
        ("a", "b"): [("net/alive/a", "undeclared")],
        ("b", "c"): [("net/alive/a", "undeclared")],
        # The answer to a question, not about the future.
        ("c", "right"): [("net/alive/a", None)],
    }


def test_who_declared_what(declarations: list[Row], ends: Callable[[Row], Ends]) -> None:
    """By their roles: subscribers subscribe, queryables answer, tokens are as above."""
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in declarations:
        who = ends(row)[0]
        if row["kind"] in ("subscriber", "queryable") and who not in ("router", "a", "b", "c"):
            found[_name(row)].add((who, row["kind"]))
    both = {("subscriber", "subscriber"), ("publisher", "queryable")}
    assert found == {
        **dict.fromkeys(THROUGH_A_ROUTER, both),
        **{name: {("subscriber", "subscriber")} for name in ONLY_SAMPLES},
        "advanced": both,
        "peer_query_reply": {("queryable", "queryable")},
        "three_routers": {
            ("left", "queryable"), ("right", "subscriber"), ("peer", "subscriber"),
        },
    }  # fmt: skip
