"""Keep the last value of each key, and answer with them; with ``-n`` so many queries."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    stored: dict[str, aio.Sample] = {}

    def keep(sample: aio.Sample) -> None:
        print(f">> [Subscriber] Received {sample.kind} ('{sample.key_expr}')")
        if sample.kind is aio.SampleKind.DELETE:
            stored.pop(str(sample.key_expr), None)
        else:
            stored[str(sample.key_expr)] = sample

    async with aio.open(args.config) as session, session.declare_subscriber(args.key, keep):
        queryable = await session.declare_queryable(args.key, complete=True)
        count = 0
        async for query in queryable:
            print(f">> [Queryable] Received Query '{query.selector}'")
            with query:
                for key, sample in list(stored.items()):
                    if query.key_expr.intersects(key):
                        await query.reply(key, sample.payload, encoding=sample.encoding)
            count += 1
            if count == args.number:
                break


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="demo/example/**", number=0)))
