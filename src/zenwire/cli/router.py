"""``zenwire router``: a router in place of zenohd, with its flags and its configuration."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
from typing import TYPE_CHECKING, Final

from zenwire.cli.diagnostics import unattended
from zenwire.cli.options import count, session_options
from zenwire.cli.running import FAILED, OK, Wrong, endings, note, run_command, say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zenwire.errors import ConfigProblem
    from zenwire.node.config import Config
    from zenwire.node.node import Node
    from zenwire.node.tap import Tap

SUMMARY = "run a router, as zenohd does, until it is told to end"
EXAMPLES: tuple[str, ...] = (
    "zenwire router",
    "zenwire router -l tcp/0.0.0.0:7447 -e tcp/192.168.1.5:7447 --no-multicast-scouting",
    "zenwire router -c zenohd.json5 --cfg 'timestamping/enabled:false'",
    "zenwire router --tap traffic.pcapng --tap-size 100 --tap-files 10",
)

PERMISSIONS: Final = ("r", "w", "rw", "none")
LOOK: Final = 5.0
"""Seconds after which it is told that something was lost."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of zenohd, and ours."""
    parser.add_argument(
        "-i", "--id", metavar="ID", help="hexadecimal id of this router (default: a random one)"
    )
    parser.add_argument(
        "--no-timestamp", action="store_true", help="do not give a time to puts that have none"
    )
    parser.add_argument(
        "--adminspace-permissions",
        choices=PERMISSIONS,
        help="who asks for @/<id>/router/** may read (r) or change (w) it (default: r)",
    )
    parser.add_argument(
        "--status",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="say so often who is there, what comes and goes, and what was lost "
        "(default: 60; 0 is never)",
    )
    tap = parser.add_argument_group("tap")
    tap.add_argument(
        "--tap",
        metavar="FILE",
        help="write all that links carry to a pcapng file, which inspect and tables read",
    )
    tap.add_argument(
        "--tap-size", type=count, metavar="MB", help="begin another file after so many megabytes"
    )
    tap.add_argument(
        "--tap-files", type=count, metavar="N", help="keep the last so many files of those"
    )
    plugins = parser.add_argument_group("plugins, of which this router has none")
    plugins.add_argument("-P", "--plugin", action="append", default=[], metavar="NAME")
    plugins.add_argument("--plugin-search-dir", action="append", default=[], metavar="PATH")
    plugins.add_argument("--rest-http-port", metavar="SOCKET")
    session_options(parser, "router")
    unattended(parser)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"seconds are expected, or 0, not {text!r}")
    return value


def run(args: argparse.Namespace) -> int:
    """Route until SIGINT, SIGTERM or SIGHUP; then say good-bye to all, and exit with 0."""
    return run_command(args, _main)


# The configuration.


def _config(args: argparse.Namespace) -> Config:
    """What the options say, in zenohd's order. Raises ConfigError with everything that is wrong.

    A router is not less of one if it reaches nobody at first.
    """
    from zenwire.errors import ConfigError  # noqa: PLC0415 - when it is needed

    problems: list[ConfigProblem] = []
    source = ""
    try:
        config = _base(args)
    except ConfigError as e:
        config, source = _nothing(), e.source
        problems += e.problems
    for path, value in _flags(args, config):
        try:
            config.insert_json5(path, value)
        except ConfigError as e:
            problems += e.problems
    problems += _impossible(config)
    if problems:
        raise ConfigError(tuple(problems), source)
    return config


def _nothing() -> Config:
    from zenwire.node.config import Config  # noqa: PLC0415 - when it is needed

    return Config()


def _base(args: argparse.Namespace) -> Config:
    from zenwire.node.config import Config  # noqa: PLC0415 - when it is needed

    for setting in args.cfg:
        path, colon, value = setting.partition(":")
        if colon and not path.strip():
            # The empty path stands for everything, in place of a file.
            return Config.from_json5(value)
    if args.config:
        return Config.from_file(args.config)
    if os.environ.get(Config.DEFAULT_CONFIG_PATH_ENV):
        return Config.from_env()
    return Config()


def _flags(args: argparse.Namespace, config: Config) -> Iterator[tuple[str, str]]:
    """What is to be set, and to what, in order."""
    if args.mode is not None or config.get_json("mode") == "null":
        yield "mode", json.dumps(args.mode or "router")
    if args.id:
        yield "id", json.dumps(args.id)
    yield "adminspace/enabled", "true"
    if args.plugin_search_dir:
        yield "plugins_loading/search_dirs", json.dumps(args.plugin_search_dir)
    if args.connect:
        yield "connect/endpoints", json.dumps(args.connect)
    if args.listen:
        yield "listen/endpoints", json.dumps(args.listen)
    if args.no_timestamp:
        yield "timestamping/enabled", "false"
    if args.no_multicast_scouting:
        yield "scouting/multicast/enabled", "false"
    if args.adminspace_permissions:
        allowed = args.adminspace_permissions
        for name, letter in (("read", "r"), ("write", "w")):
            given = letter in allowed and allowed != "none"
            yield f"adminspace/permissions/{name}", json.dumps(given)
    for setting in args.cfg:
        path, _, value = setting.partition(":")
        if path.strip():
            yield path.strip(), value.strip() or "null"


def _impossible(config: Config) -> list[ConfigProblem]:
    """What is said well, and cannot be done."""
    from zenwire.errors import ConfigError, ConfigProblem  # noqa: PLC0415 - when it is needed
    from zenwire.links import LinkError, options_of  # noqa: PLC0415
    from zenwire.node.filters import Filters  # noqa: PLC0415
    from zenwire.node.offers import allowed, with_defaults  # noqa: PLC0415

    problems: list[ConfigProblem] = []
    try:
        held = config.effective
    except ConfigError as e:
        return list(e.problems)
    try:
        Filters.of(held.settings)
    except ConfigError as e:
        problems += e.problems
    places = [("listen", one) for one in held.listen.endpoints]
    places += [("connect", one) for group in held.connect.endpoints for one in group.locators]
    for name, endpoint in places:
        try:
            options_of(with_defaults(endpoint, held))
        except LinkError as e:
            problems.append(ConfigProblem(f"{name}/endpoints", str(e)))
        else:
            if endpoint.protocol not in allowed(held):
                reason = f"{endpoint} is of a protocol that transport/link/protocols leaves out"
                problems.append(ConfigProblem(f"{name}/endpoints", reason))
    return problems


# The service.


async def _main(args: argparse.Namespace) -> int:
    from zenwire.errors import ConfigError  # noqa: PLC0415 - when it is needed
    from zenwire.node import open_node  # noqa: PLC0415 - slow to load, and not for --help

    if args.plugin or (args.rest_http_port or "none").lower() != "none":
        raise Wrong("this router loads no plugins: leave out --plugin and --rest-http-port")
    if (args.tap_size or args.tap_files) and not args.tap:
        raise Wrong("--tap-size and --tap-files are for --tap")
    try:
        config = _config(args)
    except ConfigError as e:
        if len(e.problems) == 1:
            raise
        found = f"{e.source or 'the configuration'} has {len(e.problems)} problems:"
        for line in (found, *map(str, e.problems)):
            say(args, line, "ERROR")
        return FAILED
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    numbers = [signal.SIGINT, *endings()]
    for number in numbers:
        loop.add_signal_handler(number, told.set)
    tap = _tap(args)
    try:
        node = await open_node(config, tap=tap)
        try:
            mode = node.config.mode.name.lower()
            places = ", ".join(map(str, node.locators())) or "nowhere"
            note(args, f"{mode} {node.zid} listens on {places}")
            await _watch(args, node, told)
        finally:
            await node.close()
    finally:
        if tap is not None:
            await asyncio.to_thread(tap.close)
            note(args, _written(tap))
        for number in numbers:
            loop.remove_signal_handler(number)
    return OK


def _tap(args: argparse.Namespace) -> Tap | None:
    if not args.tap:
        return None
    from zenwire.node.tap import Tap  # noqa: PLC0415 - when it is needed

    size = args.tap_size and args.tap_size * 1_000_000
    return Tap(args.tap, rotate=size, keep=args.tap_files)


def _written(tap: Tap) -> str:
    counted = tap.counted
    lost = f"; {counted.lost_packets:,} packets are missing" if counted.lost_packets else ""
    return f"the tap has {counted.packets:,} packets with {counted.bytes:,} bytes{lost}"


async def _watch(args: argparse.Namespace, node: Node, told: asyncio.Event) -> None:
    """Until it is told to end, say how it goes: at times, and soon when something was lost."""
    from zenwire.cli.router_status import Report  # noqa: PLC0415 - when it is needed

    report = Report(node)
    every = args.status or float("inf")
    next_status = node.now + every
    while not told.is_set():
        wait = min(LOOK, max(next_status - node.now, 0.0))
        try:
            await asyncio.wait_for(told.wait(), wait)
        except TimeoutError:
            if node.now >= next_status:
                next_status += every
                note(args, report.status(node.now))
            losses = report.losses()
            if losses:
                say(args, losses)
    if args.status:
        note(args, report.status(node.now))
