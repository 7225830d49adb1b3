"""Look for nodes for a second."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    heard: list[aio.Hello] = []
    async with aio.scout(heard.append, what=args.what, config=args.config):
        await asyncio.sleep(args.seconds)
    for hello in heard:
        print(hello)
    print(f"Found {len(heard)} nodes.")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, what="peer|router", seconds=1.0)))
