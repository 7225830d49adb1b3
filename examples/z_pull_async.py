"""Look at the last samples now and then; older ones give way. With ``-n`` so many times."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    last: aio.RingChannel[aio.Sample] = aio.RingChannel(args.size)
    async with (
        aio.open(args.config) as session,
        session.declare_subscriber(args.key, last) as samples,
    ):
        for _ in range(args.number) if args.number else itertools.count():
            await asyncio.sleep(args.interval)
            print("[Subscriber] Pulling...")
            while (sample := samples.try_recv()) is not None:
                show(sample)


def show(sample: aio.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    asyncio.run(
        main(options(__doc__, aio.Config, key="demo/example/**", size=3, interval=5.0, number=0))
    )
