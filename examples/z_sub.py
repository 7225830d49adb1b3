"""Print what is published, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session, session.declare_subscriber(args.key) as subscriber:
        for count, sample in enumerate(subscriber, 1):
            show(sample)
            if count == args.number:
                break


async def main_async(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.declare_subscriber(args.key) as samples:
        count = 0
        async for sample in samples:
            show(sample)
            count += 1
            if count == args.number:
                break


def show(sample: zenwire.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    arguments = options(__doc__, key="demo/example/**", number=0)
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
