"""Publish as fast as can be, for z_sub_thr; with ``-n`` so many times."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with (
        aio.open(args.config) as session,
        session.declare_publisher(
            "test/thr", congestion_control=aio.CongestionControl.BLOCK
        ) as publisher,
    ):
        listener = await publisher.declare_matching_listener()
        await listener.recv()
        payload = bytes(args.size)
        for _ in range(args.number) if args.number else itertools.count():
            await publisher.put(payload)


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, size=8, number=0)))
