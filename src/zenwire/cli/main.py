"""The ``zenwire`` command: picks the subcommand and turns errors into exit codes.

Exit codes: 0 done, 1 failed or nothing found, 2 wrong arguments, 3 done but something was lost,
124 out of time, 129 hung up, 130 interrupted, 143 told to end. docs/commands.md has them by command.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol

from zenwire import __version__
from zenwire.cli.extras import EXTRAS, MissingExtraError, require
from zenwire.errors import ZError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["COMMANDS", "Command", "Load", "extra_of", "main", "parser_of"]


class Command(Protocol):
    """What each file of this package offers; the file's name is the subcommand's name."""

    @property
    def SUMMARY(self) -> str:  # noqa: N802 # a constant of a module
        """One line for the list of commands."""

    @property
    def EXAMPLES(self) -> tuple[str, ...]:  # noqa: N802 # the same
        """Command lines that work, without the prompt."""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""


def extra_of(command: Command) -> str:
    """The extra without which a command does not run, ``EXTRA`` of its file; empty for none.

    If there is one, a ``--format`` with the name of another extra needs that, too.
    """
    extra: str = getattr(command, "EXTRA", "")
    return extra


class Load:
    """A command whose file is loaded when it is needed: the others cost it no time."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _module(self) -> Command:
        # A module is what the protocol asks for, and its type cannot say so.
        module: Command = import_module(f"zenwire.cli.{self._name}")
        return module

    @property
    def SUMMARY(self) -> str:  # noqa: N802 # as in the protocol
        return self._module().SUMMARY

    @property
    def EXAMPLES(self) -> tuple[str, ...]:  # noqa: N802 # as in the protocol
        return self._module().EXAMPLES

    @property
    def EXTRA(self) -> str:  # noqa: N802 # a constant of a module
        return extra_of(self._module())

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the command's own arguments."""
        self._module().arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        """Do it, and return the exit code."""
        return self._module().run(args)


_NAMES: Final = (
    "scout",
    "info",
    "put",
    "delete",
    "sub",
    "get",
    "queryable",
    "liveliness",
    "hz",
    "bw",
    "delay",
    "ping",
    "pong",
    "bench",
    "doctor",
    "record",
    "ingest",
    "lake",
    "router",
    "acl",
    "inspect",
    "tables",
    "report",
    "completion",
    "version",
)

# In the order of `zenwire --help`. A new command is a file and a line above.
COMMANDS: dict[str, Command] = {name: Load(name) for name in _NAMES}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; ``argv`` without the program's name, ``sys.argv`` by default."""
    given = sys.argv[1:] if argv is None else list(argv)
    chosen = {name: COMMANDS[name] for name in given[:1] if name in COMMANDS}
    args = parser_of(chosen or COMMANDS).parse_args(given)
    try:
        _check_extras(COMMANDS[args.command], args)
        code = COMMANDS[args.command].run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away (`| head`): not our failure. The interpreter
        # flushes stdout once more at exit, so give it somewhere to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ZError, OSError, MissingExtraError) as error:
        from zenwire.cli.diagnostics import say  # noqa: PLC0415 - when it is needed

        say(args, str(error), "ERROR")
        return 2 if isinstance(error, MissingExtraError) else 1
    except KeyboardInterrupt:
        return 130
    return code


def _check_extras(command: Command, args: argparse.Namespace) -> None:
    """Raises MissingExtraError, before anything is opened or written."""
    extra = extra_of(command)
    if extra:
        output = getattr(args, "format", "")
        require(extra, *(one for one in [output] if one in EXTRAS))


def parser_of(commands: Mapping[str, Command]) -> argparse.ArgumentParser:
    """A parser for these commands. One is enough to run it, and quicker than all."""
    alone = len(commands) == 1
    parser = argparse.ArgumentParser(
        prog="zenwire",
        description="Zenoh for people who work with data.",
        epilog=None
        if alone
        else _examples(line for command in commands.values() for line in command.EXAMPLES[:1]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"zenwire {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in commands.items():
        extra = extra_of(command)
        needs = f" (needs zenwire[{extra}])" if extra else ""
        command.arguments(
            subparsers.add_parser(
                name,
                help=command.SUMMARY + needs,
                description=command.SUMMARY + needs,
                epilog=_examples(command.EXAMPLES),
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return parser


def _examples(lines: Iterable[str]) -> str:
    return "\n".join(["examples:", *(f"  {line}" for line in lines)])
