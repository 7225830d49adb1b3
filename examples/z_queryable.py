"""Answer queries, until Ctrl-C; with ``-n`` so many."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session, session.declare_queryable(args.key) as queryable:
        for count, query in enumerate(queryable, 1):
            with query:
                print(f">> [Queryable] Received Query '{query.selector}'")
                query.reply(args.key, args.payload)
            if count == args.number:
                break


async def main_async(args: argparse.Namespace) -> None:
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
    arguments = options(
        __doc__, key="demo/example/zenwire-queryable", payload="Queryable from zenwire!", number=0
    )
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
