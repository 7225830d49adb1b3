"""Publish what comes on one key on another, until Ctrl-C; with ``-n`` so many samples."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

from zenwire import aio


async def main(args: argparse.Namespace) -> None:
    async with (
        aio.open(args.config) as session,
        session.declare_publisher(args.forward) as publisher,
        session.declare_subscriber(args.key) as samples,
    ):
        count = 0
        async for sample in samples:
            print(f"Forwarding '{sample.key_expr}' to '{args.forward}'")
            attachment = sample.attachment
            await publisher.put(sample.payload, encoding=sample.encoding, attachment=attachment)
            count += 1
            if count == args.number:
                break


if __name__ == "__main__":
    asyncio.run(
        main(options(__doc__, aio.Config, key="demo/example/**", forward="demo/forward", number=0))
    )
