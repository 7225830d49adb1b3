"""A link that drops: what dials it talks to somebody else, but for the publications that are lost.

It stands between two nodes on a port of its own. Over udp a batch is a datagram; over tcp it has a
length before it, and is taken out of the stream whole. What else is in the batch of a publication
that is lost, such as the answer to a query, passes, unless that is to be lost: nodes wait ten
seconds for answers.
"""

from __future__ import annotations

import contextlib
import random
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.ports import free_port
from zenwire.wire.batch import decode_batch, encode_batch
from zenwire.wire.data import Put
from zenwire.wire.network import Push, Response, ResponseFinal
from zenwire.wire.transport import Frame

__all__ = ["Lossy", "by_chance", "lossy", "these"]

Loses = Callable[[int], bool]
"""Whether the publication with a number is lost."""

_PREFIX = 2
_LARGEST = 65_536


def these(*lost: int) -> Loses:
    """Those with these numbers, when they come first."""
    left = set(lost)

    def loses(sn: int) -> bool:
        if sn not in left:
            return False
        left.remove(sn)
        return True

    return loses


def by_chance(seed: int, share: float) -> Loses:
    """So many of all, by a seed; but not the first: without any, nobody knows of others."""
    chance = random.Random(seed)
    return lambda sn: sn > 0 and chance.random() < share


@dataclass
class Lossy:
    """``where`` nodes listen, and where to ``dial`` instead; ``lost`` are numbers so far.

    All answers to the first ``queries``, and their ends, are lost as well.
    """

    where: str
    dial: str
    loses: Loses = lambda _sn: False
    lost: list[int] = field(default_factory=list)
    queries: int = 0
    unanswered: set[int] = field(default_factory=set)

    def passed(self, batch: bytes) -> bytes:
        """What is left of a batch, if anything is."""
        messages = decode_batch(batch)
        kept = [message for message in messages if not self._is_lost(message)]
        if len(kept) == len(messages):
            return batch
        # A frame alone is worth nothing.
        return b"" if all(isinstance(one, Frame) for one in kept) else encode_batch(kept)

    def _is_lost(self, message: object) -> bool:
        if isinstance(message, Response | ResponseFinal):
            if len(self.unanswered) < self.queries:
                self.unanswered.add(message.request_id)
            return message.request_id in self.unanswered
        body = message.body if isinstance(message, Push) else None
        info = body.source_info if isinstance(body, Put) else None
        if info is None or not self.loses(info.sn):
            return False
        self.lost.append(info.sn)
        return True


@contextmanager
def lossy(kind: str) -> Iterator[Lossy]:
    """A link of tcp or udp; nothing is lost until ``loses`` says so."""
    port = free_port() if kind == "tcp" else free_port(socket.SOCK_DGRAM)
    family = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
    over = threading.Event()
    with socket.socket(type=family) as near:
        near.bind(("127.0.0.1", 0))
        near.settimeout(0.05)
        link = Lossy(f"{kind}/127.0.0.1:{port}", f"{kind}/127.0.0.1:{near.getsockname()[1]}")
        run = _streams if kind == "tcp" else _datagrams
        thread = threading.Thread(target=run, args=(near, port, link, over))
        thread.start()
        try:
            yield link
        finally:
            over.set()
            thread.join()


def _datagrams(near: socket.socket, port: int, link: Lossy, over: threading.Event) -> None:
    """Each that dials has a socket of its own on the other side."""
    far: dict[socket.socket, tuple[str, int]] = {}
    known: dict[tuple[str, int], socket.socket] = {}
    near.setblocking(False)
    try:
        while not over.is_set():
            for ready in select.select([near, *far], [], [], 0.05)[0]:
                # Nobody may listen yet, or any more; and what is ready may be such an error only.
                with contextlib.suppress(ConnectionError, BlockingIOError):
                    data, whom = ready.recvfrom(_LARGEST)
                    data = link.passed(data)
                    if not data:
                        continue
                    if ready is not near:
                        near.sendto(data, far[ready])
                        continue
                    if whom not in known:
                        known[whom] = made = socket.socket(type=socket.SOCK_DGRAM)
                        made.connect(("127.0.0.1", port))
                        made.setblocking(False)
                        far[made] = whom
                    known[whom].send(data)
    finally:
        for one in far:
            one.close()


def _streams(near: socket.socket, port: int, link: Lossy, over: threading.Event) -> None:
    near.listen()
    threads: list[threading.Thread] = []
    while not over.is_set():
        with contextlib.suppress(TimeoutError):
            one, _ = near.accept()
            try:
                other = socket.create_connection(("127.0.0.1", port))
            except ConnectionError:
                one.close()
                continue
            for pair in ((one, other), (other, one)):
                thread = threading.Thread(target=_stream, args=(*pair, link, over))
                thread.start()
                threads.append(thread)
    for thread in threads:
        thread.join()


def _stream(source: socket.socket, to: socket.socket, link: Lossy, over: threading.Event) -> None:
    """One direction, until either end or the link is over."""
    held = bytearray()
    source.settimeout(0.05)
    with contextlib.suppress(OSError), source:
        while not over.is_set():
            try:
                data = source.recv(_LARGEST)
            except TimeoutError:
                continue
            if not data:
                break
            held += data
            while len(held) >= _PREFIX:
                end = _PREFIX + int.from_bytes(held[:_PREFIX], "little")
                if len(held) < end:
                    break
                if batch := link.passed(bytes(held[_PREFIX:end])):
                    to.sendall(len(batch).to_bytes(_PREFIX, "little") + batch)
                del held[:end]
    # The other direction closes it.
    with contextlib.suppress(OSError):
        to.shutdown(socket.SHUT_WR)
