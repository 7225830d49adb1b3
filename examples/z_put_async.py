"""Publish one value."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        print(f"Putting Data ('{args.key}': '{args.payload}')...")
        await session.put(args.key, args.payload)


if __name__ == "__main__":
    asyncio.run(
        main(
            options(
                __doc__, aio.Config, key="demo/example/zenwire-put", payload="Put from zenwire!"
            )
        )
    )
