"""A passive view of conversations tells what the applications saw, and what a capture lacks."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.unit.capture.writer import packets_of, pcap
from zenwire.capture import SCHEMA
from zenwire.capture.conversation import (
    KINDS,
    Conversation,
    Entry,
    Want,
    capture_files,
    follow,
    subscriptions,
    windows,
)
from zenwire.capture.conversation import (
    conversation as conversations,
)
from zenwire.capture.conversation.link import Pieces
from zenwire.cli.inspect_capture import column_scan
from zenwire.cli.inspect_lines import body_of
from zenwire.errors import CaptureError
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
from zenwire.wire.transport import Fragment, Frame, InitAck, InitSyn, KeepAlive, OpenAck, OpenSyn
from zenwire.wire.values import (
    Mapping,
    Resolution,
    WhatAmI,
    WhatAmIMatcher,
    WireExpr,
    ZenohId,
)

CAPTURES = Path(__file__).parents[2] / "captures"
TRUTH = {
    path.stem: json.loads(path.read_text())
    for path in (Path(__file__).parents[2] / "spark" / "truth").iterdir()
}
A, B = 0, 1


def read(name: str, want: Want | None = None) -> list[Entry]:
    conversation = Conversation(column_scan(), want)
    found = [
        entry
        for window in windows(CAPTURES / f"{name}.pcap")
        for entry in conversation.feed(window)
    ]
    return [*found, *conversation.finish()]


# --- the recorded captures ------------------------------------------------------------------------


def sample(message: Any, key: str | None) -> dict[str, Any]:
    """As the truth files tell it; ``message`` is a PUSH or a RESPONSE."""
    body = message.body
    body = body.body if isinstance(body, Reply) else body
    payload = getattr(body, "payload", b"")
    stamp, source = body.timestamp, body.source_info
    return {
        "key": key,
        "kind": "PUT" if isinstance(body, Put) else "DELETE",
        "payload": payload.hex() if len(payload) <= 4096 else None,
        "payload_len": len(payload),
        "encoding": str(body.encoding) if isinstance(body, Put) else "zenoh/bytes",
        "priority": message.qos.priority.name,
        "congestion_control": message.qos.congestion_control.name,
        "express": message.qos.express,
        "timestamp": stamp and f"{stamp.time}/{stamp.id}",
        "attachment": None if body.attachment is None else body.attachment.hex(),
        "source_info": source and {"zid": str(source.zid), "eid": source.eid, "sn": source.sn},
    }


def links(
    entries: Iterable[Entry], form: Callable[[Entry], Any]
) -> dict[tuple[int | None, int | None, int], list[Any]]:
    found = defaultdict(list)
    for entry in entries:
        found[entry.link.flow, entry.link.connection, entry.side].append(form(entry))
    return found


@pytest.mark.parametrize(
    "name", [name for name in TRUTH if TRUTH[name]["samples"] and name != "advanced"]
)
def test_a_link_towards_the_subscriber_has_its_samples_in_order(name: str) -> None:
    found = links(
        read(name, Want(frozenset({"put", "delete"}))), lambda e: sample(e.message, e.key)
    )
    assert TRUTH[name]["samples"] in found.values()


def test_what_an_advanced_subscriber_got() -> None:
    entries = read("advanced", Want(frozenset({"put", "delete", "reply"})))
    (seen,) = links([e for e in entries if "@adv" not in (e.key or "")], lambda e: e).values()
    # It asks more than once, and drops what it has already.
    once: dict[tuple[str, int, int], dict[str, Any]] = {}
    for entry in seen:
        told = sample(entry.message, entry.key)
        source = told["source_info"]
        once.setdefault((source["zid"], source["eid"], source["sn"]), told)
    assert [*once.values()] == TRUTH["advanced"]["samples"]


@pytest.mark.parametrize("name", [name for name in TRUTH if TRUTH[name]["queries"]])
def test_queries(name: str) -> None:
    def told(entry: Entry) -> dict[str, Any]:
        assert isinstance(entry.message, Request)
        query = entry.message.body
        parameters = f"?{query.parameters}" if query.parameters else ""
        return {
            "selector": f"{entry.key}{parameters}",
            "payload": query.body and query.body.payload.hex(),
            "encoding": query.body and str(query.body.encoding),
            "attachment": None if query.attachment is None else query.attachment.hex(),
        }

    found = links(read(name, Want(frozenset({"query"}))), told)
    assert TRUTH[name]["queries"] in found.values()


def test_replies_have_the_latency_of_their_query() -> None:
    entries = read("peer_query_reply", Want(frozenset({"reply", "error", "final"})))
    assert len(entries) == 48 + 3 + 15
    assert all(e.latency is not None and 0 < e.latency < 1 for e in entries)
    keys = {e.key for e in entries if e.kind == "final"}
    assert keys == {"store/a/1", "store/a/**", "store/**"}


def test_nothing_is_lost_malformed_or_without_a_key() -> None:
    for path in CAPTURES.iterdir():
        if path.stem == "thousands":
            continue
        entries = read(path.stem)
        wrong = [e for e in entries if e.kind in ("loss", "malformed") or e.key_fault]
        assert not wrong, path


def test_entries_come_in_order_of_time() -> None:
    entries = read("three_routers")
    assert [e.time for e in entries] == sorted(e.time for e in entries)
    assert {e.sender.mode for e in entries} >= {"router", "client"}


def test_every_one_of_thousands_is_counted_whatever_is_told() -> None:
    for want in (
        Want(key="nothing/**"),
        Want(kinds=frozenset({"query"})),
        Want(zid="0"),
        Want(kinds=frozenset()),
    ):
        conversation = Conversation(column_scan(), want)
        shown = [e for w in windows(CAPTURES / "thousands.pcap") for e in conversation.feed(w)]
        assert shown == []
        assert conversation.tally.kinds["put"] == 60_000
        assert conversation.tally.batches == 4414


@pytest.mark.parametrize("name", ["client_router_pubsub", "three_routers", "lowlatency"])
def test_filters_give_what_they_would_leave_of_all(name: str) -> None:
    everything = read(name, Want(frozenset(KINDS)))
    keys = sorted({e.key for e in everything if e.key and e.kind == "put"})
    zid = next(e.sender.zid for e in everything if e.sender.zid)
    assert zid is not None
    for want, keep in (
        (Want(key=keys[0]), lambda e: e.key == keys[0] or ("*" in (e.key or "") and e.key)),
        (Want(zid=zid[:6]), lambda e: zid in (e.sender.zid, e.receiver.zid)),
        (Want(frozenset({"put"})), lambda e: e.kind == "put"),
    ):
        found = [(e.time, e.kind, e.key, e.sequence, e.offset) for e in read(name, want)]
        quiet = {"frame", "fragment", "keepalive"} if want.kinds is None else set()
        expected = [
            (e.time, e.kind, e.key, e.sequence, e.offset)
            for e in everything
            if e.kind not in quiet and keep(e)
        ]
        if want.key is not None:
            # Whole expressions intersect: those that have a wildcard may or may not.
            assert {row for row in expected if row[2] == keys[0]} <= set(found)
            assert set(found) <= set(expected)
        elif want.zid is not None:
            # INIT names the first end before the second is known.
            assert found == expected
        else:
            assert found == expected


def test_the_size_of_the_window_does_not_show() -> None:
    def told(size: int) -> list[tuple[Any, ...]]:
        conversation = Conversation(column_scan())
        return [
            (e.kind, e.key, e.sequence, e.offset, e.latency)
            for w in windows(CAPTURES / "peer_query_reply.pcap", window=size)
            for e in conversation.feed(w)
        ]

    assert told(512) == told(4 << 20)


# --- what no recorded capture has ------------------------------------------------------------------


def rows(*said: tuple[int, Any], **more: object) -> list[pa.RecordBatch]:
    """Batches from (side, bytes or messages), a millisecond apart."""
    found = []
    counts = [0, 0]
    for i, (side, content) in enumerate(said):
        ends = [("10.0.0.1", 40_000), ("10.0.0.2", 7447)]
        (source, source_port), (target, target_port) = ends[side], ends[1 - side]
        row = dict.fromkeys(SCHEMA.names) | {
            "capture": "x.pcap", "flow": 7, "link": "tcp", "connection": 0,
            "source": source, "source_port": source_port,
            "target": target, "target_port": target_port,
            "time": i * 1_000_000, "first_time": i * 1_000_000,
            "sequence": counts[side], "offset": 0,
            "bytes": content if isinstance(content, bytes) else encode_batch(content),
            "scouting": False, "lowlatency": False, "compression": False,
            "skipped": 0, "missing": 0,
        }  # fmt: skip
        counts[side] += 1
        found.append(row | more)
    return pa.Table.from_pylist(found, SCHEMA).to_batches()


def hear(
    *said: tuple[int, Any], want: Want | None = None, at_once: bool = True, **more: object
) -> tuple[list[Entry], Conversation]:
    conversation = Conversation(column_scan(), want)
    batches = rows(*said, **more)
    if at_once:
        found = list(conversation.feed(batches))
    else:
        table = pa.Table.from_batches(batches)
        found = [
            e for i in range(len(table)) for e in conversation.feed(table.slice(i, 1).to_batches())
        ]
    return [*found, *conversation.finish()], conversation


def frame(sn: int, *messages: object) -> list[object]:
    return [Frame(reliable=True, sn=sn), *messages]


def push(scope: int, suffix: str = "", mapping: Mapping = Mapping.SENDER, n: int = 0) -> Push:
    source = SourceInfo(zid=ZenohId(b"\x01"), eid=1, sn=n)
    return Push(key=WireExpr(scope, suffix, mapping), body=Put(payload=b"x", source_info=source))


def alias(number: int, key: str) -> Declare:
    return Declare(body=DeclareKeyExpr(expr_id=number, key=WireExpr(0, key)))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("key", [None, "**"])
def test_ids_of_both_sides_and_their_second_lives(at_once: bool, key: str | None) -> None:
    gone = Declare(body=UndeclareKeyExpr(expr_id=1))
    found, _ = hear(
        (A, frame(0, push(1), alias(1, "a/one"), push(1, "/x"))),
        (B, frame(0, alias(1, "b/one"), push(1), push(1, "/y", Mapping.RECEIVER))),
        # Ignored: the id is alive.
        (A, frame(1, alias(1, "a/other"), push(1))),
        (A, frame(2, gone, push(1), alias(1, "a/two"), push(1))),
        (A, frame(3, push(1, "", Mapping.RECEIVER), push(0, "whole/key"))),
        (B, frame(1, push(1, "", Mapping.RECEIVER), push(9, "", Mapping.RECEIVER))),
        at_once=at_once,
        want=Want(frozenset({"put"}), key),
    )
    expected = [
        None, "a/one/x", "b/one", "a/one/y", "a/one", None, "a/two", "b/one", "whole/key",
        "a/two", None,
    ]  # fmt: skip
    assert [e.key for e in found] == [k for k in expected if key is None or k is not None]
    assert [e.key_fault for e in found if e.key is None] == (
        [
            "scope 1 was not declared by the sender in this capture",
            "scope 1 was not declared by the sender in this capture",
            "scope 9 was not declared by the receiver in this capture",
        ]
        if key is None
        else []
    )


def test_a_key_filter_finds_keys_behind_ids_that_change_in_the_window() -> None:
    gone = Declare(body=UndeclareKeyExpr(expr_id=1))
    found, _ = hear(
        (A, frame(0, alias(1, "a"), push(1), gone, alias(1, "b"), push(1), push(0, "b/c"))),
        want=Want(frozenset({"put"}), "b"),
    )
    assert [(e.key, e.offset) for e in found] == [("b", found[0].offset)]


@pytest.mark.parametrize("at_once", [True, False])
def test_gaps_of_lanes_and_sources(at_once: bool) -> None:
    found, conversation = hear(
        (A, frame(2**28 - 1, push(0, "k", n=1))),
        (A, frame(0, push(0, "k", n=2))),
        (A, frame(4, push(0, "k", n=5))),
        # Late, and repeated: nothing is missing.
        (A, frame(3)),
        (A, frame(3)),
        want=Want(frozenset({"loss"})),
        at_once=at_once,
    )
    losses = [(e.loss.kind, e.loss.from_sn, e.loss.to_sn, e.loss.count) for e in found if e.loss]
    assert losses == [("sequence", 1, 3, 3), ("source", 3, 4, 2)]
    assert {e.time for e in found} == {2_000_000}
    assert conversation.tally.losses == {"sequence": 1, "source": 1}


def subscribed(number: int, key: str) -> Declare:
    return Declare(body=DeclareSubscriber(id=number, key=WireExpr(0, key)))


def unsubscribed(number: int) -> Declare:
    return Declare(body=UndeclareSubscriber(id=number))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("opened", [True, False])
def test_a_gap_counts_only_while_the_receiver_had_subscribed(at_once: bool, opened: bool) -> None:
    opening: list[tuple[int, Any]] = [
        (A, [OpenSyn(lease=1, initial_sn=0, cookie=b"x")]),
        (B, [OpenAck(lease=1, initial_sn=0)]),
    ]
    found, conversation = hear(
        *(opening if opened else []),
        (A, frame(0, push(0, "k/1", n=1))),
        # The first sample was sent before the other side said what it wants.
        (B, frame(0, subscribed(1, "k/*"))),
        (A, frame(1, push(0, "k/1", n=5))),
        # Of another key.
        (B, frame(1, unsubscribed(7), subscribed(2, "other"), unsubscribed(2))),
        (A, frame(2, push(0, "k/1", n=8))),
        # Replaced without a moment in between.
        (B, frame(2, subscribed(3, "**"), unsubscribed(1))),
        (A, frame(3, push(0, "k/1", n=11))),
        (B, frame(3, unsubscribed(3))),
        (B, frame(4, subscribed(3, "k/**"))),
        (A, frame(4, push(0, "k/1", n=20))),
        (A, frame(5, push(0, "k/1", n=21), push(0, "k/1", n=23))),
        want=Want(frozenset({"loss", "not_sent"})),
        at_once=at_once,
    )
    told = [(e.kind, e.loss.kind, e.loss.reason, e.loss.from_sn) for e in found if e.loss]
    lost, no_loss = ("loss", "source", "gap"), ("not_sent", "not_sent", "not sent here")
    assert told == [(*no_loss, 2), (*lost, 6), (*lost, 9), (*no_loss, 12), (*lost, 22)]
    assert conversation.tally.losses == {"source": 3}
    assert conversation.tally.not_sent == 2


@pytest.mark.parametrize("at_once", [True, False])
def test_a_gap_on_a_link_that_never_shows_a_subscription(at_once: bool) -> None:
    """From its start on, the link was not subscribed; a capture that starts later cannot tell."""
    opening: list[tuple[int, Any]] = [
        (A, [OpenSyn(lease=1, initial_sn=0, cookie=b"x")]),
        (B, [OpenAck(lease=1, initial_sn=0)]),
    ]
    samples = [(A, frame(n, push(0, "k", n=2 * n))) for n in range(2)]
    kinds = []
    for said in ([*opening, *samples], samples):
        found, _ = hear(*said, want=Want(frozenset({"loss", "not_sent"})), at_once=at_once)
        kinds += [e.kind for e in found]
    assert kinds == ["not_sent", "loss"]


def test_subscriptions_that_are_forgotten_make_no_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "ENDED", 1)
    short = [message for n in (1, 2, 3) for message in (subscribed(n, "k"), unsubscribed(n))]
    found, _ = hear(
        (A, frame(0, push(0, "k", n=1))),
        (B, frame(0, subscribed(9, "other"), unsubscribed(9), *short)),
        (A, frame(1, push(0, "k", n=3))),
        want=Want(frozenset({"loss", "not_sent"})),
    )
    assert [e.kind for e in found] == ["not_sent"]


def test_a_lane_begins_with_what_open_said_and_counts_as_init_agreed() -> None:
    small = Resolution.of(8)
    opening: list[tuple[int, Any]] = [
        (A, [InitSyn(version=9, zid=ZenohId(b"\x0a"), whatami=WhatAmI.CLIENT, resolution=small)]),
        (
            B,
            [
                InitAck(
                    version=9,
                    zid=ZenohId(b"\x0b"),
                    whatami=WhatAmI.ROUTER,
                    resolution=small,
                    cookie=b"c",
                )
            ],
        ),
        (A, [OpenSyn(lease=1000, initial_sn=126, cookie=b"c")]),
        (B, [OpenAck(lease=1000, initial_sn=5)]),
    ]
    found, conversation = hear(
        *opening, (A, frame(127)), (A, frame(0)), (B, frame(5)), want=Want(frozenset({"loss"}))
    )
    (loss,) = [e.loss for e in found if e.loss]
    assert (loss.from_sn, loss.to_sn, loss.count) == (126, 126, 1)
    (link,) = conversation.links
    assert [(end.zid, end.mode) for end in link.ends] == [("a", "client"), ("b", "router")]
    assert link.opened


def pieces(sn: int, *parts: bytes, first: bool = True, last: bool = True) -> list[list[object]]:
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


def parts(key: str) -> tuple[bytes, bytes, bytes]:
    data = encode(push(0, key))
    return data[:3], data[3:9], data[9:]


@pytest.mark.parametrize("at_once", [True, False])
def test_messages_in_pieces(at_once: bool) -> None:
    cut = pieces(20, *parts("cut"))
    del cut[1]
    given_up = pieces(41, *parts("given/up")[:2], last=False)
    given_up.append([Fragment(reliable=True, sn=43, drop=True, payload=b"")])
    said = [
        *pieces(10, *parts("whole")),
        *cut,
        *pieces(31, *parts("beheaded"), first=False),
        *given_up,
        *pieces(50, b"\x7d\x00", b"\x05k"),
        *pieces(60, *parts("unfinished")[:2], last=False),
    ]
    found, conversation = hear(*[(A, piece) for piece in said], at_once=at_once)
    (whole,) = [e for e in found if e.kind == "put"]
    assert (whole.key, whole.sequence) == ("whole", 2)
    broken = [e.loss for e in found if e.loss and e.loss.kind == "fragments"]
    assert [(loss.reason, loss.from_sn, loss.to_sn) for loss in broken] == [
        ("pieces are missing", 20, 20),
        ("pieces are missing", 22, 22),
        ("pieces are missing", 31, 33),
        ("given up by the sender", 41, 43),
        ("pieces are missing", 60, 61),
    ]
    (bad,) = [e for e in found if e.fault]
    assert (bad.layer, bad.fault, bad.data) == ("network", "truncated", b"\x7d\x00\x05k")
    assert conversation.tally.malformed == 1


@pytest.mark.parametrize("at_once", [True, False])
def test_a_number_may_be_left_out_after_the_last_piece(at_once: bool) -> None:
    def losses(*sns: int) -> list[tuple[int | None, int | None]]:
        """FRAMEs with these numbers, each after a message in pieces 10 to 12."""
        said: list[tuple[int, Any]] = []
        for start, sn in zip(range(10, 1000, 100), sns, strict=False):
            said += [(A, piece) for piece in pieces(start, *parts("k"))]
            said.append((A, frame(start + sn - 10)))
        # Only what comes right after pieces is looked at here.
        found, _ = hear(*said, want=Want(frozenset({"loss"})), at_once=at_once)
        return [
            (e.loss.from_sn, e.loss.to_sn) for e in found if e.loss and (e.loss.count or 0) < 50
        ]

    assert losses(14) == []
    assert losses(16) == [(14, 15)]
    # Who went on with the next number once leaves none out.
    assert losses(13, 14) == [(113, 113)]


def test_an_old_sender_marks_no_first_piece() -> None:
    said = [(A, piece) for piece in pieces(10, *parts("k"), first=False)]
    found, _ = hear(*said, want=Want(frozenset({"put", "loss"})))
    assert [(e.kind, e.key) for e in found] == [("put", "k")]
    # A capture that begins within a message has pieces that are none.
    found, _ = hear(*said[1:], want=Want(frozenset({"put", "loss", "malformed"})))
    (entry,) = found
    assert entry.loss
    assert (entry.loss.reason, entry.loss.count) == ("pieces are missing", 2)


def test_pieces_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "HELD", 1000)
    said = pieces(10, *[bytes(400)] * 6, last=False)
    found, conversation = hear(*[(A, piece) for piece in said], want=Want(frozenset({"loss"})))
    assert "too many pieces wait for the rest" in {e.loss.reason for e in found if e.loss}
    assert conversation._held <= 1000


def test_the_pieces_of_one_message_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zenwire.capture.conversation.link.PIECES", 100)
    lane = Pieces()
    lane.add(Fragment(sn=1, more=True, first=True, payload=bytes(90)), 128)
    (broken,) = lane.add(Fragment(sn=2, more=True, payload=bytes(90)), 128)
    assert lane.size == 0
    assert "are not kept" in str(broken)


def test_what_does_not_decode_is_told_with_its_bytes() -> None:
    good = encode_batch(frame(1, push(0, "k")))
    found, conversation = hear((A, good + b"\x7d\x00\x30"), (A, b"\x1f"), (A, good))
    assert [(e.kind, e.fault, e.offset, e.data) for e in found if e.kind == "malformed"] == [
        ("malformed", "truncated", len(good), b"\x7d\x00\x30"),
        ("malformed", "unknown_id", 0, b"\x1f"),
    ]
    assert [e.key for e in found if e.kind == "put"] == ["k", "k"]
    assert conversation.tally.malformed == 2


def test_compressed_batches() -> None:
    good = compress_batch(encode_batch(frame(1, *[push(0, "some/key")] * 20)))
    assert good[0] == 1
    found, _ = hear((A, good), (A, b"\x01\xff"), (A, b"\x02"), compression=True)
    assert len([e for e in found if e.kind == "put"]) == 20
    assert [e.fault for e in found if e.fault] == ["compression", "compression"]


def test_scouting() -> None:
    scout = encode(Scout(version=9, what=WhatAmIMatcher.ROUTER))
    found, conversation = hear((A, scout), (A, b"\x1f"), scouting=True)
    assert [(e.kind, e.fault) for e in found] == [("scout", None), ("malformed", "unknown_id")]
    assert not conversation.links[0].talked


def test_request_ids_that_are_used_again() -> None:
    def ask(n: int, key: str) -> list[object]:
        return frame(n, Request(request_id=1, key=WireExpr(0, key), body=Query()))

    def answer(n: int, *bodies: Reply | Err) -> list[object]:
        told = [Response(request_id=1, key=WireExpr(0, "k"), body=body) for body in bodies]
        return frame(n, *told, ResponseFinal(request_id=1))

    reply, error = Reply(body=Put(payload=b"r")), Err(payload=b"Timeout")
    found, _ = hear(
        (B, answer(0, reply)),
        (A, ask(0, "first")),
        (B, answer(1, reply, reply)),
        (A, ask(1, "second")),
        (B, answer(2, error)),
        # The other side asks with the same number.
        (B, ask(3, "third")),
        (A, answer(2, error, reply)),
    )
    ends = [(e.key, e.latency) for e in found if e.kind == "final"]
    assert ends == [(None, None), ("first", 0.001), ("second", 0.001), ("third", 0.001)]
    assert [e.latency for e in found if e.kind in ("reply", "error")] == [None, *[0.001] * 5]


def test_frames_and_keepalives_are_told_if_they_are_asked_for() -> None:
    said = [(A, [KeepAlive()]), (A, frame(1, push(0, "k")))]
    assert [e.kind for e in hear(*said)[0]] == ["put"]
    everything = hear(*said, want=Want(frozenset(KINDS)))[0]
    assert [e.kind for e in everything] == ["keepalive", "frame", "put"]


def test_what_the_capture_lacks_is_a_loss_and_what_is_not_zenoh_is_counted() -> None:
    fault: dict[str, Any] = {"bytes": None, "sequence": None, "skipped": 7}
    found, conversation = hear((A, b""), **fault, missing=5, fault="gap")
    assert [(e.loss.reason, e.loss.missing) for e in found if e.loss] == [("gap", 5)]
    for reason in ("not_zenoh", "overhead"):
        found, conversation = hear((A, b""), **fault, fault=reason)
        assert found == []
        assert conversation.tally.accounts == {reason: 7}


# --- following --------------------------------------------------------------------------------------


def test_a_file_that_grows_gives_what_it_gives_when_it_is_whole(tmp_path: Path) -> None:
    whole = (CAPTURES / "client_router_pubsub.pcap").read_bytes()
    path = tmp_path / "growing.pcap"
    edges = [30, 31, 5_000, 5_001, 40_000, len(whole)]
    path.write_bytes(whole[:10])

    def wait() -> bool:
        if not edges:
            return False
        with path.open("ab") as file:
            file.write(whole[path.stat().st_size : edges.pop(0)])
        return True

    # Not even a header: a capture, as far as that can be told.
    conversation = Conversation(column_scan())
    found = [e for window in follow(path, wait) for e in conversation.feed(window)]
    expected = read("client_router_pubsub")
    assert [(e.time, e.kind, e.key) for e in found] == [(e.time, e.kind, e.key) for e in expected]


def test_files_of_a_rotation_continue_one_another(tmp_path: Path) -> None:
    packets = packets_of(CAPTURES / "client_router_pubsub.pcap")
    third = len(packets) // 3
    files = [packets[:third], packets[third : 2 * third], packets[2 * third :]]

    def write() -> bool:
        if not files:
            return False
        (tmp_path / f"part{3 - len(files)}.pcap").write_bytes(pcap(files.pop(0)))
        return True

    write()
    (tmp_path / "README").write_text("no capture")
    conversation = Conversation(column_scan())
    found = [e for window in follow(tmp_path, write) for e in conversation.feed(window)]
    expected = read("client_router_pubsub")
    assert [(e.time, e.kind, e.key) for e in found] == [(e.time, e.kind, e.key) for e in expected]
    assert {e.link.capture for e in found} == {str(tmp_path)}


def test_a_file_that_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    shutil.copy(CAPTURES / "udp.pcap", path)
    again = [(CAPTURES / "usrpwd.pcap").read_bytes()]

    def wait() -> bool:
        if not again:
            return False
        path.write_bytes(again.pop())
        return True

    conversation = Conversation(column_scan(), Want(frozenset({"put"})))
    found = [e for window in follow(path, wait) for e in conversation.feed(window)]
    assert len(found) == 80 + 1


def test_what_cannot_be_followed(tmp_path: Path) -> None:
    import gzip

    packed = tmp_path / "x.pcap.gz"
    packed.write_bytes(gzip.compress((CAPTURES / "udp.pcap").read_bytes()))
    with pytest.raises(CaptureError, match="gzip file is not followed"):
        list(follow(packed, lambda: False))
    with pytest.raises(CaptureError, match="No such file"):
        list(follow(tmp_path / "missing.pcap", lambda: False))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CaptureError, match="no captures"):
        capture_files(empty)


def test_payloads_are_found_in_every_message_that_has_one() -> None:
    entries = read("peer_query_reply", Want(frozenset({"query", "reply", "error"})))
    assert {type(body_of(e.message)).__name__ for e in entries} == {
        "Put", "Err", "QueryBody", "NoneType",
    }  # fmt: skip
