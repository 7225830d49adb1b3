"""How the commands of the network run: one loop, data on stdout, a clean end."""

from __future__ import annotations

import asyncio
import io
import os
import queue
import signal
import sys
import threading
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from zenwire.cli.diagnostics import log_to_stderr, note, say
from zenwire.cli.escaping import escape_lines
from zenwire.cli.options import config_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator, Callable, Coroutine

    from zenwire import aio

__all__ = [
    "FAILED",
    "LOST",
    "OK",
    "OUT_OF_TIME",
    "USAGE",
    "Aside",
    "Output",
    "Wrong",
    "endings",
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
_SIGNALLED: Final = 128
"""Added to the number of the signal that has ended a command: 143 for SIGTERM, as in shells."""


class Wrong(Exception):  # noqa: N818 # what the arguments are
    """The arguments do not go together: exit code 2."""


def many(number: int, word: str) -> str:
    """``1 sample``, ``2,000 samples``."""
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def endings() -> list[signal.Signals]:
    """Signals that end a command cleanly, besides SIGINT. `nohup` ignores SIGHUP, and so do we."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [signal.SIGTERM] if ignored else [signal.SIGTERM, signal.SIGHUP]


def run_command(
    args: argparse.Namespace, main: Callable[[argparse.Namespace], Coroutine[Any, Any, int]]
) -> int:
    """Run a command in a loop of its own.

    SIGTERM and SIGHUP end it as Ctrl-C does, with an exit code of their own.
    """
    told: signal.Signals | None = None

    async def guarded() -> int:
        def end(number: signal.Signals) -> None:
            nonlocal told
            told = told or number
            if task is not None:
                task.cancel()

        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        numbers = endings()
        for number in numbers:
            loop.add_signal_handler(number, end, number)
        try:
            return await main(args)
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)
                if told:
                    # Some say it twice, and the second time must not spoil the end.
                    signal.signal(number, signal.SIG_IGN)

    try:
        with log_to_stderr(args):
            return asyncio.run(guarded())
    except asyncio.CancelledError:
        if told:
            return _SIGNALLED + told
        raise
    except Wrong as e:
        say(args, str(e), "ERROR")
        return USAGE


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
        sys.stdout.flush()
        try:
            self._fd: int | None = sys.stdout.fileno()
        except io.UnsupportedOperation:  # not a file: a test looks at it
            self._fd = None

    async def write(self, data: str | bytes) -> None:
        """Returns when it is written. Raises OSError, such as BrokenPipeError.

        Control characters in text are escaped, but for line ends and tabs; bytes are written as
        they are.
        """
        if isinstance(data, str):
            raw = escape_lines(data).encode(errors="backslashreplace")
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
