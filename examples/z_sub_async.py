"""Print what is published, by a callback, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    ended = asyncio.Event()
    counter = itertools.count(1)

    async def take(sample: aio.Sample) -> None:
        show(sample)
        if next(counter) == args.number:
            ended.set()

    async with aio.open(args.config) as session, session.declare_subscriber(args.key, take):
        await ended.wait()


def show(sample: aio.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="demo/example/**", number=0)))
