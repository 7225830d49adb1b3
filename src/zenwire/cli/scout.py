"""``zenwire scout``: which nodes answer by multicast."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import config_of, count, seconds, session_options
from zenwire.cli.running import FAILED, OK, Output, Wrong, note, run_command, say

if TYPE_CHECKING:
    import argparse

    from zenwire import aio

SUMMARY = "list the nodes that answer to multicast scouting, and where they listen"
EXAMPLES: tuple[str, ...] = (
    "zenwire scout",
    "zenwire scout --what router --timeout 5 --json",
    "zenwire scout --what router --count 1",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add whom to look for, and how long."""
    parser.add_argument(
        "--what",
        default="router|peer|client",
        metavar="MODES",
        help="whom to look for, as in router|peer (default: router|peer|client)",
    )
    parser.add_argument(
        "--timeout", type=seconds, default=3.0, metavar="S", help="how long (default: 3 seconds)"
    )
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N nodes")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Look for nodes. Exit code 1: nobody has answered."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    from zenwire import aio  # noqa: PLC0415 - slow to load, and not for --help

    config = config_of(args)
    multicast = config.effective.scouting.multicast
    if not multicast.enabled:
        raise Wrong("multicast scouting is off, and that is what this does")
    try:
        what = aio.WhatAmIMatcher(args.what.replace(",", "|"))
    except aio.EncodeError as e:
        raise Wrong(f"--what: {e}") from None
    note(args, f"asking udp/{multicast.address} for {args.timeout:g} s")
    output, seen = Output(), set[str]()
    try:
        async with asyncio.timeout(args.timeout), aio.scout(what=what, config=config) as scout:
            async for hello in scout:
                await output.write(_line(hello, as_json=args.json))
                seen.add(str(hello.zid))
                if args.count is not None and len(seen) >= args.count:
                    break
    except TimeoutError:
        pass
    if seen:
        return OK
    say(
        args,
        "nobody has answered: is multicast let through (firewall, container, Wi-Fi), are nodes on "
        "this network? Others are reached with -e tcp/HOST:7447",
    )
    return FAILED


def _line(hello: aio.Hello, *, as_json: bool) -> str:
    if as_json:
        told = {"whatami": str(hello.whatami), "zid": str(hello.zid), "locators": hello.locators}
        return json_text(told) + "\n"
    return f"{hello.whatami!s:<6} {hello.zid!s:<32} {escape(' '.join(hello.locators))}\n"
