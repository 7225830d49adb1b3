"""What ``put`` and ``delete`` have in common: a session with somebody to publish to, and an end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zenwire.cli.options import count, qos_options, seconds, session_options
from zenwire.cli.running import LOST, OK, OUT_OF_TIME, note, say, session_of
from zenwire.errors import ZError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Awaitable, Callable

    from zenwire import aio

__all__ = ["matched", "publish", "publishing_options", "ticks"]


def publishing_options(parser: argparse.ArgumentParser) -> None:
    """Add what goes with a publication, how often it is made, and how it travels."""
    parser.add_argument("--attachment", metavar="TEXT", help="goes with it")
    parser.add_argument(
        "--timestamp", action="store_true", help="with the time of this node's clock"
    )
    parser.add_argument(
        "-n", "--count", type=count, metavar="N", help="so many times (default: once, or for ever)"
    )
    parser.add_argument("--rate", type=seconds, metavar="HZ", help="again and again, so often")
    parser.add_argument(
        "--wait",
        type=seconds,
        metavar="S",
        nargs="?",
        const=float("inf"),
        help="wait until somebody subscribes; at most so many seconds, if given",
    )
    qos_options(parser)
    session_options(parser)


async def ticks(number: int | None, rate: float | None) -> AsyncIterator[int]:
    """Counts, at a rate: late ones are not left out, the next ones make up for it."""
    loop = asyncio.get_running_loop()
    start, done = loop.time(), 0
    wanted = number if number is not None else (1 if rate is None else None)
    while wanted is None or done < wanted:
        if rate is not None:
            await asyncio.sleep(start + done / rate - loop.time())
        yield done
        done += 1


async def publish(
    args: argparse.Namespace,
    each: Callable[[aio.Session, aio.Publisher], Awaitable[int]],
) -> int:
    """Open, wait if asked to, publish with ``each`` (which says how often it did), and close."""
    from zenwire.cli.options import qos_of  # noqa: PLC0415 - its values are slow to load

    async with session_of(args) as session:
        async with session.declare_publisher(args.key, **qos_of(args)) as publisher:
            if args.wait is not None:
                note(args, f"waiting for subscribers of {args.key}")
                limit = None if args.wait == float("inf") else args.wait
                if not await matched(publisher, limit):
                    say(args, f"nobody subscribed to {args.key} within {args.wait:g} s")
                    return OUT_OF_TIME
            if not session.info.transports():
                raise ZError(
                    "connected to nobody, so nothing was published; "
                    "give -e tcp/HOST:7447, or --wait for a subscriber"
                )
            done = await each(session, publisher)
        dropped = session.info.stats().dropped.total()
    if dropped:
        say(
            args, f"{dropped:,} of {done:,} were dropped for want of room; see --congestion-control"
        )
        return LOST
    note(args, f"{args.key}: {done:,} sent")
    return OK


async def matched(publisher: aio.Publisher, limit: float | None) -> bool:
    """Wait for a subscriber, for so many seconds. Whether there is one."""
    try:
        async with asyncio.timeout(limit), publisher.declare_matching_listener() as statuses:
            async for status in statuses:
                if status.matching:
                    return True
    except TimeoutError:
        pass
    return False
