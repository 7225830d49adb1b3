from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from zenwire.transport.budget import ReassemblyBudget
from zenwire.transport.events import Received
from zenwire.transport.inbox import Inbox, Lanes, read_batch
from zenwire.transport.refused import MalformedError
from zenwire.transport.sequence import LANES
from zenwire.transport.stats import Cause, Stats
from zenwire.wire import encode_batch
from zenwire.wire.data import Put
from zenwire.wire.network import Push, ResponseFinal
from zenwire.wire.transport import Close, Fragment, Frame, InitSyn, KeepAlive, TransportOam
from zenwire.wire.values import Priority, Resolution, WhatAmI, WireExpr, ZenohId

DATA, LOW = Priority.DATA, Priority.DATA_LOW


def inbox(*, patch: int = 1, qos: bool = True, message: int = 100, total: int = 150) -> Inbox:
    lanes = Lanes(Resolution.of(8), [0] * LANES, qos, patch, ReassemblyBudget(total).share(message))
    return Inbox(lanes, Stats())


def fragment(box: Inbox, sn: int, payload: bytes = b"x", **how: Any) -> bytes | None:
    lane = how.pop("priority", DATA), how.pop("reliable", True)
    whole = box.fragment(*lane, sn, payload, **({"more": True} | how))
    return None if whole is None else bytes(whole)


def test_frames_count_by_lane() -> None:
    box = inbox()
    for priority in Priority:
        for reliable in (False, True):
            assert box.frame(priority, reliable, 0)
            assert not box.frame(priority, reliable, 0)
            assert box.frame(priority, reliable, 3)
            assert not box.frame(priority, reliable, 2)
    assert box.stats.dropped == {Cause.DUPLICATE: 16, Cause.LATE: 16}
    assert box.stats.rx_missing == 32
    assert box.stats.rx_frames == 64


def test_a_number_above_the_range_is_malformed() -> None:
    assert inbox().frame(DATA, True, 0)
    with pytest.raises(MalformedError):
        inbox().frame(DATA, True, 128)


def test_a_priority_without_qos_is_malformed() -> None:
    box = inbox(qos=False)
    assert box.frame(DATA, True, 0)
    with pytest.raises(MalformedError):
        box.frame(LOW, True, 0)
    with pytest.raises(MalformedError):
        box.fragment(LOW, True, 0, b"", more=True)


def test_fragments_make_a_message() -> None:
    box = inbox()
    assert fragment(box, 0, b"ab", first=True) is None
    assert fragment(box, 1, b"cd") is None
    assert fragment(box, 2, b"e", more=False) == b"abcde"
    assert fragment(box, 3, b"whole", first=True, more=False) == b"whole"
    assert not box.stats.dropped


def test_lanes_interleave() -> None:
    box = inbox()
    fragment(box, 0, b"a", first=True)
    assert fragment(box, 0, b"b", first=True, reliable=False) is None
    assert box.frame(LOW, True, 0)
    assert fragment(box, 1, b"A", more=False) == b"aA"
    assert fragment(box, 1, b"B", more=False, reliable=False) == b"bB"


def test_numbers_of_fragments_wrap() -> None:
    box = inbox()
    box.lanes.newest[2 * DATA + 1].last = 125
    fragment(box, 126, b"a", first=True)
    fragment(box, 127, b"b")
    assert fragment(box, 0, b"c", more=False) == b"abc"


def test_a_gap_aborts() -> None:
    box = inbox()
    fragment(box, 0, first=True)
    assert fragment(box, 2) is None
    assert fragment(box, 3, more=False) is None
    assert box.stats.dropped == {Cause.FRAGMENT_GAP: 1}
    assert box.stats.rx_missing == 1
    assert fragment(box, 4, b"n", first=True, more=False) == b"n"


def test_one_number_after_the_last_piece_may_be_left_out() -> None:
    box = inbox()
    fragment(box, 0, first=True)
    fragment(box, 1, more=False)
    assert box.frame(DATA, True, 3)
    assert box.stats.rx_missing == 0
    assert box.frame(DATA, True, 5)
    assert box.stats.rx_missing == 1
    fragment(box, 6, first=True, more=False)
    assert box.frame(DATA, True, 9)
    assert box.stats.rx_missing == 2


def test_who_counts_on_after_the_last_piece_leaves_nothing_out() -> None:
    box = inbox()
    for sn in (0, 1):
        fragment(box, sn, first=True, more=False)
    assert box.frame(DATA, True, 3)
    assert box.stats.rx_missing == 1


def test_a_frame_of_the_lane_aborts() -> None:
    box = inbox()
    fragment(box, 0, first=True)
    assert box.frame(DATA, True, 1)
    assert fragment(box, 2, more=False) is None
    assert box.stats.dropped == {Cause.FRAGMENT_INTERRUPTED: 1, Cause.FRAGMENT_NO_FIRST: 1}


def test_another_first_aborts() -> None:
    box = inbox()
    fragment(box, 0, first=True)
    fragment(box, 1, b"n", first=True)
    assert fragment(box, 2, b"ew", more=False) == b"new"
    assert box.stats.dropped == {Cause.FRAGMENT_INTERRUPTED: 1}


def test_the_sender_gives_up() -> None:
    box = inbox()
    fragment(box, 0, first=True)
    assert fragment(box, 1, b"", drop=True) is None
    assert fragment(box, 2, b"n", first=True, more=False) == b"n"
    assert box.stats.dropped == {Cause.FRAGMENT_GIVEN_UP: 1}
    assert box.lanes.reassembly[0]._share.budget.left == 150


def test_a_message_that_does_not_start_is_counted_once() -> None:
    box = inbox()
    for sn in range(5):
        assert fragment(box, sn, more=sn < 4) is None
    assert box.stats.dropped == {Cause.FRAGMENT_NO_FIRST: 1}


def test_without_patch_any_fragment_starts_but_not_the_rest_of_another() -> None:
    box = inbox(patch=0)
    fragment(box, 0, b"a")
    assert fragment(box, 1, b"b", more=False) == b"ab"
    fragment(box, 2)
    fragment(box, 4)
    assert fragment(box, 5, more=False) is None
    fragment(box, 6, b"c")
    assert fragment(box, 7, b"d", more=False) == b"cd"
    assert box.stats.dropped == {Cause.FRAGMENT_GAP: 1}


def test_a_message_may_not_be_too_large() -> None:
    box = inbox(message=10, total=100)
    fragment(box, 0, bytes(10), first=True)
    assert fragment(box, 1, b"x") is None
    assert fragment(box, 2, b"x", more=False) is None
    assert box.stats.dropped == {Cause.FRAGMENT_TOO_LARGE: 1}
    assert fragment(box, 3, bytes(10), first=True, more=False) == bytes(10)
    assert fragment(box, 4, bytes(11), first=True, more=False) is None
    assert box.lanes.reassembly[0]._share.budget.left == 100


def test_all_unfinished_messages_share_a_budget() -> None:
    box = inbox(message=100, total=150)
    fragment(box, 0, bytes(90), first=True)
    fragment(box, 0, bytes(60), first=True, priority=LOW)
    assert fragment(box, 1, b"x", priority=LOW) is None
    # The largest gave way, and the rest of it is discarded.
    assert box.stats.dropped == {Cause.FRAGMENT_EVICTED: 1}
    assert fragment(box, 1, b"x") is None
    assert fragment(box, 2, b"x", more=False) is None
    assert fragment(box, 2, b"y", priority=LOW, more=False) == bytes(60) + b"xy"
    assert fragment(box, 3, bytes(90), first=True, more=False) == bytes(90)
    assert box.stats.dropped == {Cause.FRAGMENT_EVICTED: 1}
    assert box.lanes.reassembly[0]._share.budget.left == 150
    fragment(box, 2, bytes(60), first=True)
    box.lanes.release(box.stats)
    assert box.lanes.reassembly[0]._share.budget.left == 150


# Batches.


def push(payload: bytes) -> Push:
    return Push(key=WireExpr(0, "a"), body=Put(payload=payload))


def frame(sn: int, priority: Priority = DATA) -> Frame:
    return Frame(reliable=True, sn=sn, priority=priority)


def test_a_batch_of_many() -> None:
    syn = InitSyn(version=9, zid=ZenohId(b"\1"), whatami=WhatAmI.PEER)
    batch = [
        KeepAlive(),
        frame(0),
        push(b"1"),
        push(b"2"),
        KeepAlive(),
        frame(0),
        push(b"again"),
        syn,
        TransportOam(id=7),
        frame(0, LOW),
        push(b"3"),
        Close(reason=3),
    ]
    box = inbox()
    found, fault = read_batch(encode_batch(batch) + b"whatever", box)
    assert fault is None
    one, oam, two, close = found
    assert one == Received([push(b"1"), push(b"2")], DATA, True)
    assert two == Received([push(b"3")], LOW, True)
    assert (oam, close) == (TransportOam(id=7), Close(reason=3))
    assert box.stats.dropped == {Cause.DUPLICATE: 1}
    assert (box.stats.rx_messages, box.stats.rx_ignored) == (3, 2)


def test_what_stands_before_a_fault_counts() -> None:
    good = encode_batch([frame(0), push(b"1")])
    for bad in (b"\x3f", b"\x1d", b"\x05\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\x25\x80\x01"):
        found, fault = read_batch(good + bad, inbox())
        assert found == [Received([push(b"1")], DATA, True)]
        assert fault


def test_fragments_that_are_no_message_are_a_fault() -> None:
    whole = Fragment(reliable=True, more=False, sn=0, first=True, payload=b"\x01\x02")
    found, fault = read_batch(encode_batch([whole]), inbox())
    assert (found, fault is not None) == ([], True)


def test_bytes_after_the_message_of_fragments_mean_nothing() -> None:
    payload = encode_batch([push(b"1")]) + b"rest"
    whole = Fragment(reliable=True, more=False, sn=0, first=True, payload=payload)
    assert read_batch(encode_batch([whole]), inbox()) == (
        [Received([push(b"1")], DATA, True)],
        None,
    )


def one_put(sn: int, **frame: Any) -> bytes:
    return encode_batch([Frame(**({"reliable": True, "sn": sn} | frame)), push(b"%d" % sn)])


def few(box: Inbox, *contents: bytes) -> Received | None:
    """What batches that came together amount to, if it is known."""
    data, spans = b"", []
    for content in contents:
        start = len(data) + 2
        data += b"--" + content
        spans.append((start, len(data)))
    found = box.few(data, spans)
    return found and Received(found[0], found[1].priority, found[1].reliable)


def test_a_message_like_the_one_before_is_read_by_what_is_known() -> None:
    box = inbox()
    assert few(box, one_put(0)) is None
    read_batch(one_put(0), box)
    for sn in (1, 2):
        expected = Received([push(b"%d" % sn)], DATA, True)
        assert few(box, one_put(sn)) == expected
    # Among others, too.
    assert read_batch(one_put(3), box) == ([Received([push(b"3")], DATA, True)], None)
    # Again, after a gap, or in another lane: those go the usual way, and are counted there.
    for content in (one_put(3), one_put(6), one_put(4, reliable=False), one_put(4, priority=LOW)):
        assert few(box, content) is None
    assert (box.stats.rx_frames, box.stats.rx_messages, box.stats.rx_missing) == (4, 4, 0)
    lessons = box.known._left
    read_batch(one_put(6), box)
    assert box.stats.rx_missing == 2
    # After a gap, what is known is not learnt again.
    assert box.known._left == lessons


def test_a_few_batches_are_read_together_if_all_are_known() -> None:
    box = inbox()
    assert few(box) is None
    read_batch(one_put(0), box)
    together = few(box, one_put(1), one_put(2))
    assert together == Received([push(b"1"), push(b"2")], DATA, True)
    assert (box.stats.rx_frames, box.stats.rx_messages) == (3, 3)
    # Else nothing is done: not even with those that are.
    other = encode_batch([Frame(reliable=True, sn=4), push(b"4"), KeepAlive()])
    for second in (one_put(5), one_put(4, priority=LOW), other, one_put(4)[:-1], b""):
        assert few(box, one_put(3), second) is None
    assert (box.stats.rx_frames, box.stats.rx_messages) == (3, 3)
    assert few(box, one_put(3), one_put(4)) is not None


def test_what_is_known_ends_where_its_batch_does() -> None:
    end = ResponseFinal(request_id=7)
    box = inbox()
    first = encode_batch([Frame(reliable=True, sn=0), end])
    read_batch(first, box)
    content = encode_batch([Frame(reliable=True, sn=1), replace(end, request_id=8)])
    for cut in range(len(content)):
        assert box.few(content, [(0, cut)]) is None
        assert box.few(content + content, [(0, cut)]) is None
    assert box.few(content + content, [(0, len(content))]) is not None


def test_a_known_message_that_interrupts_fragments_goes_the_usual_way() -> None:
    box = inbox()
    read_batch(one_put(0), box)
    fragment(box, 1, first=True)
    assert few(box, one_put(2)) is None
    read_batch(one_put(2), box)
    assert box.stats.dropped == {Cause.FRAGMENT_INTERRUPTED: 1}


def test_numbers_wrap_around_for_what_is_known_too() -> None:
    box = inbox()
    read_batch(one_put(0), box)
    for sn in range(1, 300):
        assert few(box, one_put(sn % 128)) is not None
    assert box.stats.rx_missing == 0
