"""Print how many samples come per second; ``-s`` rounds of ``-n`` samples."""

from __future__ import annotations

import argparse
import asyncio
import time

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    room: aio.FifoChannel[aio.Sample] = aio.FifoChannel(1_000_000)
    async with (
        aio.open(args.config) as session,
        session.declare_subscriber("test/thr", room) as subscriber,
    ):
        for _ in range(args.samples):
            await subscriber.recv()
            start = time.perf_counter()
            for _ in range(args.number):
                await subscriber.recv()
            print(f"{args.number / (time.perf_counter() - start):.0f} msgs/sec")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, samples=10, number=50_000)))
