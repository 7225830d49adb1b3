"""Look for nodes for a second."""

from __future__ import annotations

import argparse
import asyncio
import time

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    heard: list[zenwire.Hello] = []
    with zenwire.scout(heard.append, what=args.what, config=args.config):
        time.sleep(args.seconds)
    for hello in heard:
        print(hello)
    print(f"Found {len(heard)} nodes.")


async def main_async(args: argparse.Namespace) -> None:
    heard: list[zenwire.Hello] = []
    async with aio.scout(heard.append, what=args.what, config=args.config):
        await asyncio.sleep(args.seconds)
    for hello in heard:
        print(hello)
    print(f"Found {len(heard)} nodes.")


if __name__ == "__main__":
    arguments = options(__doc__, what="peer|router", seconds=1.0)
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
