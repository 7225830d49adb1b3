"""Publish one value."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session:
        print(f"Putting Data ('{args.key}': '{args.payload}')...")
        session.put(args.key, args.payload)


async def main_async(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        print(f"Putting Data ('{args.key}': '{args.payload}')...")
        await session.put(args.key, args.payload)


if __name__ == "__main__":
    arguments = options(__doc__, key="demo/example/zenwire-put", payload="Put from zenwire!")
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
