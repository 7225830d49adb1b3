"""Sessions of the synchronous API: what is declared, called, let go and closed."""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import zenwire
from tests.unit.sync.places import TIMEOUT, config, joined, said, until
from zenwire import handlers
from zenwire.sync.thread import current


@pytest.fixture
def session() -> Iterator[zenwire.Session]:
    with zenwire.open(config()) as session:
        yield session


@pytest.fixture
def both() -> Iterator[tuple[zenwire.Session, zenwire.Session]]:
    one, other = joined()
    with one, other:
        yield one, other


def texts(items: Any) -> list[str]:
    return [item.payload.to_string() for item in items]


def test_put_and_read(session: zenwire.Session) -> None:
    subscriber = session.declare_subscriber("a/**")
    with session.declare_publisher("a/b", encoding="text/plain") as publisher:
        publisher.put("1")
        publisher.put(bytearray(b"2"), attachment="more", encoding="application/json")
        publisher.delete()
        session.put("a/c", zenwire.ZBytes("4"))
        session.delete("a/c")
    samples = [subscriber.recv() for _ in range(5)]
    assert [str(one.kind) for one in samples] == [
        "SampleKind.PUT",
        "SampleKind.PUT",
        "SampleKind.DELETE",
        "SampleKind.PUT",
        "SampleKind.DELETE",
    ]
    assert texts(samples) == ["1", "2", "", "4", ""]
    assert [str(one.encoding) for one in samples[:2]] == ["text/plain", "application/json"]
    assert samples[1].attachment == zenwire.ZBytes("more")
    assert subscriber.try_recv() is None
    subscriber.undeclare()
    with pytest.raises(zenwire.ChannelClosed):
        subscriber.try_recv()
    with pytest.raises(zenwire.Undeclared):
        publisher.put("5")


def test_iteration_ends_with_the_subscriber(session: zenwire.Session) -> None:
    with session.declare_subscriber("a") as subscriber:
        for text in "abc":
            session.put("a", text)
        until(lambda: len(subscriber.handler) == 3)
    assert texts(subscriber) == ["a", "b", "c"]
    assert texts(subscriber.handler) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.put("a//b", "x"),
        lambda s: s.put(1, "x"),
        lambda s: s.put("a", object()),
        lambda s: s.put("a", "x", attachment=object()),
        lambda s: s.put("a", "x", priority=3),
        lambda s: s.put("a", "x", timestamp="now"),
        lambda s: s.put("a", "x", encoding="text/plain;" + "x" * 300),
        lambda s: s.put("a", None),
        lambda s: s.put("a", "x", encoding=3),
        lambda s: s.get("a", target=3),
        lambda s: s.get("a", cancellation_token=3),
        lambda s: s.declare_querier("a").get(encoding=3),
        lambda s: s.declare_querier("a", priority=3),
        lambda s: s.declare_subscriber("a", allowed_origin=3),
        lambda s: s.declare_queryable("a", allowed_origin=3),
        lambda s: s.delete("a", congestion_control="drop"),
        lambda s: s.declare_publisher("a", priority=3),
        lambda s: s.declare_publisher("a//b"),
        lambda s: s.declare_subscriber("a", 3),
        lambda s: s.declare_subscriber("a", (3, 4, 5)),
        lambda s: s.get("a", timeout=-1),
        lambda s: s.get("a?b", payload=object()),
        lambda s: s.declare_publisher("a").put(object()),
        lambda s: s.declare_publisher("a").put("x", source_info=3),
    ],
)
def test_arguments_are_checked_at_once(session: zenwire.Session, call: Any) -> None:
    with pytest.raises((zenwire.ZError, TypeError, ValueError)):
        call(session)


def test_bytes_are_taken_when_put(session: zenwire.Session) -> None:
    subscriber = session.declare_subscriber("a")
    data = bytearray(b"before")
    session.put("a", data)
    data[:] = b"after!"
    assert subscriber.recv().payload.to_bytes() == b"before"


def test_after_close() -> None:
    session = zenwire.open(config())
    subscriber, publisher = session.declare_subscriber("a"), session.declare_publisher("a")
    session.close()
    session.close()
    assert session.is_closed()
    assert str(session.zid()) == str(session.info.zid())
    for call in (
        lambda: session.put("a", "x"),
        lambda: publisher.put("x"),
        lambda: session.declare_subscriber("a"),
        lambda: session.get("a"),
        subscriber.recv,
    ):
        with pytest.raises(zenwire.ZError):
            call()
    subscriber.undeclare()


def test_callbacks_have_threads_and_may_use_the_session(session: zenwire.Session) -> None:
    heard: list[tuple[str, str]] = []

    def forward(sample: zenwire.Sample) -> None:
        assert threading.current_thread() is not threading.main_thread()
        # All that waits is allowed here.
        with session.declare_publisher("b") as publisher:
            publisher.put(sample.payload)
        replies = texts(reply.ok for reply in session.get("q"))
        heard.append((sample.payload.to_string(), *replies))  # type: ignore[arg-type]

    with session.declare_queryable("q", lambda query: query.reply("q", "answer")):
        session.declare_subscriber("a", forward)
        forwarded = session.declare_subscriber("b")
        for text in "123":
            session.put("a", text)
        assert [forwarded.recv().payload.to_string() for _ in range(3)] == ["1", "2", "3"]
        until(lambda: len(heard) == 3)
        assert heard == [("1", "answer"), ("2", "answer"), ("3", "answer")]


def test_a_callback_may_close_its_session() -> None:
    session = zenwire.open(config())
    closed = threading.Event()

    def close(_sample: zenwire.Sample) -> None:
        session.close()
        closed.set()

    session.declare_subscriber("a", close)
    session.put("a", "x")
    assert closed.wait(TIMEOUT)
    assert session.is_closed()


def test_a_callback_that_raises(session: zenwire.Session, caplog: pytest.LogCaptureFixture) -> None:
    told: list[tuple[Exception, Any]] = []
    before = zenwire.on_callback_error(lambda error, callback: told.append((error, callback)))

    def fails(sample: zenwire.Sample) -> None:
        raise ValueError(sample.payload.to_string())

    try:
        with caplog.at_level(logging.ERROR, logger="zenwire"):
            session.declare_subscriber("a", fails)
            for text in "12":
                session.put("a", text)
            until(lambda: len(told) == 2)
    finally:
        zenwire.on_callback_error(before)
    assert [str(error) for error, _ in told] == ["1", "2"]
    assert all(callback is fails for _, callback in told)
    assert "the callback" in caplog.text


def test_a_queryable_that_raises_answers_with_the_error(session: zenwire.Session) -> None:
    def fails(query: zenwire.Query) -> None:
        raise ValueError(f"no {query.key_expr}")

    before = zenwire.on_callback_error(lambda _error, _callback: None)
    try:
        with session.declare_queryable("a", fails):
            replies = list(session.get("a"))
    finally:
        zenwire.on_callback_error(before)
    assert [said(reply) for reply in replies if reply.err] == ["ValueError: no a"]


def test_queries_are_answered_in_all_ways(session: zenwire.Session) -> None:
    def answer(query: zenwire.Query) -> None:
        assert query.accepts_replies() is zenwire.ReplyKeyExpr.MATCHING_QUERY
        assert query.payload is not None
        with pytest.raises(zenwire.ZError, match="does not match"):
            query.reply("elsewhere", "x")
        with pytest.raises(zenwire.KeyExprError):
            query.reply("a//b", "x")
        with query:
            query.reply("a/1", query.payload, encoding="text/plain", attachment=b"!")
            query.reply_del("a/2")
            query.reply_err("no", encoding="text/plain")
        assert query.finished
        with pytest.raises(zenwire.ZError, match="ended"):
            query.reply("a/1", "late")

    with session.declare_queryable("a/*", answer, complete=True) as queryable:
        assert str(queryable.key_expr) == "a/*"
        mode = zenwire.ConsolidationMode.NONE
        replies = list(session.get("a/*?x=1", payload="hi", consolidation=mode))
    assert [reply.ok and str(reply.ok.key_expr) for reply in replies] == ["a/1", "a/2", None]
    assert replies[0].ok
    assert said(replies[0]) == "hi"
    assert replies[2].err
    assert said(replies[2]) == "no"


def test_queries_that_are_read(session: zenwire.Session) -> None:
    queryable = session.declare_queryable("a")
    assert queryable.try_recv() is None
    replies = session.get("a")
    with queryable.recv() as query:
        query.reply("a", "x")
    assert texts(reply.ok for reply in replies) == ["x"]
    # One that is let go ends by itself.
    replies = session.get("a")
    query = queryable.recv()
    del query
    assert list(replies) == []
    replies = session.get("a")
    with pytest.raises(RuntimeError, match="inside"), queryable.recv():
        raise RuntimeError("inside")
    assert [said(reply) for reply in replies if reply.err] == ["RuntimeError: inside"]


def test_get_with_a_callback_and_with_a_pair(session: zenwire.Session) -> None:
    with session.declare_queryable("a", lambda query: query.reply("a", "x")):
        heard: list[zenwire.Reply] = []
        ended = threading.Event()
        assert session.get("a", handlers.Callback(heard.append, ended.set)) is None
        assert ended.wait(TIMEOUT)
        assert texts(reply.ok for reply in heard) == ["x"]
        mine = object()
        assert session.get("a", (heard.append, mine)) is mine
        until(lambda: len(heard) == 2)
    # Nothing is held of what has ended.
    until(lambda: not session.access.strands)


def test_own_handlers_are_read_from(session: zenwire.Session) -> None:
    class Mine:
        def recv(self) -> str:
            return "recv"

        def try_recv(self) -> str:
            return "try"

        def __iter__(self) -> Iterator[str]:
            return iter(["it"])

    mine = Mine()
    subscriber = session.declare_subscriber("a", (lambda _sample: None, mine))
    assert subscriber.handler is mine
    assert [subscriber.recv(), subscriber.try_recv(), *subscriber] == ["recv", "try", "it"]
    called = session.declare_subscriber("a", lambda _sample: None)
    assert called.handler is None
    with pytest.raises(zenwire.ZError, match="callback"):
        called.recv()


def test_ring_and_fifo_keep_what_they_should(session: zenwire.Session) -> None:
    ring = session.declare_subscriber("a", handlers.RingChannel(2))
    fifo = session.declare_subscriber("a", handlers.FifoChannel(2))
    every = session.declare_subscriber("a", handlers.DefaultHandler())
    for text in "12345":
        session.put("a", text)
    assert [every.recv().payload.to_string() for _ in range(5)] == list("12345")
    assert [ring.recv().payload.to_string() for _ in range(2)] == ["4", "5"]
    assert [fifo.recv().payload.to_string() for _ in range(2)] == ["1", "2"]
    assert (ring.dropped, fifo.dropped, every.dropped) == (3, 3, 0)


def test_callbacks_of_the_network(session: zenwire.Session) -> None:
    """With ``indirect=False`` they run in the loop: what would wait there says so."""
    here: list[bool] = []
    errors: list[str] = []

    def call(_sample: zenwire.Sample) -> None:
        here.append(current().here)
        session.put("b", "from the loop")
        session.declare_subscriber("c").undeclare()
        try:
            waits.recv()
        except zenwire.ZError as e:
            errors.append(str(e))

    waits = session.declare_subscriber("d")
    other = session.declare_subscriber("b")
    session.declare_subscriber("a", handlers.Callback(call, indirect=False))
    session.put("a", "x")
    assert other.recv().payload.to_string() == "from the loop"
    until(lambda: errors)
    assert here == [True]
    assert "indirect=False" in errors[0]


def test_the_network_may_close_its_session() -> None:
    session = zenwire.open(config())
    errors: list[str] = []

    def call(_sample: zenwire.Sample) -> None:
        try:
            zenwire.open(config())
        except zenwire.ZError as e:
            errors.append(str(e))
        session.close()

    session.declare_subscriber("a", handlers.Callback(call, indirect=False))
    session.put("a", "x")
    until(session.is_closed)
    session.close()
    assert "another thread" in errors[0]


def test_coroutine_functions_run_in_the_loop(session: zenwire.Session) -> None:
    heard: list[str] = []
    errors: list[str] = []

    async def call(sample: zenwire.Sample) -> None:
        heard.append(sample.payload.to_string())

    class Callable:
        async def __call__(self, sample: zenwire.Sample) -> None:
            await call(sample)

    async def answer(query: Any) -> None:
        await query.reply("a", "answer")

    session.declare_subscriber("a", call)
    session.declare_subscriber("a", Callable())
    session.declare_queryable("a", answer)
    session.put("a", "x")
    until(lambda: heard == ["x", "x"])
    assert texts(reply.ok for reply in session.get("a")) == ["answer"]
    # What only returns one cannot be told from others before it is called.
    before = zenwire.on_callback_error(lambda error, _callback: errors.append(str(error)))
    try:
        session.declare_subscriber("b", lambda sample: [call(sample)][0])
        session.put("b", "x")
        until(lambda: errors)
    finally:
        zenwire.on_callback_error(before)
    assert "coroutine" in errors[0]


def test_a_subscriber_that_is_let_go_is_undeclared(
    both: tuple[zenwire.Session, zenwire.Session],
) -> None:
    one, other = both
    publisher = other.declare_publisher("a")
    subscriber = one.declare_subscriber("a")
    until(lambda: publisher.matching_status.matching)
    del subscriber
    gc.collect()
    until(lambda: not publisher.matching_status.matching)
    # But not one with a callback, or one that is iterated over.
    heard: list[zenwire.Sample] = []
    one.declare_subscriber("a", heard.append)
    items = iter(one.declare_subscriber("a"))
    gc.collect()
    until(lambda: publisher.matching_status.matching)
    publisher.put("x", encoding="text/plain")
    assert next(items).payload.to_string() == "x"
    until(lambda: len(heard) == 1)


def test_a_session_that_is_let_go_is_closed(
    both: tuple[zenwire.Session, zenwire.Session],
) -> None:
    one, _ = both
    port = int(one.info.links()[0].src.rpartition(":")[2])
    third = zenwire.open(config(connect=port))
    third.declare_subscriber("a", lambda _sample: None)
    third.declare_queryable("a", lambda query: query.drop())
    until(lambda: len(one.info.transports()) == 2)
    del third
    gc.collect()
    until(lambda: len(one.info.transports()) == 1)


def test_matching(both: tuple[zenwire.Session, zenwire.Session]) -> None:
    one, other = both
    with one.declare_publisher("a") as publisher, one.declare_querier("q") as querier:
        listener = publisher.declare_matching_listener()
        heard: list[bool] = []
        querier.declare_matching_listener(lambda status: heard.append(status.matching))
        with other.declare_subscriber("a"), other.declare_queryable("q"):
            assert listener.recv().matching
            until(lambda: heard == [True])
        assert not listener.recv().matching
        until(lambda: heard == [True, False])
        assert querier.accept_replies is zenwire.ReplyKeyExpr.MATCHING_QUERY


def test_liveliness(both: tuple[zenwire.Session, zenwire.Session]) -> None:
    one, other = both
    subscriber = one.liveliness().declare_subscriber("t/*", history=True)
    with other.liveliness().declare_token("t/1"):
        came = subscriber.recv()
        assert (str(came.key_expr), came.kind) == ("t/1", zenwire.SampleKind.PUT)
        alive = [str(reply.ok.key_expr) for reply in one.liveliness().get("t/*") if reply.ok]
        assert alive == ["t/1"]
    assert subscriber.recv().kind is zenwire.SampleKind.DELETE
    token = other.liveliness().declare_token("t/2")
    assert subscriber.recv().kind is zenwire.SampleKind.PUT
    del token
    gc.collect()
    assert subscriber.recv().kind is zenwire.SampleKind.DELETE


def test_events(both: tuple[zenwire.Session, zenwire.Session]) -> None:
    one, other = both
    transports = one.info.declare_transport_events_listener(history=True)
    links = one.info.declare_link_events_listener(history=True)
    assert transports.recv().transport.zid == other.zid()
    assert links.recv().link.zid == other.zid()
    assert one.info.peers_zid() == [other.zid()]
    assert one.info.routers_zid() == []
    other.close()
    assert transports.recv().kind is zenwire.SampleKind.DELETE
    assert links.recv().kind is zenwire.SampleKind.DELETE


def test_cancellation(session: zenwire.Session) -> None:
    held: list[zenwire.Query] = []
    session.declare_queryable("a", held.append)
    token = zenwire.CancellationToken()
    replies = session.get("a", cancellation_token=token)
    until(lambda: held)
    assert replies.try_recv() is None
    token.cancel()
    assert list(replies) == []
    assert token.is_cancelled
    with pytest.raises(zenwire.ZError):
        session.get("a", cancellation_token=token)
    for query in held:
        query.drop()


def test_a_reader_that_never_reads_is_in_nobody_s_way(session: zenwire.Session) -> None:
    lazy = session.declare_subscriber("a", handlers.FifoChannel(16))
    stuck = threading.Event()
    session.declare_subscriber("a", lambda _sample: stuck.wait(TIMEOUT))
    busy = session.declare_subscriber("a")
    for number in range(5000):
        session.put("a", str(number))
    assert [int(busy.recv().payload.to_string()) for _ in range(5000)] == list(range(5000))
    assert lazy.dropped == 5000 - 16
    stuck.set()


def test_the_log_says_how_many_wait(
    session: zenwire.Session, caplog: pytest.LogCaptureFixture
) -> None:
    """Bytes may be bounded before the number is."""
    lazy = session.declare_subscriber("a")
    for _ in range(70):
        session.put("a", bytes(1024 * 1024))
    until(lambda: lazy.dropped)
    [said] = [record for record in caplog.records if "does not keep up" in record.message]
    assert "63 samples wait" in said.getMessage()


def test_ten_thousand_subscribers(session: zenwire.Session) -> None:
    heard: list[zenwire.Sample] = []
    threads = threading.active_count()
    kept = [session.declare_subscriber(f"many/{number}") for number in range(5000)]
    for number in range(5000, 10_000):
        session.declare_subscriber(f"many/{number}", heard.append)
    assert threading.active_count() <= threads + 1
    session.put("many/*", "x")
    assert all(subscriber.recv().payload.to_string() == "x" for subscriber in kept)
    until(lambda: len(heard) == 5000)


def test_many_threads(both: tuple[zenwire.Session, zenwire.Session]) -> None:
    one, other = both
    subscriber = one.declare_subscriber("a/*")
    publisher = other.declare_publisher("a/0")
    until(lambda: publisher.matching_status.matching)

    def publish(name: int) -> None:
        for number in range(500):
            other.put(f"a/{name}", str(number), congestion_control=zenwire.CongestionControl.BLOCK)

    threads = [threading.Thread(target=publish, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    heard: dict[str, list[int]] = {}
    for _ in range(2000):
        sample = subscriber.recv()
        heard.setdefault(str(sample.key_expr), []).append(int(sample.payload.to_string()))
    for thread in threads:
        thread.join()
    # Those of one thread are in their order.
    assert heard == {f"a/{name}": list(range(500)) for name in range(4)}


def test_many_threads_that_ask(both: tuple[zenwire.Session, zenwire.Session]) -> None:
    one, other = both
    one.declare_queryable("q", lambda query: query.reply("q", query.payload or b""))
    querier = other.declare_querier("q", timeout=TIMEOUT)
    until(lambda: querier.matching_status.matching)
    heard: dict[str, list[str]] = {}

    def ask(name: str) -> None:
        for number in range(50):
            replies = list(querier.get(payload=f"{name}{number}"))
            heard.setdefault(name, []).extend(texts(reply.ok for reply in replies))

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert heard == {name: [f"{name}{number}" for number in range(50)] for name in "abcd"}


def test_a_token_waits_for_callbacks(session: zenwire.Session) -> None:
    """As in the reference: when a query is cancelled, its callback is over."""
    began, told = threading.Event(), threading.Event()

    def slow(_reply: zenwire.Reply) -> None:
        began.set()
        time.sleep(0.1)

    session.declare_queryable("a", lambda query: query.reply("a", "x"))
    token = zenwire.CancellationToken()
    session.get("a", handlers.Callback(slow, told.set), cancellation_token=token)
    assert began.wait(TIMEOUT)
    token.cancel()
    assert told.is_set()


def test_scout_stops() -> None:
    settings = {"scouting": {"multicast": {"address": "224.0.0.224:7999", "interface": "lo"}}}
    with zenwire.scout(what="peer", config=settings) as scout:
        assert scout.try_recv() is None
    assert list(scout) == []
    heard: list[zenwire.Hello] = []
    called = zenwire.scout(heard.append, config=settings)
    called.stop()
    called.stop()
    assert called.handler is None


def test_timestamps_and_keys(session: zenwire.Session) -> None:
    before, after = session.new_timestamp(), session.new_timestamp()
    assert after > before
    key = session.declare_keyexpr("a/b")
    assert str(key) == "a/b"
    session.undeclare(key)
    subscriber = session.declare_subscriber(key)
    session.put(key, "x", timestamp=before)
    assert subscriber.recv().timestamp == before
    session.undeclare(subscriber)
    with pytest.raises(zenwire.ChannelClosed):
        subscriber.recv()


def test_closing_lets_callbacks_finish() -> None:
    heard: list[str] = []

    def slow(sample: zenwire.Sample) -> None:
        time.sleep(0.01)
        heard.append(sample.payload.to_string())

    dropped = threading.Event()
    with zenwire.open(config()) as session:
        session.declare_subscriber("a", handlers.Callback(slow, dropped.set))
        probe = session.declare_subscriber("a")
        for text in "12345":
            session.put("a", text)
        for _ in range(5):
            probe.recv()
    assert heard == list("12345")
    assert dropped.is_set()
