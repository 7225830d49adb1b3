from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from zenwire import aio
from zenwire.api.replies import REPLY_BYTES


@pytest.fixture
def errors() -> Iterator[list[Exception]]:
    told: list[Exception] = []
    before = aio.on_callback_error(lambda error, _callback: told.append(error))
    yield told
    aio.on_callback_error(before)


@asynccontextmanager
async def pair(key: str = "q/**") -> AsyncIterator[tuple[aio.Session, aio.Session, aio.Querier]]:
    """Who answers, who asks, and a querier that must see the first queryable of the other."""
    port = free_port()
    async with (
        aio.open(config(listen=port)) as answering,
        aio.open(config(connect=port)) as asking,
        asking.declare_querier(key) as querier,
    ):
        yield answering, asking, querier


async def ready(querier: aio.Querier) -> None:
    await until(lambda: querier.matching_status.matching)


async def text_of(replies: aio.Replies) -> list[str]:
    """What was said; errors with a ``!``."""
    said = []
    async for reply in replies:
        if reply.ok is None:
            assert reply.err is not None
            said.append(f"!{reply.err.payload}")
        else:
            said.append(f"{reply.ok.key_expr}={reply.ok.payload}")
    return said


def test_the_configured_timeout_holds_for_queries_without_one() -> None:
    async def main() -> None:
        port = free_port()
        async with (
            aio.open(config(listen=port)) as answering,
            aio.open(config(connect=port, queries_default_timeout=50)) as asking,
            asking.declare_querier("q/**") as querier,
            # It takes queries, and answers none.
            answering.declare_queryable("q/**"),
        ):
            await ready(querier)
            assert await text_of(asking.get("q/1")) == ["!Timeout"]

    run(main())


def test_a_query_and_all_it_carries() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/*")
            await ready(querier)
            source = aio.SourceInfo(aio.EntityGlobalId(asking.zid(), 7), 8)
            replies = asking.get(
                "q/1?a=b;c",
                payload="body",
                encoding="text/plain",
                attachment="more",
                source_info=source,
            )
            with await queryable.recv() as query:
                assert (str(query.key_expr), str(query.selector)) == ("q/1", "q/1?a=b;c")
                assert query.parameters.get("a") == "b"
                assert (str(query.payload), str(query.attachment)) == ("body", "more")
                assert query.encoding == "text/plain"
                assert query.source_info == source
                assert query.accepts_replies() is aio.ReplyKeyExpr.MATCHING_QUERY
                stamp = answering.new_timestamp()
                await query.reply("q/1", "x", encoding="a/b;c", attachment=b"y", timestamp=stamp)
                with pytest.raises(aio.ZError, match="does not answer"):
                    await query.reply("other", "x")
            with pytest.raises(aio.ZError, match="ended already"):
                await query.reply("q/1", "x")
            [reply] = [reply async for reply in replies]
            assert reply.ok is not None
            assert (str(reply.ok.payload), str(reply.ok.attachment)) == ("x", "y")
            assert reply.ok.encoding == "a/b;c"
            assert reply.ok.timestamp == stamp
            assert reply.replier_id == queryable.id
            assert replies.finished

            replies = querier.get(parameters="p")
            with await queryable.recv() as query:
                assert (query.payload, query.encoding, query.attachment) == (None, None, None)
                await query.reply_del("q/2")
                await query.reply_err("no", encoding="text/plain")
            kinds = [
                reply.ok.kind.name if reply.ok else str(reply.err.encoding if reply.err else "")
                async for reply in replies
            ]
            assert sorted(kinds) == ["DELETE", "text/plain"]

    run(main())


def test_nobody_answers() -> None:
    async def main() -> None:
        async with pair() as (_answering, asking, _querier):
            assert await text_of(asking.get("nobody")) == []

    run(main())


def test_a_query_times_out_with_an_error() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1")
            await ready(querier)
            replies = asking.get("q/1", timeout=0.05)
            query = await queryable.recv()
            await query.reply("q/1", "early")
            assert await text_of(replies) == ["q/1=early", "!Timeout"]
            query.drop()

    run(main())


def test_any_key_may_answer_who_says_so() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1")
            await ready(querier)
            replies = asking.get("q/1", accept_replies=aio.ReplyKeyExpr.ANY)
            with await queryable.recv() as query:
                assert query.accepts_replies() is aio.ReplyKeyExpr.ANY
                await query.reply("else/where", "x")
            assert await text_of(replies) == ["else/where=x"]

    run(main())


@pytest.mark.parametrize("kind", ["plain", "async", "direct"])
def test_a_handler_that_raises_answers_with_an_error(kind: str, errors: list[Exception]) -> None:
    def plain(_query: aio.Query) -> None:
        raise RuntimeError("broken")

    async def coroutine(query: aio.Query) -> None:
        await query.reply("q/1", "first")
        raise RuntimeError("broken")

    handlers: dict[str, aio.IntoHandler[aio.Query]] = {
        "plain": plain,
        "async": coroutine,
        "direct": aio.Callback(plain, indirect=False),
    }

    async def main() -> list[str]:
        async with pair() as (answering, asking, querier):
            await answering.declare_queryable("q/1", handlers[kind])
            await ready(querier)
            return await text_of(asking.get("q/1", consolidation=aio.ConsolidationMode.NONE))

    first = ["q/1=first"] if kind == "async" else []
    assert run(main()) == [*first, "!RuntimeError: broken"]
    assert [str(error) for error in errors] == ["broken"]


def test_a_with_block_that_raises_answers_with_an_error() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1")
            await ready(querier)
            replies = asking.get("q/1")
            with pytest.raises(KeyError):
                async with await queryable.recv():
                    raise KeyError("what")
            assert await text_of(replies) == ["!KeyError: 'what'"]

    run(main())


def test_a_query_that_is_let_go_is_finished(caplog: pytest.LogCaptureFixture) -> None:
    async def forget(_query: aio.Query) -> None:
        await asyncio.sleep(0)

    async def answer(query: aio.Query) -> None:
        await query.reply(query.key_expr, "x")

    async def main() -> None:
        async with pair() as (answering, asking, querier):
            await answering.declare_queryable("q/1", forget)
            await answering.declare_queryable("q/2", answer)
            queryable = await answering.declare_queryable("q/3")
            await ready(querier)
            assert await text_of(asking.get("q/1", timeout=20)) == []
            assert await text_of(asking.get("q/2", timeout=20)) == ["q/2=x"]
            replies = asking.get("q/3", timeout=20)
            query: aio.Query | None = await queryable.recv()
            assert query is not None
            query = None
            gc.collect()
            assert await text_of(replies) == []

    with caplog.at_level(logging.WARNING, "zenwire"):
        run(main())
    told = [record.message for record in caplog.records]
    assert len(told) == 2
    assert "'q/1' was let go without an answer" in told[0]
    assert "'q/3' was let go" in told[1]


def test_a_busy_queryable_says_so() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1", aio.FifoChannel(1))
            await ready(querier)
            first, second = asking.get("q/1"), asking.get("q/1")
            [said] = await text_of(second)
            assert said.startswith("!the queryable is busy")
            assert queryable.dropped == 1
            await queryable.undeclare()
            assert await text_of(first) == ["!the queryable is undeclared"]

    run(main())


def test_no_reply_is_lost() -> None:
    """More than any queue by count would hold, while the asker does not read."""

    async def main() -> None:
        count = 5000
        async with pair() as (answering, asking, querier):

            async def many(query: aio.Query) -> None:
                for n in range(count):
                    await query.reply(f"q/{n}", str(n))

            await answering.declare_queryable("q/*", many)
            await ready(querier)
            replies = asking.get("q/*", consolidation=aio.ConsolidationMode.NONE)
            await until(lambda: replies.finished)
            assert await text_of(replies) == [f"q/{n}={n}" for n in range(count)]
            assert replies.dropped == 0

    run(main())


def test_replies_beyond_the_bytes_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):

            async def large(query: aio.Query) -> None:
                for n in range(4):
                    await query.reply(f"q/{n}", bytes(1000))

            await answering.declare_queryable("q/*", large)
            await ready(querier)
            small = aio.ReplyChannel(max_bytes=3500)
            replies = asking.get("q/*", small, consolidation=aio.ConsolidationMode.NONE)
            await until(lambda: replies.finished)
            assert len([reply async for reply in replies]) == 2
            assert replies.dropped == 2

    run(main())
    assert sum("a reply was dropped" in record.message for record in caplog.records) == 2
    assert aio.ReplyChannel().max_bytes == REPLY_BYTES


def test_a_callback_gets_replies_and_the_end() -> None:
    async def main() -> None:
        got: list[str] = []
        done = asyncio.Event()
        async with pair() as (answering, asking, querier):

            async def answer(query: aio.Query) -> None:
                await query.reply("q/1", "x")

            await answering.declare_queryable("q/1", answer)
            await ready(querier)

            def take(reply: aio.Reply) -> None:
                assert reply.ok is not None
                got.append(str(reply.ok.payload))

            await asking.get("q/1", aio.Callback(take, done.set))
            gc.collect()
            await done.wait()
        assert got == ["x"]

    run(main())


def test_consolidation_and_budget() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):

            async def thrice(query: aio.Query) -> None:
                for n in range(3):
                    stamp = answering.new_timestamp()
                    await query.reply("q/1", str(n), timestamp=stamp)

            await answering.declare_queryable("q/1", thrice)
            await ready(querier)
            mode = aio.ConsolidationMode
            assert await text_of(asking.get("q/1")) == ["q/1=2"]
            every = ["q/1=0", "q/1=1", "q/1=2"]
            assert await text_of(asking.get("q/1", consolidation=mode.NONE)) == every
            assert await text_of(asking.get("q/1", consolidation=mode.MONOTONIC)) == every
            assert await text_of(asking.get("q/1", consolidation=mode.LATEST)) == ["q/1=2"]
            two = asking.get("q/1", consolidation=mode.NONE, budget=2)
            assert await text_of(two) == every[:2]

    run(main())


def test_cancelling() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1")
            await ready(querier)
            receivers = asking._core.node.receivers
            before = set(receivers)

            # By a token, before and while it is asked.
            token = aio.CancellationToken()
            replies = asking.get("q/1", cancellation_token=token)
            await asyncio.to_thread(token.cancel)
            assert await text_of(replies) == []
            assert token.is_cancelled
            with pytest.raises(aio.ZError, match="make another one"):
                await asking.get("q/1", cancellation_token=token)

            # By its own method, and by the end of a with block.
            replies = asking.get("q/1")
            replies.cancel()
            assert await text_of(replies) == []
            async with asking.get("q/1") as replies:
                assert not replies.finished
            assert replies.finished

            # By cancelling whoever reads.
            task = asyncio.create_task(text_of(asking.get("q/1")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

            # By letting go.
            with await queryable.recv() as query:
                await query.reply("q/1", "x")
            replies = asking.get("q/1", consolidation=aio.ConsolidationMode.NONE)
            asked = replies._asked
            del replies
            gc.collect()
            await until(lambda: not asked.open)

            # One recv that is cancelled is no reason to end.
            replies = asking.get("q/1")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(replies.recv(), 0.01)
            assert not replies.finished
            replies.cancel()
            assert set(receivers) == before

    run(main())


def test_several_queryables_in_one_session_answer_each_for_itself() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):

            async def answer(query: aio.Query) -> None:
                await query.reply("q/1", "one")

            async def slow(query: aio.Query) -> None:
                await asyncio.sleep(0.01)
                await query.reply("q/2", "two")

            await answering.declare_queryable("q/1", answer)
            await answering.declare_queryable("q/*", slow)
            await ready(querier)
            said = await text_of(asking.get("q/*", target=aio.QueryTarget.ALL))
            assert sorted(said) == ["q/1=one", "q/2=two"]

    run(main())


def test_a_session_asks_itself() -> None:
    async def main() -> None:
        async with aio.open(config()) as session:

            async def answer(query: aio.Query) -> None:
                await query.reply("q", "self")

            await session.declare_queryable("q", answer)
            assert await text_of(session.get("q")) == ["q=self"]
            remote = session.get("q", allowed_destination=aio.Locality.REMOTE)
            assert await text_of(remote) == []

    run(main())


def test_closing_ends_queries_on_both_sides() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1")
            await ready(querier)
            replies, other = asking.get("q/1", timeout=20), asking.get("q/1", timeout=20)
            query = await queryable.recv()
            await answering.close()
            assert await text_of(replies) == []
            assert await text_of(other) in ([], ["!the queryable is undeclared"])
            with pytest.raises(aio.SessionClosed):
                await query.reply("q/1", "late")

    run(main())


def test_letting_go_in_another_thread() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            queryable = await answering.declare_queryable("q/1")
            await ready(querier)
            replies = asking.get("q/1", timeout=20)
            held = [await queryable.recv()]
            await held[0].reply("q/1", "x")
            await asyncio.to_thread(held.clear)
            assert await text_of(replies) == ["q/1=x"]

            asked = [asking.get("q/1", timeout=20)]
            query = asked[0]._asked
            await asyncio.to_thread(asked.clear)
            await until(lambda: not query.open)

    run(main())


def test_a_query_that_is_kept_is_answered_later() -> None:
    async def main() -> None:
        kept: list[aio.Query] = []
        async with pair() as (answering, asking, querier):
            await answering.declare_queryable("q/1", kept.append)
            await ready(querier)
            replies = asking.get("q/1", timeout=20)
            await until(lambda: kept)
            assert not replies.finished
            await kept[0].reply("q/1", "later")
            kept.clear()
            assert await text_of(replies) == ["q/1=later"]

    run(main())


def test_a_reader_that_waits_goes_on_when_all_is_there_and_can_ask_again() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):

            async def answer(query: aio.Query) -> None:
                with query:
                    await query.reply(query.key_expr, query.parameters.get("n") or "")
                    if query.key_expr.is_wild:
                        await query.reply("q/other", "too")

            async with answering.declare_queryable("q/**", answer):
                await ready(querier)
                for n in range(300):
                    found = await text_of(asking.get(f"q/*?n={n}"))
                    assert found == [f"q/*={n}", "q/other=too"]
                    assert await text_of(querier.get(parameters={"n": str(n)})) == [
                        f"q/**={n}",
                        "q/other=too",
                    ]
                together = await asyncio.gather(
                    *(text_of(asking.get(f"q/{n}?n={n}")) for n in range(50))
                )
                assert together == [[f"q/{n}={n}"] for n in range(50)]

    run(main())


def test_one_answer_goes_out_with_the_end_of_its_query() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):

            async def answer(query: aio.Query) -> None:
                with query:
                    for n in range(int(str(query.parameters.get("n")))):
                        await query.reply("q/1", str(n))

            async with answering.declare_queryable("q/1", answer):
                await ready(querier)
                (neighbour,) = answering._core.node.neighbours.values()
                (carrier,) = neighbour.carriers
                for n in (1, 1, 2, 300):
                    before = carrier.machine.stats.tx_batches
                    replies = asking.get(f"q/1?n={n}", consolidation=aio.ConsolidationMode.NONE)
                    assert await text_of(replies) == [f"q/1={m}" for m in range(n)]
                    if n == 1:
                        assert carrier.machine.stats.tx_batches == before + 1

    run(main())


def test_an_answer_does_not_wait_for_a_callback_that_waits() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            heard = asyncio.Event()

            async def answer(query: aio.Query) -> None:
                with query:
                    await query.reply("q/1", "first")
                    await heard.wait()
                    await query.reply("q/1", "second")

            async with answering.declare_queryable("q/1", answer):
                await ready(querier)
                replies = asking.get("q/1", consolidation=aio.ConsolidationMode.NONE)
                first = await replies.recv()
                assert first.ok is not None
                assert str(first.ok.payload) == "first"
                heard.set()
                assert await text_of(replies) == ["q/1=second"]

    run(main())


def test_large_answers_wait_for_an_asker_that_does_not_read() -> None:
    async def main() -> None:
        async with pair() as (answering, asking, querier):
            large = bytes(1_000_000)

            async def answer(query: aio.Query) -> None:
                with query:
                    await query.reply("q/1", large)

            async with answering.declare_queryable("q/1", answer):
                await ready(querier)
                (neighbour,) = answering._core.node.neighbours.values()
                ((carrier,),) = (one.carriers for one in asking._core.node.neighbours.values())
                carrier.link.pause()
                asked = [asking.get("q/1") for _ in range(50)]
                await until(lambda: neighbour.size)
                await asyncio.sleep(0.1)
                # The others wait for the callback, which waits for room.
                assert neighbour.size < 5
                carrier.link.resume()
                for replies in asked:
                    assert [len(reply.result.payload) async for reply in replies] == [len(large)]

    run(main())
