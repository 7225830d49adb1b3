"""Who is connected, and over which links."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session:
        info = session.info
        show(info.zid(), info.routers_zid(), info.peers_zid(), info.links())


async def main_async(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        info = session.info
        show(info.zid(), info.routers_zid(), info.peers_zid(), info.links())


def show(
    zid: zenwire.ZenohId,
    routers: list[zenwire.ZenohId],
    peers: list[zenwire.ZenohId],
    links: list[zenwire.Link],
) -> None:
    print(f"zid: {zid}")
    print(f"routers: {[str(one) for one in routers]}")
    print(f"peers: {[str(one) for one in peers]}")
    for link in links:
        print(f"link: {link.src} -> {link.dst}")


if __name__ == "__main__":
    arguments = options(__doc__)
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
