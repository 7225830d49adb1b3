"""The end of a node, for those who have not taken everything yet."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from tests.unit.plane.raw import Raw
from zenwire import aio
from zenwire.node import Node
from zenwire.wire import encode
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.declare import DeclareSubscriber
from zenwire.wire.network import Declare
from zenwire.wire.transport import Frame, KeepAlive
from zenwire.wire.values import WireExpr

VALUE = bytes(1000)
COUNT = 3000


async def told(port: int, count: int = COUNT) -> tuple[aio.Session, Raw]:
    """Who has put something, and somebody who has not read it."""
    session = await aio.open(config(listen=port))
    raw = await Raw.connect(port)
    raw._reading.cancel()
    declare = Declare(body=DeclareSubscriber(id=1, key=WireExpr(0, "much")))
    raw.writer.write(frame_stream(encode_batch([Frame(reliable=True, sn=raw.first_sn), declare])))
    async with session.declare_publisher(
        "much", congestion_control=aio.CongestionControl.BLOCK
    ) as publisher:
        await until(lambda: publisher.matching_status.matching)
        for _ in range(count):
            await publisher.put(VALUE)
    return session, raw


def test_who_takes_a_little_at_a_time_gets_all() -> None:
    async def main() -> None:
        session, raw = await told(free_port())
        closing = asyncio.create_task(session.core.node.close(grace=0.5))
        taken = 0
        while data := await raw.reader.read(50_000):
            taken += len(data)
            if taken < 200_000:
                # The system throws away what is on its way if this finds the socket closed.
                raw.writer.write(frame_stream(encode(KeepAlive())))
            await asyncio.sleep(0.02)
        await closing
        assert taken > COUNT * len(VALUE)
        await session.close()
        raw.writer.close()

    run(main())


@pytest.mark.parametrize(
    ("count", "said"), [(COUNT, "taken the last"), (1, "confirmed that it heard all")]
)
def test_who_takes_nothing_is_not_waited_for_and_that_is_said(
    count: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        session, raw = await told(free_port(), count)
        await session.core.node.close(grace=0.2)
        await session.close()
        raw.writer.close()

    with caplog.at_level(logging.WARNING, "zenwire.node"):
        run(main())
    assert f"has not {said}" in caplog.text


async def accepts(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


Close = Callable[[aio.Session], Awaitable[None]]
CLOSES: dict[str, Close] = {
    "session": lambda session: session.close(),
    "node": lambda session: session.core.node.close(0.3),
}


@pytest.mark.parametrize("how", CLOSES)
def test_a_cancelled_close_goes_on_and_a_second_one_waits_for_it(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Node.close, "__defaults__", (0.3,))

    async def main() -> None:
        port = free_port()
        session, raw = await told(port)
        for rounds in (0, 1, 2, 5):
            closing = asyncio.ensure_future(CLOSES[how](session))
            for _ in range(rounds):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.wait([closing])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await CLOSES[how](session)
        await asyncio.gather(*(CLOSES[how](session) for _ in range(3)))
        assert session.core.node.closed
        assert not await accepts(port)
        await session.close()
        assert session.is_closed()
        raw.writer.close()

    run(main())


def test_a_close_that_is_cancelled_and_forgotten_goes_on() -> None:
    async def main() -> None:
        port = free_port()
        session = await aio.open(config(listen=port))
        closing = asyncio.create_task(session.close())
        await asyncio.sleep(0)
        closing.cancel()
        while await accepts(port):  # noqa: ASYNC110 # nobody tells
            await asyncio.sleep(0.005)
        assert session.is_closed()

    run(main())


def test_a_loop_that_ends_meanwhile_ends_the_links(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()

    async def hold(raw: Raw) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with suppress(ConnectionError):
                while await raw.reader.read(1 << 20):
                    pass
            raw.writer.close()

    holding: list[asyncio.Task[None]] = []

    async def main() -> None:
        session, raw = await told(port)
        holding.append(asyncio.create_task(hold(raw)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await session.close()

    run(main())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    gc.collect()
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_failing_close_is_an_error_to_every_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        session = await aio.open(config())
        node = session.core.node

        async def fail(_grace: float) -> None:
            raise OSError("broken")

        with monkeypatch.context() as patch:
            patch.setattr(node.adjacency, "close", fail)
            closes = [session.close(), session.close(), node.close()]
            errors = await asyncio.gather(*closes, return_exceptions=True)
        assert [str(error) for error in errors] == ["broken"] * 3

    run(main())
