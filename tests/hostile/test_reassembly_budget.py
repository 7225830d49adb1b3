"""Messages that never end: what they hold is bounded for the whole process, and given back."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.hostile.processes import RawSocket, Router, router_process, wait_for
from zenwire.wire.data import Put
from zenwire.wire.network import Push
from zenwire.wire.objects import encode
from zenwire.wire.transport import Fragment, KeepAlive
from zenwire.wire.values import Priority, WireExpr

MIB = 1024 * 1024
BUDGET = 16 * MIB
LANES = [(priority, reliable) for priority in Priority for reliable in (True, False)]
PIECE = 40_000


def rx(**more: Any) -> dict[str, Any]:
    settings = {"max_message_size": 4 * MIB, "max_reassembly": BUDGET, "reassembly_timeout": 2_000}
    return {"transport": {"link": {"rx": settings | more}}}


def begin(peer: RawSocket, pieces: int) -> None:
    """Send the first pieces of a message in every lane."""
    for number in range(pieces):
        for priority, reliable in LANES:
            peer.send(
                Fragment(
                    reliable=reliable,
                    more=True,
                    first=not number,
                    sn=number,
                    priority=priority,
                    payload=bytes(PIECE),
                )
            )


def received(router: Router, peer: RawSocket) -> int:
    """Network messages that the router received from a peer."""
    return int(router.sessions()[str(peer.zid)]["transport"]["rx_messages"])


def test_sessions_share_one_budget_and_hoarded_messages_expire(tmp_path: Path) -> None:
    with ExitStack() as stack:
        router = stack.enter_context(router_process(tmp_path, **rx()))
        before = router.rss
        peers = [stack.enter_context(RawSocket(router.port)).open() for _ in range(20)]
        for peer in peers:
            begin(peer, 10)
        # 128 MB were sent, of which each session holds at most 6.4.
        stats = router.stats()
        assert stats["reassembly"]["limit"] == BUDGET
        assert stats["reassembly"]["held"] <= BUDGET
        assert stats["dropped"]["fragment_evicted"] > 100
        assert router.rss - before < 3 * BUDGET

        def released() -> bool:
            for peer in peers:
                peer.send(KeepAlive())
            return bool(router.stats()["reassembly"]["held"] == 0)

        wait_for(released, "unfinished messages did not expire")
        stats = router.stats()
        assert stats["dropped"]["fragment_expired"] > 0
        assert stats["endings"].keys() <= {"closed_by_peer"}
        assert b'cause="fragment_evicted"' in router.admin("metrics?compression=false")
        wait_for(lambda: b"fragment_evicted" in router.log.read_bytes(), "the log says nothing")


def test_a_message_of_a_modest_session_gets_through(tmp_path: Path) -> None:
    """Hoarders hold the whole budget; another session sends a fragmented message meanwhile."""
    with ExitStack() as stack:
        router = stack.enter_context(router_process(tmp_path, **rx(reassembly_timeout=600_000)))
        greedy = [stack.enter_context(RawSocket(router.port)).open() for _ in range(2)]
        for peer in greedy:
            begin(peer, 20)
        assert router.stats()["reassembly"]["held"] > BUDGET // 2
        modest = stack.enter_context(RawSocket(router.port)).open()
        whole = encode(Push(key=WireExpr(0, "modest"), body=Put(payload=bytes(MIB))))
        cut = range(0, len(whole), PIECE)
        for number, start in enumerate(cut):
            modest.send(
                Fragment(
                    reliable=True,
                    more=number + 1 < len(cut),
                    first=not number,
                    sn=number,
                    payload=whole[start : start + PIECE],
                )
            )
        wait_for(lambda: received(router, modest) == 1, "the message was not received")
        assert router.sessions()[str(modest.zid)]["dropped"] == {}


def test_low_latency_lengths_are_charged_too(tmp_path: Path) -> None:
    settings = rx(max_message_size=64 * MIB)
    settings["transport"]["unicast"] = {"lowlatency": True, "qos": {"enabled": False}}
    with ExitStack() as stack:
        router = stack.enter_context(router_process(tmp_path, **settings))
        before = router.rss
        offer = {"qos": False, "lowlatency": True}
        peers = [stack.enter_context(RawSocket(router.port)).open(offer) for _ in range(8)]
        for peer in peers:
            peer.sock.sendall((32 * MIB).to_bytes(4, "little") + bytes(8 * MIB))
        stats = router.stats()
        assert 0 < stats["reassembly"]["held"] <= BUDGET
        assert stats["dropped"]["fragment_evicted"] >= 5
        assert router.rss - before < 4 * BUDGET
        wait_for(lambda: router.stats()["reassembly"]["held"] == 0, "they did not expire")
        # The rest of a message that was dropped is discarded, and the link goes on.
        whole = encode(Push(key=WireExpr(0, "next"), body=Put(payload=b"x")))
        peers[0].sock.sendall(bytes(24 * MIB) + len(whole).to_bytes(4, "little") + whole)
        wait_for(lambda: received(router, peers[0]) == 1, "the link did not go on")
