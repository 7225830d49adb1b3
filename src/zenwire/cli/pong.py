"""``zenwire pong``: send back what ``zenwire ping`` sends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zenwire.cli.options import count, seconds, session_options
from zenwire.cli.ping import PING, PONG
from zenwire.cli.running import OK, OUT_OF_TIME, note, run_command, session_of

if TYPE_CHECKING:
    import argparse

SUMMARY = "send back what zenwire ping (or z_ping) sends"
EXAMPLES: tuple[str, ...] = (
    "zenwire pong",
    "zenwire pong -l tcp/0.0.0.0:7447 --timeout 60",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the keys, and when to end."""
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="end after so many seconds")
    parser.add_argument("--ping-key", default=PING, metavar="KEY", help=f"default: {PING}")
    parser.add_argument("--pong-key", default=PONG, metavar="KEY", help=f"default: {PONG}")
    parser.add_argument("--no-express", action="store_true", help="let samples wait for others")
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Answer, until told to end. Exit code 124: there were fewer than ``--count``."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    from zenwire import aio  # noqa: PLC0415 - slow to load, and not for --help

    done = 0
    async with (
        session_of(args) as session,
        session.declare_publisher(
            args.pong_key,
            congestion_control=aio.CongestionControl.BLOCK,
            express=not args.no_express,
        ) as publisher,
        session.declare_subscriber(args.ping_key) as pings,
    ):
        note(args, f"answering {args.ping_key} on {args.pong_key}")
        try:
            async with asyncio.timeout(args.timeout):
                async for sample in pings:
                    await publisher.put(sample.payload)
                    done += 1
                    if done == args.count:
                        break
        except TimeoutError:
            pass
    note(args, f"{done:,} answered")
    return OUT_OF_TIME if args.count is not None and done < args.count else OK
