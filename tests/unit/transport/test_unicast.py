from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.unit.transport.pair import DATAGRAM, Pair, only, pair, put, sessions
from zenwire.transport import (
    ACCEPTED,
    Cause,
    Closed,
    Dropped,
    Full,
    LinkFacts,
    Packed,
    Received,
    Then,
    Writable,
)
from zenwire.transport.sequence import LANES
from zenwire.wire import decode_batch, encode, encode_batch
from zenwire.wire.transport import Close, Frame, InitSyn, KeepAlive
from zenwire.wire.values import (
    CloseReason,
    CongestionControl,
    Priority,
    QoS,
    Resolution,
    WhatAmI,
    ZenohId,
)

DROP, FIRST = CongestionControl.DROP, CongestionControl.BLOCK_FIRST


def framed(batch: bytes) -> bytes:
    return len(batch).to_bytes(2, "little") + batch


# Traffic.


def test_whether_what_was_taken_was_all_there_was() -> None:
    both = Pair(sessions("a1"), sessions("b1"))
    a = both.a.machine
    assert a.take(both.now) is not None
    assert a.drained  # an InitSyn is all that a connector has to say
    both = pair()
    a = both.a.machine
    a.send(put(b"x"), both.now)
    a.close(both.now)
    assert a.take(both.now) is not None
    assert not a.drained  # there is the CLOSE
    assert a.take(both.now) is not None
    assert a.take(both.now) is None


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("size", [1, 3_000, 3_000_000])
def test_messages_arrive_in_order_over_the_wrap(bits: int, size: int) -> None:
    both = pair({"resolution": Resolution.of(bits)})
    session = both.a.machine.session
    assert session is not None
    mask = session.counters.mask
    # Both ends are moved to a little before the wrap.
    session.counters.next = [mask - 20] * 16
    other = both.b.machine.session
    assert other is not None
    for at in range(LANES):
        other.lanes.newest[at].last = mask - 21
    count = 5 if size > 100_000 else 300
    for i in range(count):
        both.send(put(bytes([i & 0xFF]) * size))
        both.run()
    assert both.b.payloads == [bytes([i & 0xFF]) * size for i in range(count)]
    assert not both.b.machine.stats.dropped
    assert both.b.machine.stats.rx_missing == 0


def test_priorities_interleave_with_fragments() -> None:
    both = pair({"batch_size": 1000})
    a = both.a.machine
    a.send(put(bytes(100_000), Priority.BACKGROUND), both.now)
    both.b.events += both.b.machine.receive(a.pull(both.now), both.now)
    a.send(put(b"now", Priority.REAL_TIME), both.now)
    both.run()
    assert [len(p) for p in both.b.payloads] == [3, 100_000]


def test_encoded_messages_go_as_they_are() -> None:
    both = pair()
    data = encode(put(b"x", Priority.REAL_TIME))
    both.a.machine.send(data, both.now, qos=put(b"", Priority.REAL_TIME).qos, reliable=False)
    both.run()
    (received,) = both.b.of(Received)
    assert (received.priority, received.reliable) == (Priority.REAL_TIME, False)
    assert both.b.payloads == [b"x"]


def test_a_message_that_nothing_waits_before_is_a_batch_at_once() -> None:
    both = pair()
    a, b = both.a.machine, both.b.machine
    sent: list[bytes] = []
    for n in range(300):
        message = put(b"%d" % n, Priority.DATA if n % 7 else Priority.REAL_TIME)
        sent.append(b"%d" % n)
        batch = a.send_alone(message, both.now)
        if isinstance(batch, bytes):
            both.b.events += b.receive(batch, both.now)
            assert a.pull_lone(both.now) == b""
        else:
            # The first of its priority.
            assert n in {0, 1}
            both.run()
    assert both.b.payloads == sent
    assert b.stats.rx_missing == 0
    assert a.stats.tx_messages == b.stats.rx_messages == 300
    assert (a.stats.tx_bytes, a.stats.tx_batches) == (b.stats.rx_bytes, b.stats.rx_batches)


def test_a_message_goes_to_its_queue_if_it_cannot_go_at_once() -> None:
    both = pair({"batch_size": 1000})
    a = both.a.machine
    a.send(put(b"known"), both.now)
    # Behind what waits; in another lane, for the first time; one that is cut.
    for content, reliable in ((b"1", True), (b"2", False), (bytes(3000), True)):
        assert a.send_alone(put(content), both.now, reliable=reliable) is ACCEPTED
    assert a.pull_lone(both.now) is None
    both.run()
    assert both.b.payloads == [b"known", b"1", b"2", bytes(3000)]
    assert a.pull_lone(both.now) == b""
    assert a.send_alone(put(bytes(3000)), both.now) is ACCEPTED
    both.run()
    assert both.b.payloads[-1] == bytes(3000)
    a.close(both.now)
    assert a.pull_lone(both.now) is None
    assert a.send_alone(put(b"late"), both.now) == Dropped(Cause.NOT_OPEN)


@pytest.mark.parametrize("how", ["compression", "lowlatency"])
def test_what_is_not_plain_goes_through_queues(how: str) -> None:
    both = pair({how: True, "qos": False}, {how: True, "qos": False})
    for n in range(3):
        assert both.a.machine.send_alone(put(b"%d" % n), both.now) is ACCEPTED
        assert both.a.machine.pull_lone(both.now) is None
        both.run()
    assert both.b.payloads == [b"0", b"1", b"2"]


def test_loss_of_datagrams_is_counted() -> None:
    both = Pair(sessions("cc01", WhatAmI.CLIENT), sessions("aa01"), DATAGRAM).open()
    chance = Random(3)
    both.loss = lambda _: chance.random() < 0.2
    for i in range(500):
        both.send(put(b"%d" % i, express=True))
    both.run()
    got = [int(p) for p in both.b.payloads]
    assert got == sorted(set(got))
    assert len(got) + both.b.machine.stats.rx_missing in range(480, 501)
    assert 0 < both.b.machine.stats.rx_missing < 200
    both.loss = lambda _: False
    assert both.b.closed is None


def test_a_lost_fragment_loses_its_message_alone() -> None:
    both = Pair(sessions("cc01", WhatAmI.CLIENT), sessions("aa01"), DATAGRAM).open()
    count = 0

    def third(_: bytes) -> bool:
        nonlocal count
        count += 1
        return count == 3

    both.loss = third
    both.send(put(bytes(500_000)))
    both.send(put(b"next"))
    both.run()
    assert both.b.payloads == [b"next"]
    assert both.b.machine.stats.dropped == {Cause.FRAGMENT_GAP: 1}


def test_low_latency_has_a_limit() -> None:
    low = {"lowlatency": True, "qos": False}
    both = pair(low | {"batch_size": 1000}, low)
    size = 1000 - len(encode(put(b""))) - 1
    assert both.a.machine.send(put(bytes(size)), both.now) is ACCEPTED
    assert both.a.machine.send(put(bytes(size + 1)), both.now) == Dropped(Cause.TOO_LARGE)
    both.run()
    assert both.b.payloads == [bytes(size)]


def test_low_latency_of_the_reference_may_be_longer() -> None:
    low = {"lowlatency": True, "qos": False}
    both = pair(low, low | {"max_message_size": 200_000})
    data = encode(put(bytes(150_000)))
    assert len(both.b.machine.receive(len(data).to_bytes(4, "little") + data, both.now)) == 1
    assert both.b.machine.receive((200_001).to_bytes(4, "little"), both.now)
    assert both.b.machine.closed


def test_a_message_above_the_limit_is_not_sent() -> None:
    both = pair({"max_message_size": 100})
    assert both.a.machine.send(put(bytes(100)), both.now) == Dropped(Cause.TOO_LARGE)


def test_a_message_above_the_limit_does_not_go_past_the_queues_either() -> None:
    both = pair({"max_message_size": 100})
    for n in (10, 90, 90, 200, 90):
        batch = both.a.machine.send_alone(put(bytes(n)), both.now)
        if isinstance(batch, bytes):
            both.b.events += both.b.machine.receive(batch, both.now)
        both.run()
    assert [len(content) for content in both.b.payloads] == [10, 90, 90, 90]
    assert both.a.machine.stats.dropped == {Cause.TOO_LARGE: 1}


def test_nothing_is_sent_before_or_after() -> None:
    machine = sessions("cc01").connect(LinkFacts(), 0.0)
    assert machine.send(put(b""), 0.0) == Dropped(Cause.NOT_OPEN)
    machine.close(0.0)
    assert machine.send(put(b""), 0.0) == Dropped(Cause.NOT_OPEN)
    assert machine.stats.dropped == {Cause.NOT_OPEN: 2}


def test_bytes_are_counted() -> None:
    both = pair()
    both.send(put(bytes(200_000)))
    both.run()
    a, b = both.a.machine.stats, both.b.machine.stats
    assert (a.tx_bytes, a.tx_batches) == (b.rx_bytes, b.rx_batches)
    assert (a.tx_messages, a.tx_fragments) == (b.rx_messages, b.rx_fragments) == (1, 4)


def test_another_reader_may_scan_the_batches() -> None:
    both = pair()
    seen = []

    def reader(content: bytes, inbox: Any) -> Any:
        frame, *messages = decode_batch(content)
        assert isinstance(frame, Frame)
        seen.append((inbox.frame(frame.priority, frame.reliable, frame.sn), len(messages)))
        return [], None

    both.b.machine.reader = reader
    both.send(put(b"1"))
    both.send(put(b"2"))
    both.run()
    assert seen == [(True, 2)]


# Congestion.


def full(both: Pair, congestion: CongestionControl, **how: Any) -> Any:
    """What is said when there is no room."""
    while True:
        result = both.a.machine.send(put(bytes(30_000), congestion=congestion), both.now, **how)
        if result is not ACCEPTED:
            return result


def test_drop_waits_a_little() -> None:
    both = pair()
    result = full(both, DROP)
    assert isinstance(result, Full)
    assert (result.then, result.until) == (Then.DROP, both.now + 0.001)
    again = both.a.machine.send(put(b"", congestion=DROP), both.now + 0.0005, retry=result)
    assert again is result
    late = both.a.machine.send(put(b"", congestion=DROP), both.now + 0.001, retry=result)
    assert late == Dropped(Cause.CONGESTION)
    assert both.a.machine.stats.dropped == {Cause.CONGESTION: 1}
    both.wait(6.0)
    assert both.a.closed is None


def test_best_effort_with_block_waits_and_closes_nothing() -> None:
    both = pair({"wait_before_drop": 0.0, "lease": 60.0}, {"lease": 60.0})
    result = full(both, CongestionControl.BLOCK, reliable=False)
    assert (result.then, result.until) == (Then.DROP, both.now + 5.0)
    soon = both.a.machine.send(put(b""), both.now + 4.9, reliable=False, retry=result)
    assert both.a.machine.tick(both.now + 5.0) == []
    late = both.a.machine.send(put(b""), both.now + 5.0, reliable=False, retry=result)
    assert soon is result
    assert late == Dropped(Cause.CONGESTION)
    assert both.a.machine.stats.dropped == {Cause.CONGESTION: 1}


def test_a_best_effort_message_with_block_that_is_cut_is_not_given_up() -> None:
    both = pair({"batch_size": 1000})
    a = both.a.machine
    a.send(put(bytes(100_000)), both.now, reliable=False)
    both.b.events += both.b.machine.receive(a.pull(both.now), both.now)
    assert isinstance(a.send(put(b"n", congestion=DROP), both.now + 1), Full)
    both.run()
    assert both.b.payloads == [bytes(100_000)]


def test_block_waits_until_writable() -> None:
    both = pair()
    result = full(both, CongestionControl.BLOCK)
    assert result.then is Then.CLOSE
    assert both.a.machine.deadline == both.now + 5.0
    both.a.machine.pull(both.now)
    assert both.a.machine.deadline == float("-inf")
    assert both.a.machine.tick(both.now) == [Writable(Priority.DATA)]
    assert both.a.machine.send(put(b""), both.now, retry=result) is ACCEPTED


def test_who_blocks_for_too_long_closes_the_link() -> None:
    both = pair({"lease": 60.0}, {"lease": 60.0})
    result = full(both, CongestionControl.BLOCK)
    assert result.until == both.a.machine.deadline == both.now + 5.0
    assert both.a.machine.tick(both.now + 4.9) == []
    closed = only(Closed, both.a.machine.tick(both.now + 5.0))
    assert (closed.reason, closed.by_peer) == (CloseReason.UNRESPONSIVE, False)
    assert both.a.machine.pull(both.now) == framed(encode(Close(reason=6)))
    assert both.a.machine.done
    assert both.a.machine.stats.dropped[Cause.LINK_LOST] > 0


def test_block_first_lets_one_wait() -> None:
    both = pair()
    result = full(both, FIRST)
    assert isinstance(result, Full)
    second = both.a.machine.send(put(b"2", congestion=FIRST), both.now)
    assert second == Dropped(Cause.BLOCK_FIRST)
    result = both.a.machine.send(put(b"1", congestion=FIRST), both.now, retry=result)
    assert isinstance(result, Full)
    both.run()
    assert both.a.machine.send(put(b"1", congestion=FIRST), both.now, retry=result) is ACCEPTED
    both.run()
    assert both.b.payloads[-1] == b"1"


def test_priorities_have_queues_of_their_own() -> None:
    both = pair()
    full(both, CongestionControl.BLOCK)
    assert both.a.machine.send(put(b"", Priority.REAL_TIME), both.now) is ACCEPTED


def test_a_stalled_message_with_drop_makes_room() -> None:
    both = pair({"batch_size": 1000})
    a = both.a.machine
    a.send(put(bytes(100_000), congestion=DROP), both.now)
    both.b.events += both.b.machine.receive(a.pull(both.now), both.now)
    assert isinstance(a.send(put(b"n", congestion=DROP), both.now), Full)
    both.now += 0.05
    assert a.send(put(b"n", congestion=DROP), both.now) is ACCEPTED
    both.run()
    assert both.b.payloads == [b"n"]
    assert a.stats.dropped == {Cause.STALLED: 1}
    assert both.b.machine.stats.dropped == {Cause.FRAGMENT_GIVEN_UP: 1}


# Time.


def test_a_silent_pair_stays_open() -> None:
    both = pair({"lease": 3.0}, {"lease": 8.0})
    both.wait(7200.0)
    assert both.a.closed is None
    assert both.b.closed is None
    assert both.a.machine.stats.tx_batches in range(7200 * 4 // 3, 7200 * 4 // 3 + 5)
    assert both.b.machine.stats.tx_batches in range(7200 * 4 // 8, 7200 * 4 // 8 + 5)


def test_keep_alive_goes_when_nothing_else_does() -> None:
    both = pair({"lease": 4.0})
    a = both.a.machine
    assert a.deadline == both.now + 1.0
    a.send(put(b"x"), both.now + 0.9)
    a.pull(both.now + 0.9)
    assert a.tick(both.now + 1.0) == []
    assert a.pull(both.now + 1.0) == b""
    a.tick(both.now + 1.9)
    assert a.pull(both.now + 1.9) == framed(encode(KeepAlive()))


def test_silence_ends_the_link() -> None:
    both = pair({}, {"lease": 4.0})
    both.loss = lambda _: True
    both.wait(3.99)
    assert both.a.closed is None
    both.wait(0.01)
    assert both.a.closed == Closed(CloseReason.EXPIRED, False, "nothing was heard for 4 s")
    assert both.b.closed is None
    both.wait(6.0)
    assert both.b.closed == Closed(CloseReason.EXPIRED, False, "nothing was heard for 10 s")


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
def test_a_handshake_takes_no_longer_than_it_may(steps: int) -> None:
    both = Pair(sessions("cc01", WhatAmI.CLIENT), sessions("aa01"))
    for step in range(steps):
        source, target = (both.a, both.b) if step % 2 == 0 else (both.b, both.a)
        target.machine.receive(source.machine.pull(both.now), both.now)
    both.loss = lambda _: True
    both.wait(9.9)
    assert both.a.closed is None
    both.wait(0.2)
    text = "the handshake took too long"
    assert both.a.closed == Closed(None, False, text)
    silence = Closed(CloseReason.EXPIRED, False, "nothing was heard for 10 s")
    assert both.b.closed == (silence if steps == 3 else Closed(None, False, text))


# The end.


def test_close_sends_what_is_queued_first() -> None:
    both = pair()
    both.a.machine.send(put(bytes(200_000)), both.now)
    both.a.machine.close(both.now, CloseReason.UNSUPPORTED)
    assert both.a.machine.closed
    assert not both.a.machine.done
    both.run()
    assert both.b.payloads == [bytes(200_000)]
    assert both.b.closed == Closed(1, True, "closed by the peer, reason UNSUPPORTED")
    assert both.a.machine.done
    assert both.a.closed is None
    assert both.a.machine.deadline is None


def test_last_words_have_an_end() -> None:
    both = pair()
    both.a.machine.send(put(b"x"), both.now)
    both.a.machine.close(both.now)
    assert both.a.machine.deadline == both.now + 5.0
    both.a.machine.tick(both.now + 5.0)
    assert both.a.machine.done
    assert both.a.machine.stats.dropped == {Cause.LINK_LOST: 1}


def test_a_broken_link_is_told_once() -> None:
    both = pair()
    both.a.machine.send(put(b"x"), both.now)
    assert both.a.machine.lost(both.now) == [Closed(None, True, "the link was lost")]
    assert both.a.machine.lost(both.now) == []
    assert both.a.machine.done
    assert both.a.machine.stats.dropped == {Cause.LINK_LOST: 1}


def test_nothing_comes_in_after_the_end() -> None:
    both = pair()
    frame = encode_batch([Frame(reliable=True, sn=0), put(b"x")])
    events = both.b.machine.receive(framed(encode(Close(reason=0)) + frame) + framed(frame), 0.0)
    assert len(events) == 1
    assert both.b.machine.receive(framed(frame), 0.0) == []


def test_close_with_the_session_flag_and_unknown_reasons() -> None:
    both = pair()
    (closed,) = both.b.machine.receive(framed(encode(Close(reason=99, session=True))), 0.0)
    assert closed == Closed(99, True, "closed by the peer, reason 99")


# What is ignored in an open session.


def test_init_and_empty_batches_are_ignored() -> None:
    both = pair()
    syn = InitSyn(version=9, zid=ZenohId(b"\1"), whatami=WhatAmI.PEER)
    data = framed(b"") + framed(encode(syn)) + framed(encode(KeepAlive()))
    assert both.b.machine.receive(data, both.now) == []
    assert both.b.machine.stats.rx_ignored == 2
    both.send(put(b"x"))
    both.run()
    assert both.b.payloads == [b"x"]


@pytest.mark.parametrize("how", [{}, {"compression": True}, {"qos": False, "lowlatency": True}])
def test_packed_messages_are_what_they_were(how: dict[str, Any]) -> None:
    both = pair(how, how)
    a = both.a.machine
    some = [encode(put(b"%d" % n)) for n in range(50)]
    assert a.packing >= len(b"".join(some))
    assert a.send(Packed(b"".join(some), 50, QoS()), both.now) is ACCEPTED
    both.run()
    assert both.b.payloads == [b"%d" % n for n in range(50)]
    assert a.stats.tx_messages == 50


def test_packed_messages_without_room_are_counted_one_by_one() -> None:
    both = pair()
    a = both.a.machine
    full = Packed(encode(put(b"x")) * 1000, 1000, QoS())
    while (result := a.send(full, both.now)) is ACCEPTED:
        pass
    assert isinstance(result, Full)
    assert a.send(full, both.now + 1.0, retry=result) == Dropped(Cause.CONGESTION)
    assert a.stats.dropped == {Cause.CONGESTION: 1000}
    a.close(both.now)
    a.send(full, both.now)
    assert a.stats.dropped[Cause.NOT_OPEN] == 1000


def test_who_adds_to_a_lane_has_to_stop_at_the_end() -> None:
    both = pair()
    a = both.a.machine
    lane = a.lane(Priority.DATA, True)
    assert lane is not None
    assert lane.run.left > 0
    a.close(both.now)
    assert lane.run.left == 0
    assert a.lane(Priority.DATA, True) is None
    bare = {"qos": False, "lowlatency": True}
    assert pair(bare, bare).a.machine.lane(Priority.DATA, True) is None


# Many messages at once.


def test_receiving_stops_after_as_many_messages_as_wanted() -> None:
    both = pair()
    for n in range(10):
        both.a.machine.send(put(b"%d" % n, express=True), both.now)
    data = b"".join(iter(lambda: both.a.machine.pull(both.now), b""))
    b = both.b.machine
    events = b.receive(data + data[:1], both.now, 3)
    assert len(events) == 3
    assert b.unread
    while b.unread:
        events += b.receive(b"", both.now, 3)
    received = [message for event in events for message in event.messages]
    assert [message.body.payload for message in received] == [b"%d" % n for n in range(10)]
    assert b.stats.rx_bytes >= len(data) + 1
    # What is not read is not the other side's silence.
    b.excuse(both.now + 1.0)
    assert b.deadline is not None
