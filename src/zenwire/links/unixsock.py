"""unixsock-stream/path: a socket of the file system, with a lock file beside it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from zenwire.links.base import BATCH_MAX, Attach, Facts, Link, Listener
from zenwire.links.endpoint import Options, options_of, shown
from zenwire.links.errors import LinkError, link_error
from zenwire.links.forking import owned
from zenwire.links.stream import BACKLOG, StreamLink, StreamListener, carry
from zenwire.wire.locator import EndPoint, Locator

if sys.platform != "win32":
    import fcntl

__all__ = ["UnixListener", "connect", "listen"]

PATH_MAX: Final = 103
"""Bytes of a path that every system takes: 107 on Linux, 103 on the BSDs and macOS."""


async def connect(endpoint: EndPoint, attach: Attach) -> Link:
    """Connect to a socket of this machine. Raises LinkError."""
    sock = _socket(endpoint, options_of(endpoint))
    try:
        await asyncio.get_running_loop().sock_connect(sock, endpoint.address)
    except OSError as e:
        sock.close()
        raise link_error(shown(endpoint), "connecting", e) from e
    except BaseException:
        sock.close()
        raise
    link = StreamLink(endpoint, attach, lambda link: _describe(link, accepted=False))
    try:
        await carry(link, sock)
    except OSError as e:
        raise link_error(shown(endpoint), "connecting", e) from e
    return link


@dataclass(slots=True)
class UnixListener(StreamListener):
    """A listener that owns a socket file for as long as it holds the lock."""

    lock: int = field(kw_only=True)

    def prepare(self, sock: socket.socket) -> None:
        pass

    def locators(self, *, loopback: bool = True) -> list[Locator]:
        return [self.endpoint.locator]

    async def close(self) -> None:
        # The super() of a dataclass with slots does not know its class.
        await StreamListener.close(self)
        _remove(self.endpoint.address, self.lock)


async def listen(endpoint: EndPoint, attach: Attach) -> Listener:
    """Listen on a path that no other process holds. Raises LinkError.

    A socket file that was left behind is replaced; a file of any other kind is not.
    """
    name, path = shown(endpoint), endpoint.address
    sock = _socket(endpoint, options_of(endpoint))
    try:
        lock = _lock(name, path)
    except BaseException:
        sock.close()
        raise
    try:
        _clear(name, path)
        sock.bind(path)
        sock.listen(BACKLOG)
    except OSError as e:
        sock.close()
        _unlock(path, lock)
        raise link_error(name, "listening", e) from e
    except LinkError:
        sock.close()
        _unlock(path, lock)
        raise
    listener = UnixListener(
        endpoint,
        sock=sock,
        attach=attach,
        wrap=lambda attach: StreamLink(
            endpoint, attach, lambda link: _describe(link, accepted=True)
        ),
        lock=lock,
    )
    listener.start()
    return listener


def _socket(endpoint: EndPoint, options: Options) -> socket.socket:
    name = shown(endpoint)
    if sys.platform == "win32":
        raise LinkError(name, "this system has no unix sockets", "use tcp/127.0.0.1:7447")
    if len(os.fsencode(endpoint.address)) > PATH_MAX:
        raise LinkError(name, f"the path is longer than {PATH_MAX} bytes", "choose a shorter one")
    sock = owned(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    sock.setblocking(False)
    for key, option in (("so_sndbuf", socket.SO_SNDBUF), ("so_rcvbuf", socket.SO_RCVBUF)):
        size = options.whole(key)
        if size is not None:
            sock.setsockopt(socket.SOL_SOCKET, option, size)
    return sock


def _describe(link: StreamLink, *, accepted: bool) -> None:
    """The side without a path has a name that is unique, as zenoh gives it."""
    here = Locator(link.endpoint.protocol, link.endpoint.address)
    there = Locator(link.endpoint.protocol, str(uuid.uuid4()))
    link.src, link.dst = (here, there) if accepted else (there, here)
    link.facts = Facts(streamed=True, reliable=True, mtu=BATCH_MAX)


def _lock(name: str, path: str) -> int:
    """Hold ``path.lock``; the system lets go of it when this process ends."""
    lock = f"{path}.lock"
    while True:
        try:
            fd = os.open(lock, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise link_error(name, f"opening the lock file {lock}", e) from e
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(fd).st_ino == os.stat(lock).st_ino:  # noqa: PTH116 # beside fstat
                return fd
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(fd)
            hint = "stop that process, or choose another path"
            raise LinkError(name, f"another process listens there and holds {lock}", hint) from None
        # The one who held it has removed the file between our two steps: once more.
        os.close(fd)


def _clear(name: str, path: str) -> None:
    """Remove the socket of a process that is gone."""
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise LinkError(name, "a file that is no socket is in the way", "remove it yourself")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            Path(path).unlink(missing_ok=True)
            return
        except BlockingIOError:
            pass  # somebody listens, and is busy
    hint = "stop that process, or choose another path"
    raise LinkError(name, "another process listens there, without a lock file", hint)


def _remove(path: str, lock: int) -> None:
    Path(path).unlink(missing_ok=True)
    _unlock(path, lock)


def _unlock(path: str, lock: int) -> None:
    # The file first: who opens it after that makes a new one.
    Path(f"{path}.lock").unlink(missing_ok=True)
    os.close(lock)
