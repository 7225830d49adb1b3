"""Be alive, and print who else comes and goes, until Ctrl-C; with ``-n`` so many events."""

from __future__ import annotations

import argparse
import asyncio

from z_options import options

import zenwire
from zenwire import aio


def main(args: argparse.Namespace) -> None:
    with zenwire.open(args.config) as session, session.liveliness().declare_token(args.key):
        everyone = args.key.rpartition("/")[0] + "/**"
        events = session.liveliness().declare_subscriber(everyone, history=True)
        for count, sample in enumerate(events, 1):
            show(sample)
            if count == args.number:
                break


async def main_async(args: argparse.Namespace) -> None:
    async with aio.open(args.config) as session, session.liveliness().declare_token(args.key):
        everyone = args.key.rpartition("/")[0] + "/**"
        count = 0
        async with session.liveliness().declare_subscriber(everyone, history=True) as events:
            async for sample in events:
                show(sample)
                count += 1
                if count == args.number:
                    break


def show(sample: zenwire.Sample) -> None:
    said = "alive" if sample.kind is zenwire.SampleKind.PUT else "gone"
    print(f">> '{sample.key_expr}' is {said}")


if __name__ == "__main__":
    arguments = options(__doc__, key="group1/zenwire", number=0)
    if arguments.asyncio:
        asyncio.run(main_async(arguments))
    else:
        main(arguments)
