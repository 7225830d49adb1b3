from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from pathlib import Path

import pytest

from tests.unit.links.ends import Ends, listening
from zenwire.links import LinkError, connect, listen


def test_a_listener_has_a_lock_file_and_removes_both(tmp_path: Path) -> None:
    path = tmp_path / "z.sock"

    def files() -> set[str]:
        return {file.name for file in tmp_path.iterdir()}

    async def scenario() -> None:
        async with listening(f"unixsock-stream/{path}") as (listener, _):
            assert path.is_socket()
            assert files() == {"z.sock", "z.sock.lock"}
            assert [str(found) for found in listener.locators()] == [f"unixsock-stream/{path}"]
            with pytest.raises(LinkError, match="another process listens there and holds"):
                await listen(f"unixsock-stream/{path}", Ends().attach)
            assert path.is_socket()
        assert files() == set()

    asyncio.run(scenario())


def test_what_a_dead_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "z.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    Path(f"{path}.lock").touch()

    async def scenario() -> None:
        async with listening(f"unixsock-stream/{path}") as (listener, there):
            here = Ends()
            await connect(listener.endpoint, here.attach)
            await there.get()
            await here.close()

    asyncio.run(scenario())


def test_a_lock_of_another_process_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "z.sock"
    fd = os.open(f"{path}.lock", os.O_CREAT | os.O_RDONLY, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(LinkError, match="stop that process"):
            asyncio.run(listen(f"unixsock-stream/{path}", Ends().attach))
    finally:
        os.close(fd)


def test_a_listener_without_a_lock_is_respected(tmp_path: Path) -> None:
    path = tmp_path / "z.sock"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        with pytest.raises(LinkError, match="without a lock file"):
            asyncio.run(listen(f"unixsock-stream/{path}", Ends().attach))
    assert path.is_socket()
    assert not Path(f"{path}.lock").exists()


def test_a_file_that_is_no_socket_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "precious"
    path.write_text("data")
    with pytest.raises(LinkError, match="no socket is in the way"):
        asyncio.run(listen(f"unixsock-stream/{path}", Ends().attach))
    assert path.read_text() == "data"


def test_paths_that_cannot_be(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(LinkError, match="longer than 103 bytes"):
            await listen(f"unixsock-stream/{tmp_path}/{'x' * 100}", Ends().attach)
        with pytest.raises(LinkError, match="opening the lock file"):
            await listen(f"unixsock-stream/{tmp_path}/no/such", Ends().attach)
        with pytest.raises(LinkError, match="there is no such file"):
            await connect(f"unixsock-stream/{tmp_path}/none", Ends().attach)

    asyncio.run(scenario())
