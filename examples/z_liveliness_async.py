"""Be alive until Ctrl-C; or for so many seconds."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.liveliness().declare_token(args.key):
        print(f"'{args.key}' is alive...", flush=True)
        await asyncio.sleep(args.seconds or 1e9)


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="group1/zenwire", seconds=0.0)))
