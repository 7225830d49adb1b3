"""How the commands of the network run: one loop, talk on stderr, data on stdout, a clean end."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import queue
import re
import signal
import sys
import threading
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from zenwire.cli.options import config_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from zenwire import aio

__all__ = [
    "FAILED",
    "LOST",
    "OK",
    "OUT_OF_TIME",
    "TERMINATED",
    "USAGE",
    "Aside",
    "Output",
    "Wrong",
    "harmless",
    "many",
    "note",
    "run_command",
    "say",
    "session_of",
]

T = TypeVar("T")

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
LOST: Final = 3
OUT_OF_TIME: Final = 124
TERMINATED: Final = 143
_LEVELS: Final = (logging.WARNING, logging.INFO, logging.DEBUG)


class Wrong(Exception):  # noqa: N818 # what the arguments are
    """The arguments do not go together: exit code 2."""


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def harmless(text: str) -> str:
    """What others sent, without what would steer a terminal: such characters are written out."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def say(args: argparse.Namespace, text: str) -> None:
    """Talk: on stderr, with the name of the command."""
    print(f"zenwire {args.command}: {harmless(text)}", file=sys.stderr, flush=True)


def many(number: int, word: str) -> str:
    """``1 sample``, ``2,000 samples``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def note(args: argparse.Namespace, text: str) -> None:
    """Talk that ``--quiet`` leaves out."""
    if not args.quiet:
        say(args, text)


def run_command(
    args: argparse.Namespace, main: Callable[[argparse.Namespace], Coroutine[Any, Any, int]]
) -> int:
    """Run a command in a loop of its own. SIGTERM ends it as Ctrl-C does, with its own code."""
    told = False

    async def guarded() -> int:
        def end() -> None:
            nonlocal told
            told = True
            if task is not None:
                task.cancel()

        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, end)
        try:
            return await main(args)
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
            if told:
                # Some say it twice, and the second time must not spoil the end.
                signal.signal(signal.SIGTERM, signal.SIG_IGN)

    try:
        with _log_to_stderr(args):
            return asyncio.run(guarded())
    except asyncio.CancelledError:
        if told:
            return TERMINATED
        raise
    except Wrong as e:
        say(args, str(e))
        return USAGE


@contextmanager
def _log_to_stderr(args: argparse.Namespace) -> Iterator[None]:
    """Meanwhile; a program that runs a command keeps the log that it has."""
    level = _LEVELS[min(getattr(args, "verbose", 0), len(_LEVELS) - 1)]
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"zenwire {args.command}: %(message)s"))
    log = logging.getLogger("zenwire")
    before = list(log.handlers), log.propagate, log.level
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(level)
    try:
        yield
    finally:
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])


@asynccontextmanager
async def session_of(args: argparse.Namespace) -> AsyncIterator[aio.Session]:
    """A session as the options say. Raises ConfigError and LinkError."""
    from zenwire import aio  # noqa: PLC0415 - slow to load, and not for --help

    config = config_of(args)
    async with aio.open(config) as session:
        if args.connect and not session.info.transports():
            say(args, f"{', '.join(args.connect)}: not connected yet; it is tried again and again")
        yield session


class Aside:
    """A thread for what may wait without end: it is not waited for when the command ends."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]]
        self._work = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """What the call gives; or raises, if that is an OSError."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="zenwire-aside")
            self._thread.start()
        done: asyncio.Future[T] = self._loop.create_future()
        self._work.put((call, done))
        return await done

    def _run(self) -> None:
        while True:
            call, done = self._work.get()
            error: OSError | None = None
            result = None
            try:
                result = call()
            except OSError as e:
                error = e
            try:
                self._loop.call_soon_threadsafe(_finish, done, result, error)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return


def _finish(done: asyncio.Future[Any], result: Any, error: OSError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)


class Output:
    """Standard output, written aside: whoever reads slowly must not stop the network.

    Past the buffers of Python, whose locks a thread that waits would keep at the end.
    """

    def __init__(self) -> None:
        self._aside = Aside()
        self._is_terminal = sys.stdout.isatty()
        sys.stdout.flush()
        try:
            self._fd: int | None = sys.stdout.fileno()
        except io.UnsupportedOperation:  # not a file: a test looks at it
            self._fd = None

    async def write(self, data: str | bytes) -> None:
        """Returns when it is written. Raises OSError, such as BrokenPipeError.

        Text for a terminal is made harmless; bytes are written as they are.
        """
        if isinstance(data, str):
            text = harmless(data) if self._is_terminal else data
            raw = text.encode(errors="backslashreplace")
        else:
            raw = data
        if self._fd is None:
            sys.stdout.write(raw.decode(errors="replace"))
        else:
            await self._aside.run(partial(_write_all, self._fd, raw))


def _write_all(fd: int, raw: bytes) -> None:
    left = memoryview(raw)
    while left:
        left = left[os.write(fd, left) :]
