"""Diagnostics of commands: single lines on stderr, data is written to stdout.

The log has a time and a level in every command. In commands that run unattended, such as a router,
so has everything else that they write to stderr.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from zenwire.cli.escaping import escape, escape_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

__all__ = ["log_to_stderr", "note", "say", "stamp", "tell", "unattended"]

_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)
_LINE_END: Final = re.compile(r"\s*\n\s*")


def tell(command: str, text: str, below: Iterable[str] = (), *, stamped: str = "") -> None:
    """Write a line to stderr, with the name of the command; ``below`` are further, indented lines."""
    lines = [f"{stamped}zenwire {command}: {_one_line(text)}", *(f"  {escape(b)}" for b in below)]
    print("\n".join(lines), file=sys.stderr, flush=True)


def say(args: argparse.Namespace, text: str, level: str = "WARNING") -> None:
    """Write a line to stderr, also with ``--quiet``."""
    stamped = stamp(level) if getattr(args, "unattended", False) else ""
    tell(args.command, text, stamped=stamped)


def note(args: argparse.Namespace, text: str) -> None:
    """Write a line to stderr that ``--quiet`` leaves out."""
    if not args.quiet:
        say(args, text, "INFO")


def unattended(parser: argparse.ArgumentParser) -> None:
    """Give all diagnostics of this command a time and a level: it may run for weeks."""
    parser.set_defaults(unattended=True)


def stamp(level: str, now: float | None = None) -> str:
    """``2026-11-18T16:26:29.123Z WARNING`` and a space; UTC, now or at a time in seconds."""
    at = time.time() if now is None else now
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
    return f"{day}.{int(at * 1000) % 1000:03}Z {level} "


def _one_line(text: str) -> str:
    return escape(_LINE_END.sub(" ", text))


class _Formatter(logging.Formatter):
    """Time, level, command and message in a line; a traceback below it."""

    def __init__(self, command: str) -> None:
        super().__init__()
        self._command = command

    def format(self, record: logging.LogRecord) -> str:
        begin = f"{stamp(record.levelname, record.created)}zenwire {self._command}: "
        line = begin + _one_line(record.getMessage())
        if record.exc_info:
            line += f"\n{escape_lines(self.formatException(record.exc_info))}"
        return line


@contextmanager
def log_to_stderr(args: argparse.Namespace) -> Iterator[None]:
    """Write the log to stderr meanwhile; a program that runs a command keeps its own handlers."""
    level = _LEVELS[min(getattr(args, "verbose", 0), len(_LEVELS) - 1)]
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter(args.command))
    log = logging.getLogger("zenwire")
    before = list(log.handlers), log.propagate, log.level
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(level)
    try:
        yield
    finally:
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])
