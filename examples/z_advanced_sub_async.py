"""Print what is published in order, also from before, and what is missed; ``-n``: so many."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with (
        aio.open(args.config) as session,
        aio.ext.declare_advanced_subscriber(
            session,
            args.key,
            history=aio.ext.HistoryConfig(detect_late_publishers=True),
            recovery=aio.ext.RecoveryConfig(heartbeat=True),
            subscriber_detection=True,
        ) as subscriber,
    ):
        await subscriber.sample_miss_listener(
            lambda miss: print(f">> Missed {miss.nb} samples from '{miss.source}'")
        )
        count = 0
        async for sample in subscriber:
            show(sample)
            count += 1
            if count == args.number:
                break


def show(sample: aio.Sample) -> None:
    print(f">> Received {sample.kind} ('{sample.key_expr}': '{sample.payload.to_string()}')")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="demo/example/**", number=0)))
