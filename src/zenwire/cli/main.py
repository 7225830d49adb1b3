"""The ``zenwire`` command: picks the subcommand and turns errors into exit codes.

Exit codes: 0 done, 1 failed, 2 wrong arguments, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Protocol

from zenwire import __version__
from zenwire.cli import inspect, report, tables, version
from zenwire.errors import ZError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Command", "main"]


class Command(Protocol):
    """What each file of this package offers; the file's name is the subcommand's name."""

    SUMMARY: str
    """One line for the list of commands."""
    EXAMPLES: tuple[str, ...]
    """Command lines that work, without the prompt."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""


# In the order of `zenwire --help`. A new command is a file and a line here.
COMMANDS: dict[str, Command] = {
    "inspect": inspect,
    "tables": tables,
    "report": report,
    "version": version,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` without the program's name, ``sys.argv`` by default."""
    args = _parser().parse_args(argv)
    try:
        code = COMMANDS[args.command].run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not our failure. The interpreter
        # flushes stdout once more at exit, so give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ZError, OSError) as error:
        print(f"zenwire {args.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zenwire",
        description="Zenoh for people who work with data.",
        epilog=_examples(line for command in COMMANDS.values() for line in command.EXAMPLES[:1]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"zenwire {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        command.arguments(
            commands.add_parser(
                name,
                help=command.SUMMARY,
                description=command.SUMMARY,
                epilog=_examples(command.EXAMPLES),
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return parser


def _examples(lines: Iterable[str]) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])
