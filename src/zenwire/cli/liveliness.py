"""``zenwire liveliness``: make a key alive, or see which ones are."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import count, key_options, seconds, session_options
from zenwire.cli.running import (
    FAILED,
    OK,
    OUT_OF_TIME,
    Output,
    Wrong,
    note,
    run_command,
    say,
    session_of,
)
from zenwire.cli.sub import Tally

if TYPE_CHECKING:
    import argparse

    from zenwire.cli.receiving import Arrival

SUMMARY = "declare a liveliness token, watch tokens come and go, or list those that are alive"
EXAMPLES: tuple[str, ...] = (
    "zenwire liveliness -k fleet/robot1",
    "zenwire liveliness -k 'fleet/*' --watch --history",
    "zenwire liveliness -k 'fleet/*' --get",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the key, and which of the three."""
    key_options(parser, "the key that is alive, or what to look at")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--watch", action="store_true", help="print what becomes alive, or dies")
    what.add_argument("--get", action="store_true", help="print what is alive now, and end")
    parser.add_argument("--history", action="store_true", help="of --watch: with what is alive now")
    parser.add_argument("-n", "--count", type=count, metavar="N", help="of --watch: end after N")
    parser.add_argument(
        "--timeout", type=seconds, metavar="S", help="end after so many seconds (--get: 10)"
    )
    parser.add_argument(
        "--jsonl", "--json", dest="json", action="store_true", help="print JSON lines"
    )
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Do one of the three. Exit code 1: nothing was alive; 124: fewer than ``--count``."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    if (args.history or args.count) and not args.watch:
        raise Wrong("--history and --count are for --watch")
    if args.watch:
        return await _watch(args)
    return await (_get(args) if args.get else _declare(args))


async def _declare(args: argparse.Namespace) -> int:
    async with session_of(args) as session, session.liveliness().declare_token(args.key):
        note(args, f"{args.key} is alive until this ends")
        try:
            async with asyncio.timeout(args.timeout):
                await asyncio.Event().wait()
        except TimeoutError:
            pass
    return OK


async def _watch(args: argparse.Namespace) -> int:
    from zenwire.cli.receiving import subscribed  # noqa: PLC0415 - slow to load

    tally = Tally(args.count)
    async with session_of(args) as session:
        tokens = session.liveliness()
        async with subscribed(
            session,
            [args.key],
            declare=lambda key, put: tokens.declare_subscriber(key, put, history=args.history),
        ) as inbox:
            note(args, f"watching {args.key}")

            def shown(one: Arrival) -> str:
                return _line(args, str(one.sample.key_expr), one.sample.kind.name == "PUT")

            await tally.take(inbox, Output(), shown, args.timeout)
    return tally.code(lost=False)


async def _get(args: argparse.Namespace) -> int:
    output, found = Output(), 0
    late = False
    async with session_of(args) as session:
        async for reply in session.liveliness().get(args.key, timeout=args.timeout):
            if reply.ok is not None:
                found += 1
                await output.write(_line(args, str(reply.ok.key_expr), alive=True))
            else:
                late = True
    if late:
        say(args, "not all have answered in time")
        return OUT_OF_TIME
    if not found:
        say(args, f"nothing is alive on {args.key}")
    return OK if found else FAILED


def _line(args: argparse.Namespace, key: str, alive: bool) -> str:
    if args.json:
        return json_text({"key": key, "alive": alive, "received_ns": time.time_ns()}) + "\n"
    return f"{'alive' if alive else 'dead '} {escape(key)}\n"
