"""Options that commands share, with zenoh's names, and the configuration that they make."""

from __future__ import annotations

import argparse
import json
import os
from typing import TYPE_CHECKING, Final, TypedDict

if TYPE_CHECKING:
    from zenwire import aio
    from zenwire.node.config import Config

__all__ = [
    "Quality",
    "config_of",
    "count",
    "full_option",
    "key_options",
    "qos_of",
    "qos_options",
    "seconds",
    "session_options",
]

PRIORITIES: Final = (
    "real_time",
    "interactive_high",
    "interactive_low",
    "data_high",
    "data",
    "data_low",
    "background",
)
CONGESTION: Final = ("drop", "block", "block_first")


class Quality(TypedDict):
    """How publications travel, as arguments of the API."""

    priority: aio.Priority
    congestion_control: aio.CongestionControl
    express: bool
    reliability: aio.Reliability


def session_options(parser: argparse.ArgumentParser, mode: str = "peer") -> None:
    """Add how to get to the network: the flags of zenoh's examples and of zenohd.

    ``mode`` is the one of a command without ``-m`` and configuration.
    """
    group = parser.add_argument_group("session")
    group.add_argument(
        "-m",
        "--mode",
        choices=["peer", "client", "router"],
        help=f"what to be (default: {mode})",
    )
    group.add_argument(
        "-e",
        "--connect",
        action="append",
        default=[],
        metavar="ENDPOINT",
        help="connect to it, such as tcp/192.168.1.5:7447; may be given several times",
    )
    group.add_argument(
        "-l",
        "--listen",
        action="append",
        default=[],
        metavar="ENDPOINT",
        help="listen there, such as tcp/0.0.0.0:7447; may be given several times",
    )
    group.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="a configuration of zenoh, JSON5 or YAML (default: that of $ZENOH_CONFIG, if set)",
    )
    group.add_argument(
        "--cfg",
        action="append",
        default=[],
        metavar="PATH:VALUE",
        help="one setting, its value as JSON5: transport/unicast/qos/enabled:false",
    )
    group.add_argument(
        "--no-multicast-scouting", action="store_true", help="do not look for nodes by multicast"
    )
    group.add_argument(
        "-v", "--verbose", action="count", default=0, help="say more on stderr; twice says most"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="say only what is wrong")


def full_option(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--when-full`` of commands that record."""
    parser.add_argument(
        "--when-full",
        choices=["wait", "drop"],
        default="wait",
        help="when the disk is slower than the network: stop reading the links that bring rows, so "
        "that their senders wait or drop (wait, the default), or drop rows here and count them (drop)",
    )


def config_of(args: argparse.Namespace) -> Config:
    """What the options say: the file, then the flags, then ``--cfg``. Raises ConfigError.

    Whoever names one endpoint wants to be connected to it: where nothing else is said, opening
    fails if that cannot be done, as it does for a client in zenoh.
    """
    from zenwire.node.config import Config  # noqa: PLC0415 - when it is needed

    if args.config:
        config = Config.from_file(args.config)
    elif os.environ.get(Config.DEFAULT_CONFIG_PATH_ENV):
        config = Config.from_env()
    else:
        config = Config()
    if args.mode:
        config.insert_json5("mode", json.dumps(args.mode))
    if args.listen:
        config.insert_json5("listen/endpoints", json.dumps(args.listen))
    if args.no_multicast_scouting:
        config.insert_json5("scouting/multicast/enabled", "false")
    if args.connect:
        config.insert_json5("connect/endpoints", json.dumps(args.connect))
        if len(args.connect) == 1 and config.get_json("connect/exit_on_failure") == "null":
            config.insert_json5("connect/exit_on_failure", "true")
            if config.get_json("connect/timeout_ms") == "null":
                config.insert_json5("connect/timeout_ms", "0")
    for setting in args.cfg:
        path, _, value = setting.partition(":")
        config.insert_json5(path.strip(), value.strip() or "null")
    return config


def key_options(
    parser: argparse.ArgumentParser, what: str, *, many: bool = False, default: str | None = None
) -> None:
    """Add ``-k``; with ``many`` it may be given several times."""
    told = f" (default: {default})" if default else ""
    several = "; may be given several times" if many else ""
    if many:
        parser.add_argument(
            "-k",
            "--key",
            action="append",
            required=default is None,
            metavar="KEYEXPR",
            help=f"{what}{several}{told}",
        )
    else:
        parser.add_argument(
            "-k",
            "--key",
            required=default is None,
            default=default,
            metavar="KEYEXPR",
            help=f"{what}{told}",
        )


def qos_options(parser: argparse.ArgumentParser) -> None:
    """Add how publications travel."""
    group = parser.add_argument_group("quality of service")
    group.add_argument("--priority", choices=PRIORITIES, default="data", help="default: data")
    group.add_argument(
        "--congestion-control",
        choices=CONGESTION,
        default="block",
        help="what happens when the network is full (default: block, so that nothing is lost here)",
    )
    group.add_argument("--express", action="store_true", help="do not wait for more to send")
    group.add_argument(
        "--reliability", choices=["reliable", "best_effort"], default="reliable", help="of the lane"
    )


def qos_of(args: argparse.Namespace) -> Quality:
    """What `qos_options` say."""
    from zenwire import aio  # noqa: PLC0415 - when it is needed

    return {
        "priority": aio.Priority[args.priority.upper()],
        "congestion_control": aio.CongestionControl[args.congestion_control.upper()],
        "express": args.express,
        "reliability": aio.Reliability[args.reliability.upper()],
    }


def seconds(text: str) -> float:
    """A time above zero, as an option's type."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"seconds above zero are expected, not {text!r}")
    return value


def count(text: str) -> int:
    """A number above zero, as an option's type."""
    try:
        value = int(text.replace("_", ""))
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"a number above zero is expected, not {text!r}")
    return value
