"""A process without a file to spare: those that only connect give way to those that talk."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

from tests.hostile.processes import RawSocket, router_process
from zenwire.wire.transport import KeepAlive

FILES = 64
SILENT = 300


def silent_sockets(stack: ExitStack, port: int, count: int) -> list[socket.socket]:
    """Connections that never send a byte."""
    made = []
    for _ in range(count):
        sock = stack.enter_context(socket.socket())
        sock.setblocking(False)
        sock.connect_ex(("127.0.0.1", port))
        made.append(sock)
    return made


def test_silent_sockets_that_take_all_files_keep_nobody_out(tmp_path: Path) -> None:
    patient = {"unicast": {"accept_timeout": 600_000}}
    with ExitStack() as stack:
        router = stack.enter_context(router_process(tmp_path, files=FILES, transport=patient))
        before = stack.enter_context(RawSocket(router.port)).open(lease=60_000)
        silent_sockets(stack, router.port, SILENT)
        for _ in range(3):
            newcomer = stack.enter_context(RawSocket(router.port)).open(lease=60_000)
            newcomer.send(KeepAlive())
        assert router.files <= FILES
        stats = router.stats()
        assert stats["evicted"] > 0
        assert stats["endings"] == {}
        assert str(before.zid) in router.sessions()


def test_silent_sessions_that_take_all_files_keep_nobody_out(tmp_path: Path) -> None:
    hasty = {"link": {"tx": {"lease": 2_000}}}
    with ExitStack() as stack:
        router = stack.enter_context(router_process(tmp_path, files=FILES, transport=hasty))
        room = FILES - router.files
        for _ in range(room):
            stack.enter_context(RawSocket(router.port)).open(lease=600_000)
        stats = router.stats()
        assert stats["endings"]["evicted"] > 0
