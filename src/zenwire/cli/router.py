"""``zenwire router``: a router in place of zenohd, with its flags and its configuration."""

from __future__ import annotations

import asyncio
import json
import signal
from typing import TYPE_CHECKING, Final

from zenwire.cli.options import config_of, session_options
from zenwire.cli.running import OK, note, run_command

if TYPE_CHECKING:
    import argparse

    from zenwire.node.config import Config

SUMMARY = "run a router, as zenohd does, until it is told to end"
EXAMPLES: tuple[str, ...] = (
    "zenwire router",
    "zenwire router -l tcp/0.0.0.0:7447 -e tcp/192.168.1.5:7447 --no-multicast-scouting",
    "zenwire router -c zenohd.json5 --cfg 'timestamping/enabled:false'",
)

PERMISSIONS: Final = ("r", "w", "rw", "none")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of zenohd."""
    parser.add_argument(
        "-i", "--id", metavar="ID", help="hexadecimal id of this router (default: a random one)"
    )
    parser.add_argument(
        "--no-timestamp", action="store_true", help="do not give a time to puts that have none"
    )
    parser.add_argument(
        "--adminspace-permissions",
        choices=PERMISSIONS,
        help="who asks for @/<id>/router/** may read (r) or change (w) it",
    )
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Route until SIGINT or SIGTERM; then say good-bye to all, and exit with 0."""
    return run_command(args, _main)


def _config(args: argparse.Namespace) -> Config:
    """What the options say. A router is not less of one if it reaches nobody at first."""
    connect, args.connect = args.connect, []
    config = config_of(args)
    args.connect = connect
    if args.mode is None and config.get_json("mode") == "null":
        config.insert_json5("mode", '"router"')
    if connect:
        config.insert_json5("connect/endpoints", json.dumps(connect))
    if args.id:
        config.insert_json5("id", json.dumps(args.id))
    if args.no_timestamp:
        config.insert_json5("timestamping/enabled", "false")
    if args.adminspace_permissions:
        allowed = args.adminspace_permissions
        for name, letter in (("read", "r"), ("write", "w")):
            value = json.dumps(letter in allowed and allowed != "none")
            config.insert_json5(f"adminspace/permissions/{name}", value)
    return config


async def _main(args: argparse.Namespace) -> int:
    from zenwire.node import open_node  # noqa: PLC0415 - slow to load, and not for --help

    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    config = _config(args)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    try:
        node = await open_node(config)
        try:
            mode = node.config.mode.name.lower()
            places = ", ".join(map(str, node.locators())) or "nowhere"
            note(args, f"{mode} {node.zid} listens on {places}")
            await told.wait()
        finally:
            await node.close()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
    return OK
