"""Send back what z_ping sends, until Ctrl-C; with ``-n`` so many times."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    ended = asyncio.Event()
    counter = itertools.count(1)
    async with (
        aio.open(args.config) as session,
        session.declare_publisher(
            "test/pong", congestion_control=aio.CongestionControl.BLOCK, express=True
        ) as publisher,
    ):

        async def answer(sample: aio.Sample) -> None:
            await publisher.put(sample.payload)
            if next(counter) == args.number:
                ended.set()

        await session.declare_subscriber("test/ping", answer)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, number=0)))
