"""Four routers in a ring, ours and the reference's, whose links break and come back.

While routers do not agree on the network, the reference may send something twice, and two of its
routers may send it to and fro; one of ours takes it only by the way that leads to it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial

import pytest
import zenoh

from tests.interop.routers import Net
from tests.interop.severed import Way
from tests.unit.api.nodes import run, until
from zenwire import aio

pytestmark = pytest.mark.interop

RETRY = "#retry_period_init_ms=50;retry_period_max_ms=100"


class Ring(Net):
    """Each router is linked to the one before and to the one after it, by a way of its own."""

    def __init__(self, stack: AsyncExitStack, kinds: str) -> None:
        super().__init__(stack, kinds)
        self.ways = [Way(port) for port in self.ports]
        """Each leads to the router of its number, from the one after it."""

    async def build(self) -> None:
        size = len(self.kinds)
        for way in self.ways:
            await way.mend()
            self._stack.push_async_callback(way.close)
        for at in range(size):
            place = f"tcp/127.0.0.1:{self.ways[at - 1].port}{RETRY}"
            await self.router(connect={"endpoints": [place]})


@pytest.mark.parametrize("kinds", ["ZZZZ", "ZEZE", "EZEZ", "ZZEE", "EEEZ"])
def test_a_ring_is_cut_and_mended_under_traffic(kinds: str) -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            ring = Ring(stack, kinds)
            await ring.build()
            got: list[Counter[int]] = [Counter() for _ in range(8)]

            def taker(at: int) -> zenoh.handlers.Callback[zenoh.Sample]:
                def take(sample: zenoh.Sample) -> None:
                    got[at][int(sample.payload.to_string())] += 1

                return zenoh.handlers.Callback(take)

            for at in range(4):
                (await ring.theirs("client", at)).declare_subscriber("ring/*", taker(at))
                ours = await ring.ours("client", at)

                def take(sample: aio.Sample, at: int = 4 + at) -> None:
                    got[at][int(sample.payload.to_string())] += 1

                await stack.enter_async_context(ours.declare_subscriber("ring/*", take))
            publishers = [
                await stack.enter_async_context(
                    (await ring.ours("client", at)).declare_publisher(
                        "ring/x", congestion_control=aio.CongestionControl.BLOCK
                    )
                )
                for at in range(4)
            ]
            sent = 0

            async def put(times: int) -> list[int]:
                nonlocal sent
                numbers = list(range(sent, sent + times))
                for number in numbers:
                    await publishers[number % 4].put(str(number))
                    await asyncio.sleep(0.002)
                sent += times
                return numbers

            def all_have(numbers: list[int]) -> bool:
                return all(set(numbers) <= set(one) for one in got)

            async def everybody_gets() -> None:
                """At rest again: all gets everywhere."""
                async with asyncio.timeout(20):
                    while True:
                        numbers = await put(4)
                        try:
                            async with asyncio.timeout(0.3):
                                await until(partial(all_have, numbers))
                        except TimeoutError:
                            continue
                        at_rest.extend(numbers)
                        return

            at_rest: list[int] = []
            await everybody_gets()
            for at in range(4):
                await ring.ways[at].cut()
                await put(100)
                await everybody_gets()
                await ring.ways[at].mend()
                await put(150)
                await everybody_gets()
            # The last ones may still be on their way a second time.
            await everybody_gets()
            for one in got:
                assert all(one[number] == 1 for number in at_rest)
                if "EE" not in kinds + kinds[0]:
                    most = 2 if "E" in kinds else 1
                    assert max(one.values()) <= most, "nothing goes round"

    run(main())
