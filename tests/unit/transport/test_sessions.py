"""Who may connect: each conflict has its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.transport.pair import Pair, only, put, sessions
from zenwire.errors import EncodeError
from zenwire.transport import Closed, LinkFacts, Sessions, Settings
from zenwire.wire import encode
from zenwire.wire.transport import Close, InitSyn
from zenwire.wire.values import CloseReason, Priority, QoS, Resolution, WhatAmI, ZenohId


def refused(both: Pair) -> tuple[Closed | None, Closed | None]:
    both.run()
    assert not both.a.opened
    assert not both.b.opened
    return both.a.closed, both.b.closed


def reason(both: Pair) -> int | None:
    a, b = refused(both)
    assert a is not None
    assert b is not None
    assert a.reason == b.reason
    assert a.by_peer is not b.by_peer
    return a.reason


def framed(batch: bytes) -> bytes:
    return len(batch).to_bytes(2, "little") + batch


def test_ourselves() -> None:
    assert reason(Pair(sessions("aa01"), sessions("aa01"))) == CloseReason.CONNECTION_TO_SELF


def test_ourselves_told_by_the_acceptor() -> None:
    """A connector that does not look: the acceptor refuses after OpenSyn."""
    node = sessions("aa01")
    other = sessions("aa01")
    both = Pair(other, node)
    other.check = lambda *_: None  # type: ignore[method-assign] # one that does not look
    assert reason(both) == CloseReason.CONNECTION_TO_SELF
    assert both.b.closed is not None
    assert not both.b.closed.by_peer


def test_client_and_client() -> None:
    client = sessions("cc01", WhatAmI.CLIENT)
    assert reason(Pair(client, sessions("cc02", WhatAmI.CLIENT))) == CloseReason.GENERIC


def test_a_second_link() -> None:
    router = sessions("aa01")
    first = Pair(sessions("cc01", WhatAmI.CLIENT), router).open()
    again = Pair(sessions("cc01", WhatAmI.CLIENT), router)
    assert reason(again) == CloseReason.MAX_LINKS
    first.send(put(b"still there"))
    first.run()
    assert first.b.payloads == [b"still there"]
    assert len(router) == 1


@pytest.mark.parametrize(
    ("mode", "terms"),
    [
        (WhatAmI.CLIENT, {"qos": False}),
        (WhatAmI.CLIENT, {"patch": 0}),
        (WhatAmI.CLIENT, {"resolution": Resolution.of(8)}),
        (WhatAmI.PEER, {}),
    ],
)
def test_a_second_link_on_other_terms(mode: WhatAmI, terms: dict[str, Any]) -> None:
    router = sessions("aa01")
    Pair(sessions("cc01", WhatAmI.CLIENT), router).open()
    assert reason(Pair(sessions("cc01", mode, **terms), router)) == CloseReason.INVALID


def test_too_many_sessions() -> None:
    router = sessions("aa01", max_sessions=2)
    for zid in ("cc01", "cc02"):
        Pair(sessions(zid, WhatAmI.CLIENT), router).open()
    assert reason(Pair(sessions("cc03", WhatAmI.CLIENT), router)) == CloseReason.INVALID


def test_too_many_handshakes() -> None:
    router = sessions("aa01", max_pending=2)
    first = router.accept(LinkFacts(), 0.0)
    assert first is not None
    assert router.accept(LinkFacts(), 0.0) is not None
    assert router.accept(LinkFacts(), 0.0) is None
    assert router.refused == 1
    first.lost(0.0)
    both = Pair(sessions("cc01", WhatAmI.CLIENT), router).open()
    assert both.b.opened
    assert router.accept(LinkFacts(), 0.0) is not None


@pytest.mark.parametrize(
    "text",
    [
        "010812" + "01cc",
        "010912" + "0000",
        "010913" + "01cc",
        "810912" + "01cc" + "1b",
        "420a05" + "00",
        "25057d0001610100",
        "ff",
        "410912" + "01cc" + "0a0300",
    ],
    ids=["version", "zero", "mode", "mandatory", "open first", "frame", "garbage", "batch"],
)
def test_a_bad_start_is_refused_with_reason_2(text: str) -> None:
    machine = sessions("aa01").accept(LinkFacts(), 0.0)
    assert machine is not None
    closed = only(Closed, machine.receive(framed(bytes.fromhex(text)), 0.0))
    assert (closed.reason, closed.by_peer) == (CloseReason.INVALID, False)
    assert machine.pull(0.0) == framed(encode(Close(reason=2)))
    assert machine.done


def test_not_even_a_header_ends_without_a_word() -> None:
    machine = sessions("aa01").accept(LinkFacts(), 0.0)
    assert machine is not None
    closed = only(Closed, machine.receive(framed(b""), 0.0))
    assert closed.reason is None
    assert machine.done


def test_a_second_init_is_refused() -> None:
    machine = sessions("aa01").accept(LinkFacts(), 0.0)
    assert machine is not None
    syn = framed(encode(InitSyn(version=9, zid=ZenohId(b"\1"), whatami=WhatAmI.PEER)))
    assert machine.receive(syn, 0.0) == []
    closed = only(Closed, machine.receive(syn, 0.0))
    assert closed.reason == CloseReason.INVALID


def test_a_session_that_ended_makes_room() -> None:
    router = sessions("aa01", max_sessions=1)
    for _ in range(3):
        both = Pair(sessions("cc01", WhatAmI.CLIENT), router).open()
        assert len(router) == 1
        both.a.machine.close(both.now)
        both.run()
        assert len(router) == 0
    assert router.get(ZenohId.parse("cc01")) is None


@pytest.mark.parametrize("order", range(6))
def test_two_that_dial_each_other_get_one_session(order: int) -> None:
    """Whatever overtakes what: one link stays, on both sides the same."""
    one, two = sessions("bb01", WhatAmI.PEER), sessions("bb02", WhatAmI.PEER)
    there, back = Pair(one, two), Pair(two, one)
    moves: list[Callable[[], bool]] = [
        lambda: there.move(there.a, there.b),
        lambda: back.move(back.a, back.b),
        lambda: there.move(there.b, there.a),
        lambda: back.move(back.b, back.a),
    ]
    for i in range(40):
        step = (i * (order + 1) + i // (order + 2)) % 4
        moves[step]()
    for _ in range(10):
        for move in moves:
            move()
    assert len(one) == len(two) == 1
    stays = [both for both in (there, back) if not both.a.machine.closed]
    assert len(stays) == 1
    stays[0].send(put(b"x"))
    stays[0].run()
    assert stays[0].b.payloads == [b"x"]
    goes = there if stays[0] is back else back
    assert goes.a.closed is not None
    assert goes.a.closed.reason == CloseReason.MAX_LINKS


# Several links.


def links(count: int, **router: Any) -> tuple[list[Pair], Sessions, Sessions]:
    client = sessions("cc01", WhatAmI.CLIENT, max_links=3)
    node = sessions("aa01", max_links=3, **router)
    facts = [
        LinkFacts(priorities=(Priority.REAL_TIME, Priority.DATA_HIGH)),
        LinkFacts(priorities=(Priority.DATA, Priority.BACKGROUND), only=True),
        LinkFacts(only=False),
    ]
    return [Pair(client, node, facts[i]) for i in range(count)], client, node


def test_links_share_a_session() -> None:
    pairs, client, node = links(3)
    for both in pairs:
        both.open()
    assert len(client) == len(node) == 1
    session = pairs[0].a.machine.session
    assert session is not None
    assert [both.a.machine for both in pairs] == session.links
    for priority, reliable, used in (
        (Priority.REAL_TIME, True, 0),
        (Priority.DATA, True, 1),
        (Priority.DATA, False, 2),
    ):
        before = [both.b.machine.stats.rx_messages for both in pairs]
        assert session.link_for(priority, reliable) is pairs[used].a.machine
        for _ in range(3):
            session.send(put(bytes(70_000), priority), 1000.0, reliable=reliable)
            for both in pairs:
                both.run()
        after = [both.b.machine.stats.rx_messages for both in pairs]
        assert [y - x for x, y in zip(before, after, strict=True)] == [
            3 if i == used else 0 for i in range(3)
        ]
    assert not any(both.b.machine.stats.dropped for both in pairs)


def test_a_session_outlives_a_link_and_lanes_go_on() -> None:
    pairs, client, node = links(2)
    for both in pairs:
        both.open()
    first, second = pairs
    session = first.a.machine.session
    assert session is not None
    qos = QoS.of(Priority.REAL_TIME)
    session.send(put(b"1", Priority.REAL_TIME), 1000.0)
    first.run()
    (lost,) = first.a.machine.lost(1000.0)
    assert lost == Closed(None, True, "the link was lost", False)
    first.b.machine.lost(1000.0)
    session.send(encode(put(b"2", Priority.REAL_TIME)), 1000.0, qos=qos)
    second.run()
    assert first.b.payloads + second.b.payloads == [b"1", b"2"]
    assert second.b.machine.stats.rx_missing == 0
    assert len(client) == len(node) == 1
    (over,) = second.a.machine.lost(1000.0)
    assert isinstance(over, Closed)
    assert over.session_over
    assert len(client) == 0


def test_a_close_of_the_session_ends_all_links() -> None:
    pairs, _, node = links(2)
    for both in pairs:
        both.open()
    (closed,) = pairs[0].b.machine.receive(framed(encode(Close(reason=0, session=True))), 1000.0)
    assert isinstance(closed, Closed)
    assert pairs[1].b.machine.deadline == float("-inf")
    assert [type(event) for event in pairs[1].b.machine.tick(1000.0)] == [Closed]
    assert len(node) == 0


def test_another_process_with_the_same_id_is_refused() -> None:
    pairs, _, node = links(1)
    pairs[0].open()
    stranger = sessions("cc01", WhatAmI.CLIENT, seed=1, max_links=3)
    assert reason(Pair(stranger, node)) == CloseReason.INVALID


def test_more_links_than_there_may_be() -> None:
    client = sessions("cc01", WhatAmI.CLIENT, max_links=5)
    node = sessions("aa01", max_links=2)
    Pair(client, node).open()
    Pair(client, node).open()
    assert reason(Pair(client, node)) == CloseReason.MAX_LINKS


def test_closing_a_session() -> None:
    pairs, client, _ = links(2)
    for both in pairs:
        both.open()
    session = next(iter(client))
    session.close(1000.0)
    for both in pairs:
        both.run()
        assert both.b.closed is not None
    assert len(client) == 0


# Settings that make no sense.


@pytest.mark.parametrize(
    "wrong",
    [
        {"qos": True, "lowlatency": True},
        {"batch_size": 10},
        {"batch_size": 70_000},
        {"lease": 0},
        {"keep_alive": 0},
        {"queue_batches": (1, 2)},
        {"queue_batches": (0,) * 8},
    ],
)
def test_settings_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(EncodeError):
        Settings(zid=ZenohId(b"\1"), **wrong)


def test_a_short_cookie_key_is_refused() -> None:
    with pytest.raises(EncodeError):
        Sessions(Settings(zid=ZenohId(b"\1")), b"short", bytes)
