"""The end of a node, for those who have not taken everything yet."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.ports import free_port
from tests.unit.api.nodes import config, run, until
from tests.unit.plane.raw import Raw
from zenwire import aio
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
