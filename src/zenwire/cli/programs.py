"""Run shell commands as child processes, each in a process group of its own, and end them."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GRACE", "Finished", "NotStartedError", "run_program"]

GRACE: Final = 1.0
"""Seconds between SIGTERM and SIGKILL for the process group of a program that has to end."""
_POLL: Final = 0.01
"""Seconds between two checks whether a process group is gone."""


class NotStartedError(Exception):
    """The program cannot be started; the text says why."""


class Finished(NamedTuple):
    """Exit code of a program (negative: the signal that ended it), its stdout and its stderr."""

    code: int
    stdout: bytes
    stderr: bytes


async def run_program(command: str, variables: Mapping[str, str], stdin: bytes) -> Finished:
    """Run a shell command with additional environment variables. Raises NotStartedError.

    If the caller is cancelled, the command and everything that it has started in its process group
    is ended: SIGTERM first, SIGKILL after `GRACE` seconds.
    """
    starting = asyncio.create_task(_start(command, variables))
    try:
        # Shielded: a cancelled start kills the shell alone, and waits for what that has started.
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        await asyncio.wait([starting])
        if starting.exception() is None:
            await _end_group(starting.result().pid)
        raise
    try:
        out, err = await process.communicate(stdin)
    except BaseException:
        await _end_group(process.pid)
        raise
    return Finished(process.returncode or 0, out, err)


async def _start(command: str, variables: Mapping[str, str]) -> asyncio.subprocess.Process:
    with_nul = sorted(name for name, value in variables.items() if "\0" in value)
    if with_nul:
        raise NotStartedError(f"a NUL byte cannot be passed in {', '.join(with_nul)}")
    try:
        return await asyncio.create_subprocess_shell(
            command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **variables},
            process_group=0,
        )
    except OSError as e:
        if e.errno == errno.E2BIG:
            sizes = [f"{name} ({len(v.encode()):,} bytes)" for name, v in variables.items()]
            raise NotStartedError(
                f"too long for the environment of a program: {', '.join(sizes)}"
            ) from None
        raise NotStartedError(f"the program cannot be started: {e.strerror or e}") from None


async def _end_group(group: int) -> None:
    """Send SIGTERM to a process group, and SIGKILL to the processes that are left after `GRACE`."""
    try:
        if _signal(group, signal.SIGTERM):
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    while _signal(group, 0):  # noqa: ASYNC110 # groups have no event
                        await asyncio.sleep(_POLL)
    finally:
        # Also when the wait was cancelled: a second Ctrl-C must not leave processes behind.
        _signal(group, signal.SIGKILL)


def _signal(group: int, number: int) -> bool:
    """Send a signal to a process group. Return False if it has no processes."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A program of another user (setuid): out of reach, and waiting for it would not help.
        return False
    return True
