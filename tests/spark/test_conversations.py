"""What no recorded capture has: ids that are used again, late starts, losses, damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from zenwire.capture import SCHEMA
from zenwire.spark import tables
from zenwire.wire import compress_batch, encode, encode_batch
from zenwire.wire.data import Err, Put, Query, Reply
from zenwire.wire.declare import (
    DeclareKeyExpr,
    DeclareSubscriber,
    UndeclareKeyExpr,
    UndeclareSubscriber,
)
from zenwire.wire.network import Declare, Push, Request, Response, ResponseFinal
from zenwire.wire.scouting import Scout
from zenwire.wire.structs import SourceInfo
from zenwire.wire.transport import Close, Fragment, Frame, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, Mapping, WhatAmIMatcher, WireExpr, ZenohId

A, B = 0, 1
Conversation = Callable[..., DataFrame]


@pytest.fixture
def conversation(spark: SparkSession) -> Conversation:
    """Batches from (side, bytes or messages), a millisecond apart."""

    def make(*said: tuple[int, Any], **more: object) -> DataFrame:
        rows = []
        counts = [0, 0]
        for i, (side, content) in enumerate(said):
            data = content if isinstance(content, bytes) else encode_batch(content)
            ends = [("10.0.0.1", 40_000), ("10.0.0.2", 7447)]
            (source, source_port), (target, target_port) = ends[side], ends[1 - side]
            row = dict.fromkeys(SCHEMA.names) | {
                "capture": "x.pcap", "flow": 7, "link": "tcp", "connection": 0,
                "source": source, "source_port": source_port,
                "target": target, "target_port": target_port,
                "time": i * 1_000_000, "first_time": i * 1_000_000,
                "sequence": counts[side], "offset": 0, "bytes": data,
                "scouting": False, "lowlatency": False, "compression": False,
                "skipped": 0, "missing": 0,
            }  # fmt: skip
            counts[side] += 1
            rows.append(row | more)
        return spark.createDataFrame(pa.Table.from_pylist(rows, SCHEMA))

    return make


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.drop("value").toArrow().to_pylist()
    return sorted(rows, key=lambda row: (row["time"], row["offset"] or 0))


def _frame(sn: int, *messages: object) -> list[object]:
    return [Frame(reliable=True, sn=sn), *messages]


def _push(scope: int, suffix: str = "", mapping: Mapping = Mapping.SENDER, n: int = 0) -> Push:
    source = SourceInfo(zid=ZenohId(b"\x01"), eid=1, sn=n)
    key = WireExpr(scope, suffix, mapping)
    return Push(key=key, body=Put(payload=b"x", source_info=source))


def _alias(number: int, key: str) -> Declare:
    return Declare(body=DeclareKeyExpr(expr_id=number, key=WireExpr(0, key)))


def test_ids_of_both_sides_and_their_second_lives(conversation: Conversation) -> None:
    gone = Declare(body=UndeclareKeyExpr(expr_id=1))
    found = _rows(
        tables.samples(
            conversation(
                (A, _frame(0, _push(1), _alias(1, "a/one"), _push(1, "/x"))),
                (B, _frame(0, _alias(1, "b/one"), _push(1), _push(1, "/y", Mapping.RECEIVER))),
                # Ignored: the id is alive.
                (A, _frame(1, _alias(1, "a/other"), _push(1))),
                (A, _frame(2, gone, _push(1), _alias(1, "a/two"), _push(1))),
                (A, _frame(3, _push(1, "", Mapping.RECEIVER), _push(0, "whole/key"))),
                (B, _frame(1, _push(1, "", Mapping.RECEIVER), _push(9, "", Mapping.RECEIVER))),
            )
        )
    )
    assert [row["key"] for row in found] == [
        None, "a/one/x", "b/one", "a/one/y", "a/one", None, "a/two", "b/one", "whole/key",
        "a/two", None,
    ]  # fmt: skip
    assert [row["key_fault"] for row in found if row["key"] is None] == [
        "scope 1 was not declared by the sender in this capture",
        "scope 1 was not declared by the sender in this capture",
        "scope 9 was not declared by the receiver in this capture",
    ]


def test_an_entity_lives_again(conversation: Conversation) -> None:
    on = Declare(body=DeclareSubscriber(id=1, key=WireExpr(0, "k")))
    off = Declare(body=UndeclareSubscriber(id=1))
    frames = [_frame(n, message) for n, message in enumerate([off, on, on, off, on])]
    found = tables.declarations(conversation(*[(A, frame) for frame in frames]))
    lives = [
        (row["declared"], row["undeclared"], row["times"], row["key"])
        for row in found.orderBy("sequence").toArrow().to_pylist()
    ]
    ms = 1_000_000
    assert lives == [(None, 0, 0, None), (ms, 3 * ms, 2, "k"), (4 * ms, None, 1, "k")]


def test_gaps_of_lanes_and_sources(conversation: Conversation) -> None:
    batches = conversation(
        (A, _frame(2**28 - 1, _push(0, "k", n=1))),
        (A, _frame(0, _push(0, "k", n=2))),
        (A, _frame(4, _push(0, "k", n=5))),
        # Late, and repeated: nothing is missing.
        (A, _frame(3)),
        (A, _frame(3)),
    )
    found = _rows(tables.losses(batches))
    assert [(r["kind"], r["from_sn"], r["to_sn"], r["count"], r["time"]) for r in found] == [
        ("sequence", 1, 3, 3, 2_000_000),
        ("source", 3, 4, 2, 2_000_000),
    ]


def test_a_gap_counts_only_while_the_receiver_had_subscribed(conversation: Conversation) -> None:
    def on(number: int, key: str) -> Declare:
        return Declare(body=DeclareSubscriber(id=number, key=WireExpr(0, key)))

    def off(number: int) -> Declare:
        return Declare(body=UndeclareSubscriber(id=number))

    batches = conversation(
        (A, [OpenSyn(lease=1, initial_sn=0, cookie=b"x")]),
        (B, [OpenAck(lease=1, initial_sn=0)]),
        (A, _frame(0, _push(0, "k/1", n=1))),
        # The first sample was sent before the other side said what it wants.
        (B, _frame(0, on(1, "k/*"))),
        (A, _frame(1, _push(0, "k/1", n=5))),
        # Of another key.
        (B, _frame(1, on(2, "other"), off(2))),
        (A, _frame(2, _push(0, "k/1", n=8))),
        # Replaced without a moment in between.
        (B, _frame(2, on(3, "**"), off(1))),
        (A, _frame(3, _push(0, "k/1", n=11))),
        (B, _frame(3, off(3))),
        (B, _frame(4, on(3, "k/**"))),
        (A, _frame(4, _push(0, "k/1", n=20))),
        (A, _frame(5, _push(0, "k/1", n=21), _push(0, "k/1", n=23))),
    )
    lost, no_loss = ("source", "gap"), ("not_sent", "not sent here")
    for source in (None, tables.messages(batches)):
        found = _rows(tables.losses(batches, source))
        assert [(r["kind"], r["reason"], r["from_sn"], r["count"]) for r in found] == [
            (*no_loss, 2, 3), (*lost, 6, 2), (*lost, 9, 2), (*no_loss, 12, 8), (*lost, 22, 1),
        ]  # fmt: skip


def _pieces(sn: int, *parts: bytes, first: bool = True, last: bool = True) -> list[list[object]]:
    return [
        [
            Fragment(
                reliable=True,
                sn=sn + i,
                more=not last or i < len(parts) - 1,
                first=first and i == 0,
                payload=part,
            )
        ]
        for i, part in enumerate(parts)
    ]


def test_messages_in_pieces(conversation: Conversation) -> None:
    def message(key: str) -> tuple[bytes, bytes, bytes]:
        data = encode(_push(0, key))
        return data[:3], data[3:9], data[9:]

    whole = _pieces(10, *message("whole"))
    cut = _pieces(20, *message("cut"))
    del cut[1]
    beheaded = _pieces(31, *message("beheaded"), first=False)
    given_up = _pieces(41, *message("given/up")[:2], last=False)
    given_up.append([Fragment(reliable=True, sn=43, drop=True, payload=b"")])
    wrong = _pieces(50, b"\x7d\x00", b"\x05k")
    batches = conversation(*[(A, p) for p in [*whole, *cut, *beheaded, *given_up, *wrong]])
    (sample,) = _rows(tables.samples(batches))
    assert (sample["key"], sample["sequence"]) == ("whole", 2)
    assert sample["reliability"] == "RELIABLE"
    broken = [row for row in _rows(tables.losses(batches)) if row["kind"] == "fragments"]
    assert [(row["reason"], row["from_sn"], row["to_sn"]) for row in broken] == [
        ("pieces are missing", 20, 20),
        ("pieces are missing", 22, 22),
        ("pieces are missing", 31, 33),
        ("given up by the sender", 41, 43),
    ]
    (bad,) = tables.malformed(batches).toArrow().to_pylist()
    assert (bad["layer"], bad["fault"], bad["bytes"]) == ("network", "truncated", b"\x7d\x00\x05k")


def test_what_does_not_decode_is_kept(conversation: Conversation) -> None:
    good = encode_batch(_frame(1, _push(0, "k")))
    close = encode_batch([Close(reason=CloseReason.GENERIC)])
    batches = conversation(
        (A, good + b"\x7d\x00\x30"), (A, b"\x1f"), (A, good), (A, good + close + b"void")
    )
    found = tables.malformed(batches).orderBy("sequence").toArrow().to_pylist()
    assert [(row["fault"], row["message_offset"], row["bytes"]) for row in found] == [
        ("truncated", len(good), b"\x7d\x00\x30"),
        ("unknown_id", 0, b"\x1f"),
        ("trailing", len(good + close), b"void"),
    ]
    assert [row["key"] for row in _rows(tables.samples(batches))] == ["k"] * 3


def test_compressed_batches(conversation: Conversation) -> None:
    good = compress_batch(encode_batch(_frame(1, *[_push(0, "some/key")] * 20)))
    assert good[0] == 1
    batches = conversation((A, good), (A, b"\x01\xff"), (A, b"\x02"), compression=True)
    assert len(_rows(tables.samples(batches))) == 20
    found = tables.malformed(batches).orderBy("sequence").toArrow().to_pylist()
    assert [(row["fault"], row["bytes"]) for row in found] == [
        ("compression", b"\x01\xff"),
        ("compression", b"\x02"),
    ]


def test_scouting(conversation: Conversation) -> None:
    scout = encode(Scout(version=9, what=WhatAmIMatcher.ROUTER))
    batches = conversation((A, scout), (A, b"\x1f"), scouting=True)
    (row,) = tables.messages(batches).collect()
    assert (row.layer, row.message) == ("scouting", "SCOUT")
    assert row.fields.toPython()["what"] == ["ROUTER"]
    (bad,) = tables.malformed(batches).collect()
    assert (bad.layer, bad.fault) == ("scouting", "unknown_id")


def test_request_ids_that_are_used_again(conversation: Conversation) -> None:
    def ask(n: int, key: str) -> list[object]:
        return _frame(n, Request(request_id=1, key=WireExpr(0, key), body=Query()))

    def answer(n: int, *bodies: Reply | Err) -> list[object]:
        told = [Response(request_id=1, key=WireExpr(0, "k"), body=body) for body in bodies]
        return _frame(n, *told, ResponseFinal(request_id=1))

    reply, error = Reply(body=Put(payload=b"r")), Err(payload=b"Timeout")
    batches = conversation(
        (B, answer(0, reply)),
        (A, ask(0, "first")),
        (B, answer(1, reply, reply)),
        (A, ask(1, "second")),
        (B, answer(2, error)),
        (A, ask(2, "third")),
        (B, answer(3)),
        (A, ask(3, "fourth")),
        # The other side asks with the same number.
        (B, ask(4, "fifth")),
        (A, answer(4, error, reply)),
    )
    found = _rows(tables.queries(batches))
    assert [(q["key"], q["outcome"], q["replies"], q["errors"], q["latency"]) for q in found] == [
        ("first", "replied", 2, 0, 0.001),
        ("second", "timeout", 0, 1, 0.001),
        ("third", "empty", 0, 0, 0.001),
        ("fourth", "unfinished", 0, 0, None),
        ("fifth", "replied", 1, 1, 0.001),
    ]
    asked = [row["query_key"] for row in _rows(tables.replies(batches))]
    assert asked == [None, "first", "first", "second", "fifth", "fifth"]


def test_payloads_as_text_and_as_values(conversation: Conversation, spark: SparkSession) -> None:
    from zenwire.wire.encoding import Encoding

    puts = [
        ("application/json", b'{"a": 1}'),
        ("application/json", b"{"),
        ("text/plain;utf-8", "\u00e9".encode()),
        ("text/plain", b"\xff"),
        ("zenoh/bytes", b"raw"),
    ]
    pushes = [
        Push(key=WireExpr(0, "k"), body=Put(payload=data, encoding=Encoding.parse(name)))
        for name, data in puts
    ]
    rows = tables.samples(conversation((A, _frame(1, *pushes)))).orderBy("offset").collect()
    assert [(row.text, row.value and row.value.toPython(), row.schema) for row in rows] == [
        ('{"a": 1}', {"a": 1}, None),
        ("{", None, None),
        ("\u00e9", None, "utf-8"),
        (None, None, None),
        (None, None, None),
    ]
    assert [bytes(row.payload) for row in rows] == [data for _, data in puts]


def test_a_key_expression_declared_in_pieces(conversation: Conversation) -> None:
    data = encode(_alias(1, "declared/in/pieces"))
    pieces = _pieces(10, data[:4], data[4:9], data[9:])
    # One that is not to be put together for this, and one that lacks a piece.
    other = _pieces(20, *(encode(_push(0, "k"))[i : i + 5] for i in range(0, 10, 5)))
    lost = _pieces(31, *(encode(_alias(2, "never/there"))[i : i + 9] for i in (0, 9, 18)))
    del lost[1]
    used = [_frame(40, _push(1, "/x"), _push(2))]
    batches = conversation(*[(A, p) for p in [*pieces, *other, *lost, *used]])
    keys = [row["key"] for row in _rows(tables.samples(batches)) if row["sequence"] == 7]
    assert keys == ["declared/in/pieces/x", None]


@pytest.mark.parametrize(
    ("numbers", "gaps"),
    [
        # The reference goes on with the next but one.
        ([(10, 12), 14, (15, 16), 18], []),
        ([(10, 12), 14, (15, 16), 19], [(18, 18)]),
        ([(10, 12), 16], [(14, 15)]),
        # Others do not, and then one that is missing is missing.
        ([(10, 12), 13, (14, 15), 17], [(16, 16)]),
        # Only after a last piece.
        ([10, 12], [(11, 11)]),
    ],
)
def test_numbers_after_a_message_in_pieces(
    conversation: Conversation, numbers: list[Any], gaps: list[tuple[int, int]]
) -> None:
    said: list[list[object]] = []
    for number in numbers:
        if isinstance(number, int):
            said.append(_frame(number, _push(0, "k")))
        else:
            first, last = number
            data = encode(_push(0, "in/pieces"))
            cuts = [data[4 * i : 4 * i + 4] for i in range(last - first)]
            said += _pieces(first, *cuts, data[4 * (last - first) :])
    found = _rows(tables.losses(conversation(*[(A, one) for one in said])))
    lost = [(row["from_sn"], row["to_sn"]) for row in found if row["kind"] == "sequence"]
    assert lost == gaps


def test_numbers_that_no_node_has(conversation: Conversation) -> None:
    """Differences of such would not fit; no job fails by them."""
    timeouts = [Request(request_id=n, key=WireExpr(0, "k"), body=Query(), timeout=2**64 - 1 - n)
                for n in range(2)]  # fmt: skip
    batches = conversation(
        *[(A, _frame(sn, _push(0, "k", n=sn))) for sn in (0, 2**32 - 1, 1, 2**31)],
        (A, _frame(2, *timeouts)),
    )
    assert {row["kind"] for row in _rows(tables.losses(batches))} <= {"sequence", "source"}
    assert [row["outcome"] for row in _rows(tables.queries(batches))] == ["unfinished"] * 2


def test_a_schema_that_names_a_type_makes_a_value(conversation: Conversation) -> None:
    from zenwire.wire.encoding import Encoding

    puts = [
        ("zenoh/serialized;u32", b"\x2a\0\0\0"),
        ("zenoh/serialized;(str, [f64])", b"\1x\1" + bytes(8)),
        ("zenoh/serialized;u32", b"\x2a\0\0\0\0"),
        ("zenoh/serialized;my.Pose", b"\1"),
        ("zenoh/serialized", b"\1"),
        ("zenoh/bytes;u8", b"\1"),
    ]
    pushes = [
        Push(key=WireExpr(0, "k"), body=Put(payload=data, encoding=Encoding.parse(name)))
        for name, data in puts
    ]
    batches = conversation((A, _frame(1, *pushes)))
    for source in (batches, tables.messages(batches)):
        rows = tables.samples(source).orderBy("offset").collect()
        values = [row.value and row.value.toPython() for row in rows]
        assert values == [42, ["x", [0.0]], None, None, None, None]
        assert [row.text for row in rows] == [None] * 6


def test_spread_moves_batches_and_changes_nothing(conversation: Conversation) -> None:
    batches = conversation(*[(A, _frame(n, _push(0, f"k/{n}"))) for n in range(200)])
    moved = tables.spread(batches, 4)
    assert sorted(map(str, moved.collect())) == sorted(map(str, batches.collect()))
    parts = moved.selectExpr("spark_partition_id() p", "sequence >> 6 run").distinct().collect()
    assert len({row.p for row in parts}) > 1
    assert len({row.run for row in parts}) == len(parts) == 4


def test_some_columns_of_samples(conversation: Conversation) -> None:
    batches = conversation((A, _frame(0, _alias(1, "k"), _push(1, "/x", n=7), _push(2))))
    every = tables.samples(batches)
    columns = tuple(name for name in every.columns if name != "value")
    expected = _rows(every)
    for some in (columns[::2], columns[1::2], ("key", "source_sn", "offset", "time")):
        found = tables.samples(batches, some)
        assert found.columns == list(some)
        assert found.toArrow().to_pylist() == [
            {name: row[name] for name in some} for row in expected
        ]
    with pytest.raises(ValueError, match="no column nothing"):
        tables.samples(batches, ("key", "nothing"))
