"""Send to z_pong, wait for the answer, and print how long both took."""

from __future__ import annotations

import argparse
import asyncio
import time

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with (
        aio.open(args.config) as session,
        session.declare_subscriber("test/pong") as answers,
        session.declare_publisher(
            "test/ping", congestion_control=aio.CongestionControl.BLOCK, express=True
        ) as publisher,
    ):
        listener = await publisher.declare_matching_listener()
        await listener.recv()
        payload = bytes(args.size)
        for index in range(args.number):
            start = time.perf_counter_ns()
            await publisher.put(payload)
            await answers.recv()
            rtt = (time.perf_counter_ns() - start) // 1000
            print(f"{args.size} bytes: seq={index} rtt={rtt}us lat={rtt // 2}us")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, size=8, number=100)))
