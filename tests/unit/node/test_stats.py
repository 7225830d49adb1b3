from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.node.nodes import Lan, Taker, put, run, until
from zenwire.node.stats import total
from zenwire.transport import Cause, Stats
from zenwire.wire.values import WhatAmI


def test_a_snapshot_says_all_and_does_not_change() -> None:
    async def scenario() -> None:
        lan = Lan()
        a = await lan.open(listen="memory/a")
        b = await lan.open("client", connect=["memory/a"])
        taker = Taker(b, "x/**")
        await asyncio.sleep(1)
        before = a.stats()
        for _ in range(10):
            put(a, "x/y", b"payload")
        await until(lambda: len(taker.payloads) == 10)
        after = a.stats()
        (was,), (now,) = before.neighbours, after.neighbours
        assert (now.zid, now.whatami) == (b.zid, WhatAmI.CLIENT)
        assert now.transport.tx_messages == was.transport.tx_messages + 10
        assert now.transport.tx_bytes > was.transport.tx_bytes
        (link,) = now.links
        assert (str(link.src), link.writable, link.dropped) == ("memory/a", True, 0)
        assert link.transport == now.transport
        assert (now.waiting, now.dropped) == (0, {})
        (listener,) = after.listeners
        assert (str(listener.endpoint), listener.counters.accepted) == ("memory/a", 1)
        # What is over is added up.
        await b.close()
        await until(lambda: not a.neighbours)
        last = a.stats()
        assert last.neighbours == ()
        assert last.ended.tx_messages >= now.transport.tx_messages
        assert last.endings == {"closed_by_peer": 1}
        assert before.neighbours == (was,)
        await lan.close()

    run(scenario())


def test_sums_are_new_objects() -> None:
    one, two = Stats(rx_bytes=1), Stats(rx_bytes=2, tx_frames=3)
    one.dropped[Cause.LATE] += 2
    two.dropped[Cause.LATE] += 1
    summed = total([one, two])
    assert (summed.rx_bytes, summed.tx_frames, summed.dropped) == (3, 3, {Cause.LATE: 3})
    summed.dropped[Cause.LATE] += 1
    assert one.dropped == {Cause.LATE: 2}


def test_what_is_dropped_is_counted_for_all_of_the_node() -> None:
    async def scenario() -> None:
        lan = Lan()
        small: dict[str, Any] = {"transport": {"link": {"rx": {"max_message_size": 100}}}}
        a = await lan.open(listen="memory/a", **small)
        b = await lan.open("client", connect=["memory/a"])
        Taker(b, "x/**")
        await asyncio.sleep(1)
        put(a, "x/y", bytes(200))
        assert a.stats().dropped == {Cause.TOO_LARGE: 1}
        await b.close()
        await until(lambda: not a.neighbours)
        assert a.stats().dropped == {Cause.TOO_LARGE: 1}
        await lan.close()

    run(scenario())
