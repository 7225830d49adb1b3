"""Who is connected."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        info = session.info
        print(f"zid: {info.zid()}")
        print(f"routers: {[str(one) for one in info.routers_zid()]}")
        print(f"peers: {[str(one) for one in info.peers_zid()]}")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config)))
