"""Answer queries, until Ctrl-C; with ``-n`` so many."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.declare_queryable(args.key) as queries:
        count = 0
        async for query in queries:
            with query:
                print(f">> [Queryable] Received Query '{query.selector}'")
                await query.reply(args.key, args.payload)
            count += 1
            if count == args.number:
                break


if __name__ == "__main__":
    asyncio.run(
        main(
            options(
                __doc__,
                aio.Config,
                key="demo/example/zenwire-queryable",
                payload="Queryable from zenwire!",
                number=0,
            )
        )
    )
