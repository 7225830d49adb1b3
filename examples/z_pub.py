"""Publish a value every second; with ``-n`` so many times, once somebody listens."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session, session.declare_publisher(args.key) as publisher:
        if args.number:
            publisher.declare_matching_listener().recv()
        for index in range(args.number) if args.number else itertools.count():
            print(f"Putting Data ('{args.key}': '[{index:4}] {args.payload}')...")
            publisher.put(f"[{index:4}] {args.payload}")
            time.sleep(args.interval)


async def main_async(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.declare_publisher(args.key) as publisher:
        if args.number:
            listener = await publisher.declare_matching_listener()
            await listener.recv()
        for index in range(args.number) if args.number else itertools.count():
            print(f"Putting Data ('{args.key}': '[{index:4}] {args.payload}')...")
            await publisher.put(f"[{index:4}] {args.payload}")
            await asyncio.sleep(args.interval)


if __name__ == "__main__":
    arguments = options(
        __doc__, key="demo/example/zenwire-pub", payload="Pub from zenwire!", number=0, interval=1.0
    )
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
