"""Programs written for the reference, in which only the import changes: alone and mixed.

Each is written once, against ``zenoh``, and runs with the reference and with zenwire on either side.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import zenoh as reference
import zenoh.ext

import zenwire
from tests.interop.exchange import PATIENT, node_settings
from tests.ports import free_port
from tests.unit.api.reference import router
from tests.unit.sync.places import TIMEOUT, until

pytestmark = pytest.mark.interop

PAIRS = [
    # What the reference does with itself says what to expect, and needs no looking every time.
    pytest.param(reference, reference, id="zenoh-zenoh", marks=pytest.mark.long),
    pytest.param(zenwire, zenwire, id="zenwire-zenwire"),
    pytest.param(zenwire, reference, id="zenwire-zenoh"),
    pytest.param(reference, zenwire, id="zenoh-zenwire"),
]
either = pytest.mark.parametrize("zenoh", [reference, zenwire], ids=["zenoh", "zenwire"])
pairs = pytest.mark.parametrize(("here", "there"), PAIRS)


@contextmanager
def peers(here: Any, there: Any) -> Iterator[tuple[Any, Any]]:
    """Two sessions that are connected."""
    where = f"tcp/127.0.0.1:{free_port()}"
    listens = node_settings("peer", listen=where, **PATIENT)
    connects = node_settings("peer", connect=where, **PATIENT)
    with (
        there.open(there.Config.from_json5(json.dumps(listens))) as other,
        here.open(here.Config.from_json5(json.dumps(connects))) as one,
    ):
        until(lambda: one.info.peers_zid() and other.info.peers_zid())
        yield one, other


@pairs
@pytest.mark.parametrize("size", [1024, 128 * 1024], ids=["1KiB", "128KiB"])
def test_a_thousand_queries(here: Any, there: Any, size: int) -> None:
    payload = bytes(range(256)) * (size // 256)
    with peers(here, there) as (one, other):

        def answer(query: Any) -> None:
            number = query.parameters.get("n")
            query.reply(query.key_expr, payload, attachment=number)

        with other.declare_queryable("demo/large", answer):
            querier = one.declare_querier("demo/large")
            until(lambda: querier.matching_status.matching)
            for number in range(1000):
                replies = list(one.get(f"demo/large?n={number}", timeout=TIMEOUT))
                assert [reply.ok.attachment.to_string() for reply in replies] == [str(number)]
                assert replies[0].ok.payload.to_bytes() == payload


@pairs
def test_many_queries_at_once(here: Any, there: Any) -> None:
    with peers(here, there) as (one, other):

        def answer(query: Any) -> None:
            with query:
                query.reply("demo/1", query.payload)
                query.reply("demo/2", query.payload)

        with (
            other.declare_queryable("demo/*", answer),
            one.declare_querier(
                "demo/*",
                target=here.QueryTarget.ALL,
                consolidation=here.ConsolidationMode.NONE,
                timeout=TIMEOUT,
            ) as querier,
        ):
            until(lambda: querier.matching_status.matching)
            asked = [querier.get(payload=str(number)) for number in range(200)]
            for number, replies in enumerate(asked):
                said = sorted(
                    (str(reply.ok.key_expr), reply.ok.payload.to_string()) for reply in replies
                )
                assert said == [("demo/1", str(number)), ("demo/2", str(number))]


@pairs
def test_priorities_with_nothing_lost(here: Any, there: Any) -> None:
    with peers(here, there) as (one, other):
        heard: dict[str, list[int]] = {}
        count = 0

        def take(sample: Any) -> None:
            nonlocal count
            assert str(sample.priority) == f"Priority.{sample.key_expr}".replace("a/", "")
            heard.setdefault(str(sample.key_expr), []).append(int(sample.payload.to_bytes()[:8]))
            count += 1

        subscriber = other.declare_subscriber("a/*", take)
        names = ["REAL_TIME", "INTERACTIVE_HIGH", "DATA_HIGH", "DATA", "BACKGROUND"]
        publishers = [
            one.declare_publisher(
                f"a/{name}",
                priority=getattr(here.Priority, name),
                congestion_control=here.CongestionControl.BLOCK,
                encoding=here.Encoding.APPLICATION_OCTET_STREAM,
            )
            for name in names
        ]
        until(lambda: all(each.matching_status.matching for each in publishers))

        def publish(publisher: Any) -> None:
            for number in range(1000):
                publisher.put(f"{number:08}".encode() + bytes(512))

        threads = [threading.Thread(target=publish, args=(each,)) for each in publishers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(lambda: count == 5000)
        assert heard == {f"a/{name}": list(range(1000)) for name in names}
        subscriber.undeclare()


@pairs
def test_a_cancelled_query(here: Any, there: Any) -> None:
    with peers(here, there) as (one, other):
        held: list[Any] = []
        with other.declare_queryable("a", held.append):
            querier = one.declare_querier("a", timeout=TIMEOUT)
            until(lambda: querier.matching_status.matching)
            token = here.CancellationToken()
            replies = querier.get(cancellation_token=token)
            until(lambda: held)
            held[0].reply("a", "the only one")
            assert not token.is_cancelled
            token.cancel()
            assert token.is_cancelled
            assert len(list(replies)) <= 1
            with pytest.raises(here.ZError):
                list(querier.get(cancellation_token=token))
            held.clear()


@pairs
def test_nested_values_there_and_back(here: Any, there: Any) -> None:
    """Written by one, read and written again by the other, and read by the first."""
    with peers(here, there) as (one, other):

        def kinds(zenoh: Any) -> list[tuple[Any, Any]]:
            small, large, half = zenoh.ext.UInt8, zenoh.ext.Int128, zenoh.ext.Float32
            return [
                (dict[str, list[int]], {"primes": [2, 3, 5], "none": []}),
                (list[tuple[small, dict[str, float]]], [(small(1), {"x": 0.5}), (small(2), {})]),  # type: ignore[valid-type]
                (
                    tuple[large, half, tuple[bool, bytes]],  # type: ignore[valid-type]
                    (large(-(2**100)), half(0.25), (True, b"z")),
                ),
                (dict[tuple[int, str], frozenset[str]], {(1, "a"): frozenset({"b", "c"})}),
                (list[list[list[small]]], [[[small(7)], []], []]),  # type: ignore[valid-type]
            ]

        def answer(query: Any) -> None:
            kind, value = kinds(there)[int(query.parameters.get("n"))]
            assert there.ext.z_deserialize(kind, query.payload) == value
            query.reply(query.key_expr, there.ext.z_serialize(value))

        with other.declare_queryable("values", answer), one.declare_querier("values") as querier:
            until(lambda: querier.matching_status.matching)
            for number, (kind, value) in enumerate(kinds(here)):
                payload = here.ext.z_serialize(value)
                [reply] = querier.get(parameters=f"n={number}", payload=payload)
                assert reply.ok.payload.to_bytes() == payload.to_bytes()
                assert here.ext.z_deserialize(kind, reply.ok.payload) == value


@pairs
def test_liveliness(here: Any, there: Any) -> None:
    with peers(here, there) as (one, other):
        subscriber = one.liveliness().declare_subscriber("group/**", history=True)
        token = other.liveliness().declare_token("group/member")
        sample = subscriber.recv()
        assert (str(sample.key_expr), str(sample.kind)) == ("group/member", "SampleKind.PUT")
        alive = [str(reply.ok.key_expr) for reply in one.liveliness().get("group/*")]
        assert alive == ["group/member"]
        token.undeclare()
        assert str(subscriber.recv().kind) == "SampleKind.DELETE"


@pairs
def test_matching(here: Any, there: Any) -> None:
    with peers(here, there) as (one, other):
        publisher = one.declare_publisher("a/b")
        listener = publisher.declare_matching_listener()
        heard: list[bool] = []
        querier = one.declare_querier("q")
        querier.declare_matching_listener(lambda status: heard.append(status.matching))
        subscriber = other.declare_subscriber("a/*")
        queryable = other.declare_queryable("q")
        assert listener.recv().matching
        until(lambda: heard == [True])
        subscriber.undeclare()
        queryable.undeclare()
        assert not listener.recv().matching
        until(lambda: heard == [True, False])
        assert not publisher.matching_status.matching


@pairs
def test_what_a_sample_says(here: Any, there: Any) -> None:
    with peers(here, there) as (one, other):
        subscriber = other.declare_subscriber("a/**", there.handlers.FifoChannel(16))
        publisher = one.declare_publisher("a/b", encoding="text/plain;utf-8", express=True)
        until(lambda: publisher.matching_status.matching)
        stamp = one.new_timestamp()
        source = here.SourceInfo(publisher.id, 7)
        publisher.put("payload", attachment=b"more", timestamp=stamp, source_info=source)
        publisher.delete()
        sample, gone = subscriber.recv(), subscriber.recv()
        assert (str(sample.key_expr), sample.payload.to_string()) == ("a/b", "payload")
        assert (str(sample.encoding), sample.attachment.to_bytes()) == ("text/plain;utf-8", b"more")
        assert (str(sample.timestamp), sample.express) == (str(stamp), True)
        assert str(sample.source_info.source_id.zid) == str(one.zid())
        assert sample.source_info.source_sn == 7
        assert str(gone.kind) == "SampleKind.DELETE"
        with pytest.raises(here.ZError):
            here.KeyExpr("a//b")


@either
def test_handlers(zenoh: Any) -> None:
    with peers(zenoh, zenoh) as (session, _):
        ended = threading.Event()
        heard: list[str] = []
        callback = zenoh.handlers.Callback(
            lambda sample: heard.append(sample.payload.to_string()), ended.set
        )
        called = session.declare_subscriber("a", callback)
        ring = session.declare_subscriber("a", zenoh.handlers.RingChannel(2))
        every = session.declare_subscriber("a")
        paired = session.declare_subscriber("a", (lambda _sample: None, "mine"))
        for text in "1234":
            session.put("a", text)
        assert [every.recv().payload.to_string() for _ in range(4)] == list("1234")
        until(lambda: heard == list("1234"))
        assert [ring.recv().payload.to_string() for _ in range(2)] == ["3", "4"]
        assert every.try_recv() is None
        assert (called.handler, paired.handler) == (None, "mine")
        called.undeclare()
        assert ended.wait(TIMEOUT)
        handler = every.handler
        every.undeclare()
        with pytest.raises(zenoh.ZError):
            handler.recv()
        assert list(handler) == []


@either
def test_what_is_gone_says_so(zenoh: Any) -> None:
    config = zenoh.Config.from_json5(json.dumps(node_settings("peer")))
    session = zenoh.open(config)
    publisher = session.declare_publisher("a")
    publisher.undeclare()
    with pytest.raises(zenoh.ZError):
        publisher.put("x")
    session.close()
    assert session.is_closed()
    with pytest.raises(zenoh.ZError):
        session.put("a", "x")
    with pytest.raises(TypeError):
        zenoh.open("not a configuration")


@pairs
def test_through_a_router(here: Any, there: Any) -> None:
    with router() as port:
        settings = json.dumps(node_settings("client", connect=f"tcp/127.0.0.1:{port}", **PATIENT))
        with (
            here.open(here.Config.from_json5(settings)) as one,
            there.open(there.Config.from_json5(settings)) as other,
            other.declare_subscriber("a/*") as subscriber,
            other.declare_queryable("q", lambda query: query.reply("q", "yes")),
        ):
            assert len(one.info.routers_zid()) == 1
            publisher, querier = one.declare_publisher("a/b"), one.declare_querier("q")
            until(lambda: publisher.matching_status.matching and querier.matching_status.matching)
            publisher.put("x")
            assert subscriber.recv().payload.to_string() == "x"
            assert [reply.ok.payload.to_string() for reply in querier.get()] == ["yes"]
