"""Publish a value every second; with ``-n`` so many times, once somebody listens."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.declare_publisher(args.key) as publisher:
        if args.number:
            listener = await publisher.declare_matching_listener()
            await listener.recv()
        for index in range(args.number) if args.number else itertools.count():
            text = f"[{index:4}] {args.payload}"
            print(f"Putting Data ('{args.key}': '{text}')...")
            await publisher.put(text)
            await asyncio.sleep(args.interval)


if __name__ == "__main__":
    asyncio.run(
        main(
            options(
                __doc__,
                aio.Config,
                key="demo/example/zenwire-pub",
                payload="Pub from zenwire!",
                number=0,
                interval=1.0,
            )
        )
    )
