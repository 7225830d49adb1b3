"""Publish one number, as eclipse-zenoh's other languages read it."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        print(f"Putting Float ('{args.key}': '{args.value}')...")
        await session.put(args.key, aio.ext.z_serialize(args.value))


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="demo/example/zenwire-put", value=3.14)))
