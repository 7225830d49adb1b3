"""Ask, and print the replies."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        payload = args.payload or None
        async for reply in session.get(args.selector, payload=payload, timeout=args.timeout):
            show(reply)


def show(reply: aio.Reply) -> None:
    if reply.ok is not None:
        print(f">> Received ('{reply.ok.key_expr}': '{reply.ok.payload.to_string()}')")
    elif reply.err is not None:
        print(f">> Received (ERROR: '{reply.err.payload.to_string()}')")


if __name__ == "__main__":
    asyncio.run(
        main(options(__doc__, aio.Config, selector="demo/example/**", payload="", timeout=10.0))
    )
