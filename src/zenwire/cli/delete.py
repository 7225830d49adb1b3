"""``zenwire delete``: publish that keys have no value any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.cli.options import key_options
from zenwire.cli.publishing import publish, publishing_options, ticks
from zenwire.cli.running import run_command

if TYPE_CHECKING:
    import argparse

    from zenwire import aio

SUMMARY = "publish that keys have no value any more"
EXAMPLES: tuple[str, ...] = (
    "zenwire delete -k demo/a",
    "zenwire delete -k 'demo/old/**' --wait 10",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the key."""
    key_options(parser, "what is deleted; wildcards mean all that match")
    publishing_options(parser)


def run(args: argparse.Namespace) -> int:
    """Publish. Exit code 1: there is nobody to publish to; 3: dropped; 124: nobody subscribed."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    async def each(session: aio.Session, publisher: aio.Publisher) -> int:
        done = 0
        async for _ in ticks(args.count, args.rate):
            await publisher.delete(
                attachment=args.attachment,
                timestamp=session.new_timestamp() if args.timestamp else None,
            )
            done += 1
        return done

    return await publish(args, each)
