"""Sessions that say nothing: they keep their place for a bounded time, and not from others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.hostile.processes import RawSocket, router_process, wait_for
from zenwire.wire.batch import decode_batch
from zenwire.wire.transport import KeepAlive, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason

FOR_EVER = 2**63
"""A lease in milliseconds."""


def settings(lease: int = 1_000, **unicast: Any) -> dict[str, Any]:
    return {"transport": {"unicast": unicast, "link": {"tx": {"lease": lease}}}}


@contextmanager
def talking(peer: RawSocket) -> Iterator[None]:
    """Send a KEEP_ALIVE every now and then."""
    over = threading.Event()

    def talk() -> None:
        while not over.wait(0.1):
            peer.send(KeepAlive())

    thread = threading.Thread(target=talk)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def enters(port: int) -> bool:
    """Try to open a session."""
    with RawSocket(port) as peer:
        ack = peer.init()
        peer.send(OpenSyn(lease=10_000, initial_sn=0, cookie=ack.cookie))
        batch = peer.receive()
        assert batch is not None
        (answer,) = decode_batch(batch)
        return isinstance(answer, OpenAck)


def test_a_lease_without_end_is_cut(tmp_path: Path) -> None:
    with (
        router_process(tmp_path, **settings(max_lease=2_000)) as router,
        RawSocket(router.port) as silent,
        RawSocket(router.port) as talker,
    ):
        talker.open(lease=FOR_EVER)
        with talking(talker):
            silent.open(lease=FOR_EVER)
            assert silent.close_reason() == CloseReason.EXPIRED
        assert str(talker.zid) in router.sessions()
        assert str(silent.zid) not in router.sessions()


def test_silent_sessions_give_way_when_there_are_too_many(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cap = settings(4_000, max_sessions=6, max_lease=3_600_000)
        router = stack.enter_context(router_process(tmp_path, **cap))
        talker = stack.enter_context(RawSocket(router.port)).open(lease=FOR_EVER)
        stack.enter_context(talking(talker))
        silent = [
            stack.enter_context(RawSocket(router.port)).open(lease=FOR_EVER) for _ in range(5)
        ]
        wait_for(lambda: enters(router.port), "nobody gets in")
        # The one that was silent for longest has gone.
        assert silent[0].close_reason() == CloseReason.EXPIRED
        newcomers = []
        for _ in range(4):
            newcomer = stack.enter_context(RawSocket(router.port)).open()
            stack.enter_context(talking(newcomer))
            newcomers.append(newcomer)
        told = router.sessions()
        assert {str(one.zid) for one in (talker, *newcomers)} <= told.keys()
        stats = router.stats()
        assert stats["endings"]["evicted"] >= 5
        # All of them talk now, so the next one is refused, as before.
        last = stack.enter_context(RawSocket(router.port)).open()
        stack.enter_context(talking(last))
        assert not enters(router.port)
        wait_for(lambda: b"evicted" in router.log.read_bytes(), "the log says nothing")
