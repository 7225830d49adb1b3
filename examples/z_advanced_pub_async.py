"""Publish for z_advanced_sub: late ones get what there was, and all get what they lost."""

from __future__ import annotations

import argparse
import asyncio
import itertools

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with (
        aio.open(args.config) as session,
        aio.ext.declare_advanced_publisher(
            session,
            args.key,
            cache=aio.ext.CacheConfig(args.history),
            sample_miss_detection=aio.ext.MissDetectionConfig(heartbeat=0.5),
            publisher_detection=True,
        ) as publisher,
    ):
        for index in range(args.number) if args.number else itertools.count():
            text = f"[{index:4}] {args.payload}"
            print(f"Putting Data ('{args.key}': '{text}')...", flush=True)
            await publisher.put(text)
            await asyncio.sleep(args.interval)


if __name__ == "__main__":
    asyncio.run(
        main(
            options(
                __doc__,
                aio.Config,
                key="demo/example/zenwire-pub",
                payload="Pub from zenwire!",
                history=10,
                number=0,
                interval=1.0,
            )
        )
    )
