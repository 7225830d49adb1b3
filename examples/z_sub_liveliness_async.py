"""Print which keys become alive, and which are not any more; with ``-n`` so many."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        tokens = await session.liveliness().declare_subscriber(args.key, history=True)
        count = 0
        async for sample in tokens:
            alive = sample.kind is aio.SampleKind.PUT
            print(f">> '{sample.key_expr}' is {'alive' if alive else 'gone'}", flush=True)
            count += 1
            if count == args.number:
                break


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="group1/**", number=0)))
