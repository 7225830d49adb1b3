"""Publish that a key has no value any more."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        print(f"Deleting resources matching '{args.key}'...")
        await session.delete(args.key)


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="demo/example/zenwire-put")))
