"""``zenwire lake``: look at a lake, and maintain it."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from zenwire.cli.escaping import escape_lines, json_text
from zenwire.cli.running import FAILED, OK, note

if TYPE_CHECKING:
    import argparse

EXTRA = "spark"
SUMMARY = "show, compact, vacuum, expire, check or rebuild the tables of a lake"
EXAMPLES: tuple[str, ...] = (
    "zenwire lake info lake",
    "zenwire lake compact lake",
    "zenwire lake expire lake --keep 30d",
    "zenwire lake vacuum lake --keep 7d",
    "zenwire lake check lake --json",
)
ACTIONS = ("info", "compact", "vacuum", "expire", "rebuild", "check")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to do, and to which lake."""
    parser.add_argument(
        "action",
        choices=ACTIONS,
        help="info: rows, bytes and files. compact: few large files instead of many small ones. "
        "vacuum: delete files that no snapshot refers to. expire: remove days before --keep. "
        "rebuild: make latest and key_stats again from samples. check: read every file",
    )
    parser.add_argument("lake", metavar="DIR|URL", help="directory or object store of the lake")
    parser.add_argument(
        "--keep",
        type=_span,
        metavar="TIME",
        help="age such as 30d or 12h: expire removes older days (required), vacuum keeps files "
        "of younger snapshots (default: 7d)",
    )
    parser.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of the object store, such as AWS_ENDPOINT_URL=http://127.0.0.1:9000",
    )
    parser.add_argument("--json", action="store_true", help="the result as JSON on stdout")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")


def _span(text: str) -> timedelta:
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise ValueError(text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def run(args: argparse.Namespace) -> int:
    """Exit code 1: the check found a problem, or the lake cannot be read or written."""
    from zenwire.lake import maintain  # noqa: PLC0415 - slow to load
    from zenwire.lake.address import Address  # noqa: PLC0415
    from zenwire.lake.lake import Lake, format_of  # noqa: PLC0415

    if args.action == "expire" and args.keep is None:
        print("zenwire lake expire: --keep is required, such as --keep 30d", file=sys.stderr)
        return 2
    options = dict(option.partition("=")[::2] for option in args.storage_option)
    address = Address.of(args.lake, options)
    lake = Lake(address, format_of(address))

    def tell(text: str) -> None:
        note(args, text)

    keep = args.keep or maintain.KEEP
    result: dict[str, Any]
    match args.action:
        case "info":
            result = maintain.info(lake)
        case "compact":
            result = {"files_saved": maintain.compact(lake, tell)}
        case "vacuum":
            result = {"files_deleted": maintain.vacuum(lake, keep, tell)}
        case "expire":
            result = {"rows_removed": maintain.expire(lake, keep, tell)}
        case "rebuild":
            maintain.rebuild(lake, tell)
            result = {"rebuilt": ["latest", "key_stats"]}
        case _:
            result = vars(maintain.check(lake, tell))
    _print(args, result)
    return FAILED if result.get("problems") else OK


def _print(args: argparse.Namespace, result: dict[str, Any]) -> None:
    if args.json:
        print(json_text(result, ascii_only=True))
    elif args.action == "info":
        _print_info(result)
    else:
        for name, value in result.items():
            if isinstance(value, list):
                for line in value:
                    print(escape_lines(f"{name}: {line}"))
            else:
                print(f"{name.replace('_', ' ')}: {value:,}")
        if args.action == "check" and not result["problems"]:
            print("no problems")


def _print_info(result: dict[str, Any]) -> None:
    print(f"{result['lake']} ({result['format']})")
    if result["first"] is not None:
        print(f"samples from {result['first']} to {result['last']}, {len(result['days'])} days")
    print(f"{'table':<10} {'rows':>15} {'bytes':>15} {'files':>8} {'version':>8}")
    for name, table in result["tables"].items():
        print(
            f"{name:<10} {table['rows']:>15,} {table['bytes']:>15,} {table['files']:>8,} "
            f"{table['version']:>8,}"
        )
