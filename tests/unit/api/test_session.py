from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until, within
from zenwire import aio
from zenwire.node.neighbour import Waiting


@pytest.fixture
def errors() -> Iterator[list[Exception]]:
    told: list[Exception] = []
    before = aio.on_callback_error(lambda error, _callback: told.append(error))
    yield told
    aio.on_callback_error(before)


def test_put_and_delete_reach_a_subscriber_of_the_same_session() -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("a/**") as subscriber,
        ):
            await session.put("a/b", "one", encoding="text/plain", attachment=b"x")
            await session.delete("a/b")
            await session.put("b", "not this")
            put, delete = await subscriber.recv(), await subscriber.recv()
            assert (str(put.key_expr), str(put.payload)) == ("a/b", "one")
            assert put.kind is aio.SampleKind.PUT
            assert put.encoding == "text/plain"
            assert put.attachment == b"x"
            assert delete.kind is aio.SampleKind.DELETE
            assert subscriber.try_recv() is None
            assert (str(subscriber.key_expr), subscriber.id.zid) == ("a/**", session.zid())

    run(main())


def test_declarations_are_awaited_or_entered() -> None:
    async def main() -> None:
        session = await aio.open(config())
        subscriber = await session.declare_subscriber("k")
        async with session.declare_publisher("k", encoding="text/plain") as publisher:
            assert publisher.matching_status.matching
            await publisher.put("x")
            assert (await subscriber.recv()).encoding == "text/plain"
            await publisher.delete()
            assert (await subscriber.recv()).kind is aio.SampleKind.DELETE
        with pytest.raises(aio.Undeclared, match="publisher on 'k' is undeclared"):
            await publisher.put("x")
        await subscriber.undeclare()
        await subscriber.undeclare()
        await session.put("k", "nobody")
        assert [sample async for sample in subscriber] == []
        with pytest.raises(aio.ChannelClosed):
            await subscriber.recv()
        await session.close()
        await session.close()
        assert session.is_closed()

    run(main())


def test_a_closed_session_says_so() -> None:
    async def main() -> None:
        session = await aio.open(config())
        publisher = await session.declare_publisher("k")
        subscriber = await session.declare_subscriber("k")
        queryable = await session.declare_queryable("k")
        await publisher.put("rest")
        await session.close()
        calls: list[Callable[[], Any]] = [
            lambda: session.put("k", ""),
            lambda: session.delete("k"),
            lambda: session.declare_subscriber("k"),
            lambda: session.declare_publisher("k"),
            lambda: session.declare_queryable("k"),
            lambda: session.declare_querier("k"),
            lambda: session.get("k"),
            lambda: session.liveliness().declare_token("k"),
            lambda: session.liveliness().get("k"),
            lambda: publisher.put(""),
            session.new_timestamp,
        ]
        for call in calls:
            with pytest.raises(aio.SessionClosed, match="open another one"):
                await call()
        assert [sample.payload async for sample in subscriber] == [b"rest"]
        assert [query async for query in queryable] == []
        await subscriber.undeclare()

    run(main())


def test_bad_arguments_are_refused_where_they_are_given() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            with pytest.raises(aio.KeyExprError):
                await session.put("a//b", "")
            with pytest.raises(TypeError, match="payload is bytes or str, not int"):
                await session.put("a", 5)  # type: ignore[arg-type]
            with pytest.raises(TypeError):
                await session.declare_subscriber("a", 5)  # type: ignore[call-overload]
            with pytest.raises(ValueError, match="above zero"):
                await session.get("a", timeout=0)
            # Nothing of these is left behind.
            async with session.declare_publisher("a") as publisher:
                assert not publisher.matching_status.matching

    run(main())


def test_a_reader_that_does_not_read_stalls_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("k", aio.FifoChannel(4)) as sleeping,
            session.declare_subscriber("k", aio.RingChannel(4)) as latest,
            session.declare_subscriber("k", aio.FifoChannel(1000)) as reading,
        ):
            for n in range(500):
                await session.put("k", str(n))
            got = [str((await reading.recv()).payload) for _ in range(500)]
            assert got == [str(n) for n in range(500)]
            assert (sleeping.dropped, latest.dropped, reading.dropped) == (496, 496, 0)
            assert [str((await sleeping.recv()).payload) for _ in range(4)] == got[:4]
            assert [str((await latest.recv()).payload) for _ in range(4)] == got[-4:]

    run(main())
    # Said once; and not of the one that keeps the latest, which is what it is for.
    assert len([record for record in caplog.records if "does not keep up" in record.message]) == 1


def test_ten_thousand_subscribers() -> None:
    """Each is served, with a callback or without."""

    async def main() -> None:
        heard: list[aio.Sample] = []
        async with aio.open(config()) as session:
            kept = [await session.declare_subscriber(f"many/{n}") for n in range(5000)]
            for n in range(5000, 10_000):
                await session.declare_subscriber(f"many/{n}", heard.append)
            await session.put("many/*", "x")
            for subscriber in kept:
                assert (await subscriber.recv()).payload == "x"
            await until(lambda: len(heard) == 5000)
            await session.put("many/7777", "y")
            await until(lambda: len(heard) == 5001)
            assert heard[-1].payload == "y"

    run(main())


def test_a_loop_of_puts_lets_readers_have_their_turn() -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("k") as subscriber,
        ):
            got: list[aio.Sample] = []

            async def read() -> None:
                got.extend([sample async for sample in subscriber])

            reader = asyncio.create_task(read())
            for _ in range(2000):
                await session.put("k", "x")
            assert subscriber.dropped == 0
            await subscriber.undeclare()
            await reader
            assert len(got) == 2000

    run(main())


def test_callbacks_plain_and_async_may_use_the_session() -> None:
    async def main() -> None:
        got: list[str] = []
        done = asyncio.Event()
        async with aio.open(config()) as session:

            async def relay(sample: aio.Sample) -> None:
                await session.put("out", sample.payload)

            def plain(sample: aio.Sample) -> None:
                got.append(str(sample.payload))
                done.set()

            await session.declare_subscriber("in", relay)
            subscriber = await session.declare_subscriber("out", plain)
            with pytest.raises(aio.ZError, match="has a callback"):
                await subscriber.recv()
            await session.put("in", "x")
            await done.wait()
        assert got == ["x"]

    run(main())


def test_exceptions_of_callbacks_are_told(
    errors: list[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        got: list[str] = []

        async def fail(sample: aio.Sample) -> None:
            got.append(str(sample.payload))
            raise RuntimeError(got[-1])

        async with aio.open(config()) as session:
            await session.declare_subscriber("k", fail)
            await session.put("k", "one")
            await session.put("k", "two")
            await until(lambda: len(errors) == 2)

    run(main())
    assert [str(error) for error in errors] == ["one", "two"]
    assert sum("fail raised RuntimeError" in record.message for record in caplog.records) == 2


def test_a_closed_session_is_freed_without_the_garbage_collector() -> None:
    async def use(session: aio.Session) -> None:
        publisher = await session.declare_publisher("freed")
        async with session.declare_subscriber("freed") as samples:
            for _ in range(3):
                await publisher.put("x")
                await session.put("freed", b"x")
            await samples.recv()
        async with session.declare_queryable("freed") as queries:
            replies = session.get("freed")
            with await queries.recv() as query:
                await query.reply("freed", "y")
            assert [str(reply.ok.payload) async for reply in replies if reply.ok] == ["y"]
        await session.liveliness().declare_token("freed/token")

    async def main() -> None:
        port = free_port()
        async with aio.open(config("router", listen=port)):
            session = await aio.open(config("client", connect=port))
            await use(session)
            node = weakref.ref(session.core.node)
            await session.close()
            del session
            await asyncio.sleep(0)
            assert node() is None

    gc.collect()
    gc.disable()
    try:
        run(main())
    finally:
        gc.enable()


def test_closing_lets_callbacks_finish_and_calls_drop() -> None:
    async def main() -> None:
        got: list[str] = []
        gone: list[bool] = []

        async def slow(sample: aio.Sample) -> None:
            await asyncio.sleep(0.01)
            got.append(str(sample.payload))

        session = await aio.open(config())
        await session.declare_subscriber("k", aio.Callback(slow, lambda: gone.append(True)))
        for n in range(5):
            await session.put("k", str(n))
        await session.close()
        assert got == ["0", "1", "2", "3", "4"]
        assert gone == [True]

    run(main())


def test_a_session_can_be_closed_by_its_own_callback() -> None:
    async def main() -> None:
        session = await aio.open(config())

        async def close(_sample: aio.Sample) -> None:
            await session.close()

        await session.declare_subscriber("k", close)
        await session.put("k", "")
        await until(session.is_closed)

    run(main())


def test_locality() -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("k") as anyone,
            session.declare_subscriber("k", allowed_origin=aio.Locality.REMOTE) as remote,
            session.declare_subscriber("k", allowed_origin=aio.Locality.SESSION_LOCAL) as local,
        ):
            await session.put("k", "1", allowed_destination=aio.Locality.REMOTE)
            await session.put("k", "2", allowed_destination=aio.Locality.SESSION_LOCAL)
            await session.put("k", "3")
            for subscriber, expected in ((anyone, ["2", "3"]), (local, ["2", "3"]), (remote, [])):
                await subscriber.undeclare()
                assert [str(sample.payload) async for sample in subscriber] == expected

    run(main())


def test_the_matching_listener_tells_changes_and_what_is() -> None:
    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_publisher("a/1") as publisher,
            publisher.declare_matching_listener() as first,
        ):
            assert not publisher.matching_status.matching
            subscriber = await session.declare_subscriber("a/*")
            assert (await first.recv()).matching
            async with publisher.declare_matching_listener() as second:
                assert (await second.recv()).matching
                await subscriber.undeclare()
                assert not (await first.recv()).matching
                assert not (await second.recv()).matching
            await publisher.undeclare()
            with pytest.raises(aio.ChannelClosed):
                await first.recv()

    run(main())


def test_timestamps_rise_and_are_put_on_if_configured() -> None:
    async def main(timestamping: bool) -> aio.Timestamp | None:
        settings = config(timestamping={"enabled": timestamping})
        async with (
            aio.open(settings) as session,
            session.declare_subscriber("k") as subscriber,
        ):
            first = session.new_timestamp()
            await session.put("k", "")
            stamp = (await subscriber.recv()).timestamp
            second = session.new_timestamp()
            assert first < second
            assert stamp is None or first < stamp < second
            await session.put("k", "", timestamp=first)
            assert (await subscriber.recv()).timestamp == first
            assert first.get_id() == aio.TimestampId(bytes(session.zid()))
            return stamp

    assert run(main(timestamping=False)) is None
    assert run(main(timestamping=True)) is not None


def test_times_along_the_way() -> None:
    async def main() -> None:
        points = aio.TimestampInstrumentationBuilder().set_send(True).set_receive(True).build()
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("k") as subscriber,
        ):
            await session.put("k", "", timestamp_instrumentation=points)
            stack = (await subscriber.recv()).timestamp_stack
            assert stack is not None
            expected = [aio.InterceptionPoint.SEND, aio.InterceptionPoint.RECEIVE]
            assert [record.point for record in stack.records] == expected
            times = [record.timestamp() for record in stack.records]
            assert all(isinstance(time, aio.Timestamp) for time in times)

        def mark(context: aio.TimestampContext) -> bytes:
            return f"{context.whatami}".encode()

        async with (
            aio.open(config(), timestamp_callback=mark) as session,
            session.declare_subscriber("k") as subscriber,
        ):
            await session.put("k", "", timestamp_instrumentation=points)
            stack = (await subscriber.recv()).timestamp_stack
            assert stack is not None
            assert [record.timestamp() for record in stack.records] == [b"peer", b"peer"]

    run(main())


def test_another_loop_is_told_that_a_session_is_not_its_own() -> None:
    async def elsewhere(session: aio.Session, publisher: aio.Publisher) -> None:
        for call in (
            session.put("k", ""),
            session.delete("k"),
            publisher.put(""),
            publisher.undeclare(),
            session.declare_subscriber("k"),
            session.close(),
        ):
            with pytest.raises(aio.WrongLoop, match="another event loop; call it there"):
                await call
        with pytest.raises(aio.WrongLoop, match=r"^get: "):
            await session.get("k")

    async def main() -> None:
        async with (
            aio.open(config()) as session,
            session.declare_publisher("k") as publisher,
            session.declare_subscriber("k") as subscriber,
        ):
            await asyncio.to_thread(asyncio.run, elsewhere(session, publisher))
            await publisher.put("still here")
            assert (await subscriber.recv()).payload == b"still here"

    run(main())


_FROM_ELSEWHERE: dict[str, Callable[[aio.Session, aio.Publisher], Any]] = {
    "session.put": lambda session, _: session.put("known", b"1"),
    "session.put with options": lambda session, _: session.put(
        "other", b"1", priority=aio.Priority.DATA_LOW
    ),
    "publisher.put": lambda _, publisher: publisher.put(b"1"),
    "publisher.put text": lambda _, publisher: publisher.put("1"),
    "publisher.put_all": lambda _, publisher: _later(partial(publisher.put_all, [b"1"] * 3)),
}


async def _later(call: Callable[[], Any]) -> None:
    call()


@pytest.mark.parametrize("neighbour", [False, True])
@pytest.mark.parametrize("where", ["thread", "this thread"])
@pytest.mark.parametrize("call", _FROM_ELSEWHERE)
def test_a_put_that_was_made_before_is_refused_in_another_loop(
    call: str, where: str, neighbour: bool
) -> None:
    make, port, seen = _FROM_ELSEWHERE[call], free_port(), list[bytes]()

    async def warm(session: aio.Session, publisher: aio.Publisher) -> None:
        for _ in range(5):
            await session.put("known", b"0")
            await session.put("other", b"0", priority=aio.Priority.DATA_LOW)
            await publisher.put(b"0")

    async def main() -> tuple[aio.Session, aio.Session | None, aio.Publisher]:
        session, other = await aio.open(config(listen=port)), None
        publisher = await session.declare_publisher("known")
        if neighbour:
            other = await aio.open(config(connect=port))
            await other.declare_subscriber("known", lambda s: seen.append(s.payload.to_bytes()))
            await until(lambda: publisher.matching_status.matching)
        await warm(session, publisher)
        return session, other, publisher

    async def elsewhere(session: aio.Session, publisher: aio.Publisher) -> None:
        with pytest.raises(aio.WrongLoop, match=r"put: .*another event loop"):
            await make(session, publisher)

    with asyncio.Runner() as runner:
        session, other, publisher = runner.run(within(main()))
        if where == "thread":
            runner.run(asyncio.to_thread(asyncio.run, elsewhere(session, publisher)))
        else:
            run(elsewhere(session, publisher))
        runner.run(within(session.close()))
        if other is not None:
            runner.run(within(other.close()))
            assert set(seen) == {b"0"}


def test_what_ends_a_query_is_refused_in_another_loop() -> None:
    async def elsewhere(query: aio.Query, replies: aio.Replies) -> None:
        with pytest.raises(aio.WrongLoop, match=r"query\.drop"):
            query.drop()
        with pytest.raises(aio.WrongLoop, match=r"query\.cancel"):
            replies.cancel()

    async def main() -> None:
        async with aio.open(config()) as session, session.declare_queryable("k") as queryable:
            replies = await session.get("k")
            query = await queryable.recv()
            await asyncio.to_thread(asyncio.run, elsewhere(query, replies))
            await query.reply("k", "still open")
            query.drop()
            got = [reply.ok async for reply in replies]
            assert [sample.payload for sample in got if sample is not None] == [b"still open"]

    run(main())


def test_a_token_may_be_cancelled_where_no_loop_runs() -> None:
    async def ask() -> tuple[aio.Session, aio.Replies]:
        session = await aio.open(config())
        await session.declare_queryable("k")
        return session, await session.get("k", cancellation_token=token)

    async def end(session: aio.Session, replies: aio.Replies) -> None:
        assert [reply async for reply in replies] == []
        await session.close()

    token = aio.CancellationToken()
    with asyncio.Runner() as runner:
        session, replies = runner.run(within(ask()))
        token.cancel()
        runner.run(within(end(session, replies)))


def test_a_loop_that_hides_its_thread_is_known_by_running() -> None:
    class Other(asyncio.SelectorEventLoop):
        """As a loop that is not asyncio's own, which has no such attribute."""

        def __getattribute__(self, name: str) -> Any:
            if hidden and name == "_thread_id":
                raise AttributeError(name)
            return super().__getattribute__(name)

    hidden: list[bool] = []

    async def elsewhere(session: aio.Session) -> None:
        with pytest.raises(aio.WrongLoop):
            await session.put("k", b"1")

    async def main() -> None:
        hidden.append(True)
        session = await aio.open(config())
        hidden.clear()
        for _ in range(4):
            await session.put("k", b"0")
        await asyncio.to_thread(asyncio.run, elsewhere(session))
        await session.close()

    with asyncio.Runner(loop_factory=Other) as runner:
        runner.run(within(main()))


def test_a_forked_child_is_told_and_opens_its_own() -> None:
    async def child(session: aio.Session, publisher: aio.Publisher) -> int:
        for call in (session.put("k", ""), publisher.put(""), session.close()):
            try:
                await call
            except aio.ForkedSession:
                continue
            return 1
        async with (
            aio.open(config()) as own,
            own.declare_subscriber("k") as subscriber,
        ):
            await own.put("k", "alive")
            return 0 if (await subscriber.recv()).payload == b"alive" else 2

    async def main() -> None:
        async with (
            aio.open(config(listen=free_port())) as session,
            session.declare_publisher("k") as publisher,
        ):
            with warnings.catch_warnings():
                # Python warns of forks beside threads; this child runs none of theirs.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
            if not pid:
                code = 3
                try:
                    loop = asyncio.new_event_loop()
                    code = loop.run_until_complete(child(session, publisher))
                finally:
                    os._exit(code)
            _, status = await asyncio.to_thread(os.waitpid, pid, 0)
            assert os.waitstatus_to_exitcode(status) == 0
            # The parent goes on.
            async with session.declare_subscriber("k") as subscriber:
                await publisher.put("still")
                assert (await subscriber.recv()).payload == b"still"

    run(main())


def test_two_nodes() -> None:
    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config(listen=port)) as one,
            one.info.declare_transport_events_listener() as transports,
            one.info.declare_link_events_listener() as links,
            aio.open(config(connect=port)) as two,
        ):
            came = await transports.recv()
            assert (came.kind, came.transport.zid) == (aio.SampleKind.PUT, two.zid())
            assert (await links.recv()).link.zid == two.zid()
            assert two.info.peers_zid() == [one.zid()]
            assert two.info.routers_zid() == []
            assert [link.dst for link in two.info.links()] == [f"tcp/127.0.0.1:{port}"]
            async with (
                one.declare_subscriber("a/*") as subscriber,
                two.declare_publisher("a/b") as publisher,
            ):
                await until(lambda: publisher.matching_status.matching)
                await publisher.put("over")
                assert (await subscriber.recv()).payload == b"over"
            async with one.info.declare_transport_events_listener(history=True) as again:
                assert (await again.recv()).transport == came.transport
            await two.close()
            gone = await transports.recv()
            assert (gone.kind, gone.transport.zid) == (aio.SampleKind.DELETE, came.transport.zid)
            assert (await links.recv()).kind is aio.SampleKind.DELETE

    run(main())


def test_namespaces_hide_their_prefix() -> None:
    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config(listen=port, namespace="robot/1")) as inside,
            aio.open(config(connect=port)) as outside,
            inside.declare_subscriber("**") as subscriber,
            inside.declare_queryable("state") as queryable,
            outside.declare_publisher("robot/1/a") as publisher,
            outside.declare_querier("robot/*/state") as querier,
        ):
            await until(lambda: publisher.matching_status.matching)
            await until(lambda: querier.matching_status.matching)
            everything = await outside.declare_subscriber("**")
            await outside.put("robot/2/a", "other")
            await publisher.put("mine")
            sample = await subscriber.recv()
            assert (str(sample.key_expr), str(sample.payload)) == ("a", "mine")

            # What the outside publishes reaches itself first.
            keys = [str((await everything.recv()).key_expr) for _ in range(2)]
            assert keys == ["robot/2/a", "robot/1/a"]
            async with inside.declare_publisher("b") as back:
                await until(lambda: back.matching_status.matching)
                await back.put("")
            assert str((await everything.recv()).key_expr) == "robot/1/b"

            async def answer() -> None:
                with await queryable.recv() as query:
                    assert str(query.key_expr) == "state"
                    await query.reply("state", "fine")

            task = asyncio.create_task(answer())
            replies = [reply async for reply in querier.get()]
            await task
            assert [str(reply.ok.key_expr) for reply in replies if reply.ok] == ["robot/1/state"]

            async with (
                outside.liveliness().declare_subscriber("**") as tokens,
                inside.liveliness().declare_token("alive"),
            ):
                assert str((await tokens.recv()).key_expr) == "robot/1/alive"
                found = [reply async for reply in outside.liveliness().get("**")]
                assert [str(reply.ok.key_expr) for reply in found if reply.ok] == ["robot/1/alive"]
                found = [reply async for reply in inside.liveliness().get("**")]
                assert [str(reply.ok.key_expr) for reply in found if reply.ok] == ["alive"]

    run(main())


def test_liveliness() -> None:
    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config(listen=port)) as one,
            aio.open(config(connect=port)) as two,
            one.liveliness().declare_subscriber("t/**") as future,
        ):
            token = await two.liveliness().declare_token("t/1")
            sample = await future.recv()
            assert (str(sample.key_expr), sample.kind) == ("t/1", aio.SampleKind.PUT)
            async with one.liveliness().declare_subscriber("t/*", history=True) as history:
                assert str((await history.recv()).key_expr) == "t/1"
            await token.undeclare()
            assert (await future.recv()).kind is aio.SampleKind.DELETE
            assert [reply async for reply in one.liveliness().get("t/*")] == []

    run(main())


def test_the_config_is_a_copy() -> None:
    async def main() -> None:
        settings = config()
        async with aio.open(settings) as session:
            copy = session.config
            copy.insert_json5("mode", '"client"')
            assert session.config == settings

    run(main())


def test_an_impossible_connection_is_an_error_that_helps() -> None:
    async def main() -> None:
        with pytest.raises(aio.LinkError, match=r"127\.0\.0\.1"):
            await aio.open(config("client", connect=free_port()))

    run(main())


def test_what_is_never_awaited_is_warned_of() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            with pytest.warns(RuntimeWarning, match="never awaited"):
                del session.declare_subscriber("k")._coroutine

    run(main())


def test_session_undeclare_and_keyexprs() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            key = await session.declare_keyexpr("a/b")
            subscriber = await session.declare_subscriber(key)
            await session.undeclare(subscriber)
            with pytest.raises(aio.ChannelClosed):
                await subscriber.recv()
            await session.undeclare(key)
            assert (await session.declare_keyexpr(key)) == "a/b"

    run(main())


def test_threads_and_logs_are_not_needed(caplog: pytest.LogCaptureFixture) -> None:
    """A session alone makes no threads, and says nothing."""

    async def main() -> None:
        before = threading.active_count()
        async with (
            aio.open(config()) as session,
            session.declare_subscriber("k", lambda _sample: None),
        ):
            await session.put("k", "")
            assert threading.active_count() == before

    with caplog.at_level(logging.WARNING):
        run(main())
    assert caplog.records == []


def test_a_cancelled_declaration_is_taken_back() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            core = session._core
            stuck = Waiting.__new__(Waiting)
            stuck.done = asyncio.get_running_loop().create_future()
            settle = core.settle

            def full() -> list[Waiting]:
                settle()
                return [stuck]

            core.settle = full  # type: ignore[method-assign]
            task = asyncio.ensure_future(session.declare_subscriber("k"))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            core.settle = settle  # type: ignore[method-assign]
            assert core.held == {}
            assert core.node.receivers == {}
            async with session.declare_publisher("k") as publisher:
                assert not publisher.matching_status.matching

    run(main())


def test_declarations_can_be_tasks() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(session.declare_subscriber(f"k/{n}")) for n in range(3)]
            assert [str(task.result().key_expr) for task in tasks] == ["k/0", "k/1", "k/2"]
            given_up = session.declare_subscriber("k/3")
            given_up.close()
            with pytest.raises(RuntimeError, match="already awaited"):
                await given_up

    run(main())


def test_a_timestamp_callback_that_raises_is_told(errors: list[Exception]) -> None:
    def fail(_context: aio.TimestampContext) -> bytes:
        raise RuntimeError("no time")

    async def main() -> None:
        points = aio.TimestampInstrumentationBuilder().set_receive(True).build()
        async with (
            aio.open(config(), timestamp_callback=fail) as session,
            session.declare_subscriber("k") as subscriber,
        ):
            await session.put("k", "", timestamp_instrumentation=points)
            stack = (await subscriber.recv()).timestamp_stack
            assert stack is not None
            assert [record.timestamp() for record in stack.records] == [b""]

    run(main())
    assert [str(error) for error in errors] == ["no time"]


def test_scouting_where_there_is_no_network_says_so() -> None:
    async def main() -> None:
        nowhere = config(scouting={"multicast": {"enabled": True, "interface": "no-such-one"}})
        scout = await aio.scout(config=nowhere)
        with pytest.raises(aio.LinkError):
            [hello async for hello in scout]

    run(main())


def test_a_callback_that_hangs_does_not_hold_the_end_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zenwire.api.core.GRACE", 0.02)

    async def main() -> None:
        cancelled: list[bool] = []

        async def hang(_sample: aio.Sample) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        session = await aio.open(config())
        await session.declare_subscriber("k", hang)
        await session.put("k", "")
        await asyncio.sleep(0)
        await session.close()
        await until(lambda: cancelled)

    run(main())


def test_a_cancelled_close_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zenwire.api.core.GRACE", 0.05)

    async def main() -> None:
        started = asyncio.Event()

        async def hang(_sample: aio.Sample) -> None:
            started.set()
            await asyncio.Event().wait()

        session = await aio.open(config(listen=free_port()))
        await session.declare_subscriber("k", hang)
        await session.put("k", "")
        await started.wait()
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await session.close()
        assert session.is_closed()
        assert session._core.node.closed

    run(main())


def test_a_configuration_may_be_a_dict() -> None:
    async def scenario() -> None:
        quiet = {"scouting": {"multicast": {"enabled": False}}, "listen": {"endpoints": []}}
        async with aio.open(quiet) as session:
            assert str(session.info.zid())
        with pytest.raises(aio.ConfigError, match="scouting"):
            await aio.open({"scuoting": {}})
        with pytest.raises(TypeError, match="from_json5"):
            await aio.open("mode: client")  # type: ignore[arg-type] # that is what it is about

    asyncio.run(scenario())
