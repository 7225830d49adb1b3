"""The two ends of a link, for tests: who receives, and the certificates both show."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from zenwire.links import Link, LinkError, Listener, connect, listen

TIMEOUT = 20.0
"""Long enough for a busy machine; no test waits for it to pass."""


@dataclass
class End:
    """A receiver that keeps what it gets."""

    link: Link
    data: bytearray = field(default_factory=bytearray)
    pieces: list[bytes] = field(default_factory=list)
    ends: list[LinkError | None] = field(default_factory=list)
    drains: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def received(self, data: bytes) -> None:
        assert not self.ends
        self.data += data
        self.pieces.append(data)
        self.changed.set()

    def drained(self) -> None:
        self.drains += 1
        self.changed.set()

    def closed(self, error: LinkError | None) -> None:
        self.ends.append(error)
        self.changed.set()

    async def until(self, reached: Callable[[End], bool]) -> None:
        async with asyncio.timeout(TIMEOUT):
            while not reached(self):
                self.changed.clear()
                await self.changed.wait()

    async def size(self, size: int) -> bytes:
        await self.until(lambda end: len(end.data) >= size)
        return bytes(self.data)

    async def end(self) -> LinkError | None:
        await self.until(lambda end: bool(end.ends))
        return self.ends[0]


async def until(reached: Callable[[], bool]) -> None:
    """Wait for what nothing announces, such as a counter."""
    async with asyncio.timeout(TIMEOUT):
        while not reached():  # noqa: ASYNC110 # there is no event for it
            await asyncio.sleep(0.001)


class Ends:
    """All links that one side got, in order. Its ``attach`` is what connect and listen take."""

    def __init__(self) -> None:
        self._ends: list[End] = []
        self._changed = asyncio.Event()

    def attach(self, link: Link) -> End:
        self._ends.append(End(link))
        self._changed.set()
        return self._ends[-1]

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, index: int) -> End:
        return self._ends[index]

    async def get(self, index: int = 0) -> End:
        async with asyncio.timeout(TIMEOUT):
            while len(self._ends) <= index:
                self._changed.clear()
                await self._changed.wait()
        return self._ends[index]

    async def close(self) -> None:
        for end in self._ends:
            end.link.abort()
        for end in self._ends:
            await end.end()


@asynccontextmanager
async def listening(endpoint: str) -> AsyncIterator[tuple[Listener, Ends]]:
    """A listener, and what connects to it; everything is closed in the end."""
    ends = Ends()
    listener = await listen(endpoint, ends.attach)
    try:
        yield listener, ends
    finally:
        await listener.close()
        await ends.close()


@asynccontextmanager
async def pair(endpoint: str, config: str = "") -> AsyncIterator[tuple[End, End, Listener]]:
    """Both ends of a link, the connecting one first. ``config`` is that of the connecting one."""
    async with listening(endpoint) as (listener, there):
        here = Ends()
        where = f"{listener.endpoint.locator}{config}"
        try:
            link = await connect(where, here.attach)
            assert here[0].link is link
            if listener.endpoint.protocol == "udp":
                link.write(b"!")
                accepted = await there.get()
                await accepted.size(1)
                accepted.data.clear()
                accepted.pieces.clear()
            yield here[0], await there.get(), listener
        finally:
            await here.close()


def make_certificates(folder: Path) -> None:
    """``ca``, ``server`` (localhost, 127.0.0.1, ::1) and ``client``, and a foreign ``other``."""
    _openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2",
        "-subj /CN=zenwire-ca -keyout ca.key -out ca.pem",
        "-addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign",
    )
    _openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2",
        "-subj /CN=someone-else -keyout other.key -out other.pem",
    )
    for name, san in (
        ("server", "DNS:localhost,IP:127.0.0.1,IP:::1"),
        ("client", "DNS:client"),
        ("elsewhere", "DNS:elsewhere.test"),
    ):
        _openssl(
            folder,
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes",
            f"-subj /O=test/CN=the-{name} -keyout {name}.key -out {name}.csr",
        )
        (folder / f"{name}.ext").write_text(f"subjectAltName={san}\nbasicConstraints=CA:FALSE\n")
        _openssl(
            folder,
            f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial",
            f"-days 2 -extfile {name}.ext -out {name}.pem",
        )


def _openssl(folder: Path, *words: str) -> None:
    command = ["openssl", *" ".join(words).split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
