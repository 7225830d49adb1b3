"""Ask every second; with ``-n`` so many times, once somebody can answer."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    selector = aio.Selector(args.selector)
    async with aio.open(args.config) as session:
        querier = await session.declare_querier(
            selector.key_expr,
            target=aio.QueryTarget.BEST_MATCHING,
            consolidation=aio.ConsolidationMode.NONE,
        )
        if args.number:
            listener = await querier.declare_matching_listener()
            await listener.recv()
        for index in range(args.number) if args.number else itertools.count():
            text = f"[{index:4}] {args.payload}"
            print(f"Querying '{selector}' with payload '{text}'...")
            async for reply in querier.get(parameters=selector.parameters, payload=text):
                show(reply)
            await asyncio.sleep(args.interval)


def show(reply: aio.Reply) -> None:
    if reply.ok is not None:
        print(f">> Received ('{reply.ok.key_expr}': '{reply.ok.payload.to_string()}')")
    elif reply.err is not None:
        print(f">> Received (ERROR: '{reply.err.payload.to_string()}')")


if __name__ == "__main__":
    asyncio.run(
        main(
            options(
                __doc__,
                aio.Config,
                selector="demo/example/**",
                payload="Querier from zenwire!",
                number=0,
                interval=1.0,
            )
        )
    )
