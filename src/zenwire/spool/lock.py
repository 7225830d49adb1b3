"""Whose a spool is: one writer, and a text that says which.

On this machine the system's own file lock decides, which ends with its process, so that a dead
owner is no owner. Elsewhere it is a promise with a date: whoever reads back what it wrote, and
renews it in time, is the owner. Two that begin within the same moment are told apart by that, but
no filesystem of PyArrow can swear it; give each recorder a spool of its own.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
import uuid
from pathlib import Path
from typing import Any, Final, Protocol

from zenwire.spool.errors import SpoolError, SpoolFailed, SpoolLocked
from zenwire.spool.files import Local, Place
from zenwire.spool.manifest import time_text

if sys.platform != "win32":
    import fcntl

__all__ = ["FileLock", "LeaseLock", "Lock", "lock_of", "owner_text"]

NAME: Final = "lock"
LEASE: Final = 60.0
"""Seconds that a promise holds."""
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class Lock(Protocol):
    """Held from its making on."""

    def check(self) -> None:
        """Raises SpoolFailed if it is not ours any more."""
        ...

    def release(self) -> None: ...


def owner_text(program: str, now: int) -> dict[str, Any]:
    """Who we are."""
    host = socket.gethostname()
    return {"program": program, "host": host, "pid": os.getpid(), "since": time_text(now)}


def lock_of(place: Place, program: str, now: int) -> Lock:
    """Raises SpoolLocked."""
    who = owner_text(program, now)
    return FileLock(place, who) if isinstance(place, Local) else LeaseLock(place, who)


def _said(text: bytes) -> str:
    try:
        who = json.loads(text)
        return f"{who['program']} (process {who['pid']} on {who['host']}) since {who['since']}"
    except (ValueError, TypeError, KeyError, RecursionError):
        return "somebody who left no name"


class FileLock:
    """The system's lock on a file."""

    def __init__(self, place: Local, who: dict[str, Any]) -> None:
        if sys.platform == "win32":
            raise SpoolError(str(place), "a spool cannot be written on this system, only read")
        self._place = place
        self._path: Path = place.root / NAME
        self._fd = os.open(self._path, _OPEN, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = os.pread(self._fd, 4096, 0)
            os.close(self._fd)
            raise SpoolLocked(str(place), _said(text)) from None
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, json.dumps(who).encode() + b"\n", 0)

    def check(self) -> None:
        """The file that we hold is still the one that others would find."""
        try:
            there, ours = self._path.stat(), os.fstat(self._fd)
        except OSError as e:
            raise SpoolFailed(
                str(self._place), f"was taken away ({e.strerror}); nothing more can be written"
            ) from None
        if (there.st_dev, there.st_ino) != (ours.st_dev, ours.st_ino):
            raise SpoolFailed(str(self._place), "was taken away, and another is in its place")

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class LeaseLock:
    """A file that says who, and until when."""

    def __init__(self, place: Place, who: dict[str, Any]) -> None:
        self._place = place
        self._who = who | {"token": uuid.uuid4().hex}
        found = self._there()
        until = 0 if found is None else found.get("until")
        if isinstance(until, int | float) and until > time.time():
            raise SpoolLocked(str(place), _said(json.dumps(found).encode()))
        self._renew()
        self.check()

    def _there(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._place.read(NAME))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _renew(self) -> None:
        self._until = time.time() + LEASE
        said = json.dumps(self._who | {"until": self._until})
        self._place.replace(NAME, said.encode())

    def check(self) -> None:
        """Renews it, if half its time is over."""
        found = self._there()
        if found is None or found.get("token") != self._who["token"]:
            owner = _said(json.dumps(found or {}).encode())
            raise SpoolFailed(str(self._place), f"is now written by {owner}")
        if self._until - time.time() < LEASE / 2:
            self._renew()

    def release(self) -> None:
        found = self._there()
        if found is not None and found.get("token") == self._who["token"]:
            self._place.delete(NAME)
