"""Ask, and print the replies."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session:
        payload = args.payload or None
        for reply in session.get(args.selector, payload=payload, timeout=args.timeout):
            show(reply)


async def main_async(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        payload = args.payload or None
        async for reply in session.get(args.selector, payload=payload, timeout=args.timeout):
            show(reply)


def show(reply: zenwire.Reply) -> None:
    if reply.ok is not None:
        print(f">> Received ('{reply.ok.key_expr}': '{reply.ok.payload.to_string()}')")
    elif reply.err is not None:
        print(f">> Received (ERROR: '{reply.err.payload.to_string()}')")


if __name__ == "__main__":
    arguments = options(__doc__, selector="demo/example/**", payload="", timeout=10.0)
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
