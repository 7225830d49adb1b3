"""Readers that asked not to be forgotten: a file each, with how far it has read."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from typing import Final, NamedTuple

from zenwire.spool.errors import SpoolError
from zenwire.spool.files import Place
from zenwire.spool.manifest import time_text

__all__ = ["Registered", "commit", "forget", "registered"]

FOLDER: Final = "readers"
_NAME: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


class Registered(NamedTuple):
    """``position`` is the first offset of ``log`` that it has not read.

    ``broken`` says why that is not known.
    """

    name: str
    position: int
    updated: str = ""
    broken: str = ""
    log: str = "samples"


def _file(place: Place, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SpoolError(
            str(place),
            f"{name!r} cannot name a reader: letters, digits, '.', '_' and '-', at most 128",
        )
    return f"{FOLDER}/{name}.json"


def commit(place: Place, name: str, position: int, log: str = "samples") -> None:
    """Registers a reader, or says how far it is now. Raises SpoolError, OSError."""
    said = {
        "name": name,
        "log": log,
        "position": position,
        "updated": time_text(time.time_ns()),
        "host": socket.gethostname(),
        "pid": os.getpid(),
    }
    place.replace(_file(place, name), json.dumps(said, indent=2).encode() + b"\n")


def forget(place: Place, name: str) -> None:
    """What it has not read may go from now on."""
    place.delete(_file(place, name))


def registered(place: Place) -> list[Registered]:
    """All readers. One whose file cannot be read has read nothing: what it needs stays."""
    found = []
    for file in place.names(FOLDER):
        name, dot, kind = file.rpartition(".")
        if not dot or kind != "json" or not _NAME.fullmatch(name):
            continue
        try:
            said = json.loads(place.read(f"{FOLDER}/{file}"))
            at, log = _position(said), str(said.get("log", "samples"))
            found.append(Registered(name, at, str(said.get("updated", "")), log=log))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
            found.append(Registered(name, 0, broken=f"{type(e).__name__}: {e}"))
    return found


def _position(said: dict[str, object]) -> int:
    position = said["position"]
    if type(position) is not int or position < 0:
        raise ValueError(f"position {position!r}")
    return position
