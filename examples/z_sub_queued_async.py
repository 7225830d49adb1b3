"""Print what is published, from a queue, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.declare_subscriber(args.key) as samples:
        count = 0
        async for sample in samples:
            show(sample)
            count += 1
            if count == args.number:
                break


def show(sample: aio.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="demo/example/**", number=0)))
