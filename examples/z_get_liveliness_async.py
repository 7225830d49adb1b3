"""Print which keys are alive."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session:
        async for reply in session.liveliness().get(args.key, timeout=args.timeout):
            if reply.ok is not None:
                print(f">> Alive token ('{reply.ok.key_expr}')")


if __name__ == "__main__":
    asyncio.run(main(options(__doc__, aio.Config, key="group1/**", timeout=10.0)))
