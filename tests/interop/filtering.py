"""Two routers with one configuration, the reference's and ours, and what passes through each.

What a session was kept from is found without waiting for a time: after what is tried comes, in the
same lane, something that everybody may do, and when that has arrived the rest has or never will.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zenoh

from tests.interop.exchange import PATIENT, Settings, node_settings
from tests.ports import free_port

__all__ = ["TIMEOUT", "USERS", "Heard", "Pair", "client", "router"]

TIMEOUT = 60.0
USERS = {"root": "r", "alice": "a", "bob": "b", "carol": "c", "dave": "d", "eve": "e"}


@contextmanager
def router(kind: str, settings: Settings, where: Path) -> Iterator[int]:
    """A router of the reference (E) or of ours (Z) that knows the users; its port."""
    port = free_port()
    users = where / "users"
    users.write_text("".join(f"{user}:{word}\n" for user, word in USERS.items()))
    held = node_settings("router", listen=f"tcp/127.0.0.1:{port}") | settings
    held["transport"] = PATIENT["transport"] | {
        "auth": {"usrpwd": {"user": "me", "password": "own", "dictionary_file": str(users)}}
    }
    if kind == "E":
        session = zenoh.open(zenoh.Config.from_json5(json.dumps(held)))
        try:
            yield port
        finally:
            session.close()  # type: ignore[no-untyped-call]
        return
    file = where / f"router-{port}.json5"
    file.write_text(json.dumps(held))
    command = [sys.executable, "-m", "zenwire", "router", "-c", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "listens" in line, line + process.stderr.read()
            yield port
        finally:
            process.terminate()
            process.wait(TIMEOUT)


@contextmanager
def client(port: int, user: str, **more: Any) -> Iterator[zenoh.Session]:
    """A session of the reference at a router."""
    settings = node_settings("client", connect=f"tcp/127.0.0.1:{port}") | more
    settings["transport"] = PATIENT["transport"] | {
        "auth": {"usrpwd": {"user": user, "password": USERS[user]}}
    }
    session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings)))
    try:
        yield session
    finally:
        session.close()  # type: ignore[no-untyped-call]


class Heard:
    """What came to a subscriber. ``handler`` takes it in order with what comes to others."""

    def __init__(self, api: Any = zenoh) -> None:
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        # By default each has a thread of its own.
        self.handler: Any = api.handlers.Callback(self._queue.put, indirect=False)

    def until(self, ends: Callable[[Any], bool]) -> None:
        """Throw away what comes before it, and itself."""
        while not ends(self._queue.get(timeout=TIMEOUT)):
            pass

    def next(self) -> Any:
        """What comes next."""
        return self._queue.get(timeout=TIMEOUT)

    def all(self) -> list[Any]:
        """What has come so far."""
        found = []
        with contextlib.suppress(queue.Empty):
            while True:
                found.append(self._queue.get_nowait())
        return found


class Pair:
    """An actor, whom rules are about, and an observer, who may do everything.

    Both may do everything on ``fence/**``. The observer is a session of the reference or, with
    ``api``, of whoever has the same words.
    """

    def __init__(self, actor: zenoh.Session, observer: Any, api: Any = zenoh) -> None:
        self.actor, self.observer, self.api = actor, observer, api
        self._count = 0
        self._sessions = {"actor": actor, "observer": observer}
        self._data = {"actor": Heard(), "observer": self.heard()}
        self._tokens = {"actor": Heard(), "observer": self.heard()}
        self._kept: list[Any] = []
        for name, session in self._sessions.items():
            self._kept += [
                session.declare_subscriber(f"fence/data/{name}", self._data[name].handler),
                session.liveliness().declare_subscriber(
                    f"fence/token/{name}/*", self._tokens[name].handler, history=True
                ),
            ]
        # What is declared takes effect some time later.
        for name in self._sessions:
            self.told(name)

    def heard(self) -> Heard:
        """For something of the observer."""
        return Heard(self.api)

    def said(self, name: str) -> None:
        """All that one of them has published is with the other one, if it may be."""
        self._count += 1
        text = str(self._count)
        [other] = self._sessions.keys() - {name}
        self._sessions[name].put(f"fence/data/{other}", text)
        self._data[other].until(lambda sample: sample.payload.to_string() == text)

    def told(self, name: str) -> None:
        """All that one of them has declared is with the router, and with the other one."""
        self._count += 1
        [other] = self._sessions.keys() - {name}
        key = f"fence/token/{other}/{self._count}"
        token = self._sessions[name].liveliness().declare_token(key)
        self._tokens[other].until(lambda sample: str(sample.key_expr) == key)
        token.undeclare()
