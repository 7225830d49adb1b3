"""A router in a process of its own, and raw sockets that talk to it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.ports import free_port
from zenwire.wire.batch import decode_batch, frame_stream
from zenwire.wire.objects import encode
from zenwire.wire.transport import Close, InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import WhatAmI, ZenohId

__all__ = ["TIMEOUT", "RawSocket", "Router", "router_process", "wait_for"]

TIMEOUT = 60.0
"""Seconds after which a test gives up."""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds. Fails after ``TIMEOUT`` seconds."""
    ends = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.02)


class Router:
    """A running ``zenwire router`` on loopback."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log

    @property
    def rss(self) -> int:
        """Resident bytes of the process."""
        fields = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def files(self) -> int:
        """Open files of the process."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def stats(self) -> dict[str, Any]:
        """Read the router's counters from its admin space."""
        value: dict[str, Any] = json.loads(self.admin("stats"))
        return value

    def sessions(self) -> dict[str, dict[str, Any]]:
        """Read the counters of each session, by the id of its peer."""
        text, found = self.admin("stats/session/*").decode(), {}
        while text := text.lstrip():
            one, end = json.JSONDecoder().raw_decode(text)
            found[one["zid"]] = one
            text = text[end:]
        return found

    def admin(self, key: str) -> bytes:
        """Read a key of the router's admin space, with a client of its own."""
        command = [sys.executable, "-m", "zenwire", "get", "--raw", "-m", "client"]
        command += ["-e", f"tcp/127.0.0.1:{self.port}", "--no-multicast-scouting"]
        done = subprocess.run(
            [*command, "-s", f"@/*/router/{key}"],
            capture_output=True,
            timeout=TIMEOUT,
            check=True,
        )
        return done.stdout


@contextmanager
def router_process(
    directory: Path, *, files: int | None = None, **settings: Any
) -> Iterator[Router]:
    """Start a router; ``files`` is its limit of open files, ``settings`` its configuration."""
    port = free_port()
    config = directory / "router.json5"
    config.write_text(json.dumps({"mode": "router", **settings}))
    command = [sys.executable, "-m", "zenwire", "router", "--no-multicast-scouting"]
    command += ["-c", str(config), "-l", f"tcp/127.0.0.1:{port}"]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    log = directory / "router.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stderr=output)
    try:
        wait_for(lambda: b"listens on" in log.read_bytes(), "the router did not start")
        yield Router(process, port, log)
    finally:
        process.kill()
        process.wait()


class RawSocket:
    """A blocking socket that speaks batches, and nothing by itself."""

    def __init__(self, port: int) -> None:
        self.zid = ZenohId(os.urandom(16))
        self.sock = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, batch: bytes | object) -> None:
        """Send a batch, or one message as a batch."""
        self.sock.sendall(frame_stream(batch if isinstance(batch, bytes) else encode(batch)))

    def receive(self) -> bytes | None:
        """Receive a batch; None at the end of the stream."""
        prefix = self._exactly(2)
        return None if prefix is None else self._exactly(int.from_bytes(prefix, "little"))

    def _exactly(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            try:
                more = self.sock.recv(size - len(data))
            except ConnectionError:
                return None
            if not more:
                return None
            data += more
        return data

    def expect(self, kind: type[Any]) -> Any:
        """Receive one message, alone in its batch."""
        batch = self.receive()
        assert batch is not None, "the stream ended"
        (message,) = decode_batch(batch)
        assert isinstance(message, kind), message
        return message

    def close_reason(self) -> int | None:
        """Read to the end of the stream: the reason of the CLOSE, or None without one."""
        reason = None
        while (batch := self.receive()) is not None:
            for message in decode_batch(batch):
                if isinstance(message, Close):
                    reason = int(message.reason)
        return reason

    def init(self, **fields: Any) -> InitAck:
        """Send InitSyn and receive InitAck."""
        chosen: dict[str, Any] = {"qos": True, "patch": 1, "whatami": WhatAmI.CLIENT} | fields
        self.send(InitSyn(version=9, zid=self.zid, **chosen))
        ack = self.expect(InitAck)
        assert isinstance(ack, InitAck)
        return ack

    def open(self, syn: dict[str, Any] | None = None, **fields: Any) -> Self:
        """Run the handshake of a connector; ``syn`` is for InitSyn, the rest for OpenSyn."""
        cookie = self.init(**syn or {}).cookie
        chosen: dict[str, Any] = {"lease": 10_000, "initial_sn": 0, "cookie": cookie} | fields
        self.send(OpenSyn(**chosen))
        self.expect(OpenAck)
        return self
