from __future__ import annotations

from typing import Any

import pytest

from tests.unit.transport.pair import payload, put
from zenwire.transport.outbox import Outbox
from zenwire.transport.packed import Packed
from zenwire.transport.runs import Run
from zenwire.transport.sequence import Counters
from zenwire.transport.stats import Cause, Stats
from zenwire.wire import decode_batch, encode
from zenwire.wire.network import Push
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import CongestionControl, Priority, QoS, Resolution

DATA, LOW, HIGH = Priority.DATA, Priority.BACKGROUND, Priority.REAL_TIME
DROP = CongestionControl.DROP


def outbox(room: int = 100, **how: Any) -> Outbox:
    given: dict[str, Any] = {"qos": True, "marked": True, "queue_batches": (2,) * 8} | how
    return Outbox(Counters(Resolution(), 5), Stats(), room=room, **given)


def fill(box: Outbox, *sent: tuple[bytes, Priority], reliable: bool = True, **how: Any) -> None:
    for content, priority in sent:
        express = how.get("express", False)
        data = encode(put(content, priority, express=express))
        box.put(data, priority, reliable, express, how.get("droppable", False))


def batches(box: Outbox) -> list[list[Any]]:
    found = []
    while content := box.pull(0.0):
        assert len(content) <= box._room
        found.append(decode_batch(content))
    assert box.empty
    return found


def test_messages_share_a_frame() -> None:
    box = outbox()
    fill(box, (b"1", DATA), (b"2", DATA), (b"3", DATA))
    ((frame, *messages),) = batches(box)
    assert frame == Frame(reliable=True, sn=5)
    assert [m.body.payload for m in messages] == [b"1", b"2", b"3"]
    assert (box._stats.tx_frames, box._stats.tx_messages) == (1, 3)


def test_the_highest_priority_goes_first() -> None:
    box = outbox()
    fill(box, (b"low", LOW), (b"data", DATA), (b"high", HIGH), (b"data 2", DATA))
    (batch,) = batches(box)
    frames = [m for m in batch if isinstance(m, Frame)]
    assert [f.priority for f in frames] == [HIGH, DATA, LOW]
    assert [f.sn for f in frames] == [5, 5, 5]
    payloads = [payload(m) for m in batch if isinstance(m, Push)]
    assert payloads == [b"high", b"data", b"data 2", b"low"]


def test_a_change_of_reliability_opens_a_frame() -> None:
    box = outbox()
    fill(box, (b"1", DATA))
    fill(box, (b"2", DATA), reliable=False)
    fill(box, (b"3", DATA))
    (batch,) = batches(box)
    frames = [(f.reliable, f.sn) for f in batch if isinstance(f, Frame)]
    assert frames == [(True, 5), (False, 5), (True, 6)]


def test_express_ends_the_batch() -> None:
    box = outbox()
    fill(box, (b"1", DATA))
    fill(box, (b"2", DATA), express=True)
    fill(box, (b"3", DATA))
    assert [len(b) for b in batches(box)] == [3, 2]


def test_without_batching_each_message_is_alone() -> None:
    box = outbox(batching=False)
    fill(box, (b"1", DATA), (b"2", DATA), (b"3", LOW))
    assert [len(b) for b in batches(box)] == [2, 2, 2]


def test_a_full_batch_is_full() -> None:
    size = len(encode(put(bytes(20))))
    head = len(encode(Frame(reliable=True, sn=5)))
    box = outbox(room=head + 3 * size)
    fill(box, *[(bytes(20), DATA)] * 7)
    assert [len(b) for b in batches(box)] == [4, 4, 2]


@pytest.mark.parametrize("size", [60, 85, 90, 95, 200, 5000])
@pytest.mark.parametrize("priority", [DATA, LOW])
def test_large_messages_are_cut(size: int, priority: Priority) -> None:
    box = outbox()
    fill(box, (bytes(size), priority))
    found = batches(box)
    whole = encode(put(bytes(size), priority))
    if len(found) == 1:
        assert isinstance(found[0][0], Frame)
        return
    fragments = [f for (f,) in found]
    assert all(isinstance(f, Fragment) for f in fragments)
    assert b"".join(f.payload for f in fragments) == whole
    assert [f.first for f in fragments] == [True] + [False] * (len(fragments) - 1)
    assert [f.more for f in fragments] == [True] * (len(fragments) - 1) + [False]
    assert [f.sn for f in fragments] == list(range(5, 5 + len(fragments)))
    assert {f.priority for f in fragments} == {priority}


def test_other_priorities_pass_between_fragments_but_not_the_same() -> None:
    box = outbox()
    fill(box, (bytes(300), DATA), (b"after", DATA))
    first = decode_batch(box.pull(0.0))
    assert isinstance(first[0], Fragment)
    fill(box, (b"now", HIGH))
    (frame, message, fragment) = decode_batch(box.pull(0.0))
    assert isinstance(frame, Frame)
    assert frame.priority is HIGH
    assert isinstance(message, Push)
    assert isinstance(fragment, Fragment)
    rest = batches(box)
    *fragments, last = [m for batch in rest for m in batch if not isinstance(m, Push)]
    assert all(isinstance(f, Fragment) for f in fragments)
    assert isinstance(last, Frame)


def test_without_qos_all_goes_as_data() -> None:
    box = outbox(qos=False)
    assert {box.lane_priority(p) for p in Priority} == {DATA}


def test_a_queue_is_full_at_its_limit_and_takes_one_message_of_any_size() -> None:
    box = outbox()
    assert not box.full(DATA)
    fill(box, (bytes(1000), DATA))
    assert box.full(DATA)
    assert not box.full(LOW)
    while box.full(DATA):
        assert box.pull(0.0)
    batches(box)
    assert box._bytes == [0] * 8


def test_a_message_with_drop_that_stands_still_is_given_up() -> None:
    box = outbox()
    fill(box, (bytes(1000), DATA), droppable=True)
    fill(box, (b"next", DATA))
    first = decode_batch(box.pull(10.0))[0]
    assert isinstance(first, Fragment)
    assert not box.give_up_stalled(DATA, 9.0)
    assert not box.give_up_stalled(LOW, 11.0)
    assert box.give_up_stalled(DATA, 11.0)
    (marker,), (frame, message) = batches(box)
    assert isinstance(marker, Fragment)
    assert (marker.drop, marker.payload, marker.sn) == (True, b"", 6)
    assert frame == Frame(reliable=True, sn=7)
    assert message.body.payload == b"next"
    assert box._stats.dropped == {Cause.STALLED: 1}
    assert box._bytes == [0] * 8


def test_what_blocks_is_not_given_up() -> None:
    box = outbox()
    fill(box, (bytes(1000), DATA), droppable=False)
    box.pull(10.0)
    assert not box.give_up_stalled(DATA, 11.0)


def test_without_patch_a_number_is_left_out() -> None:
    box = outbox(marked=False)
    fill(box, (bytes(1000), DATA), droppable=True)
    fill(box, (b"next", DATA))
    box.pull(10.0)
    assert box.give_up_stalled(DATA, 11.0)
    ((frame, _),) = batches(box)
    assert frame.sn == 7


class Adds:
    """Counts messages of a run before it adds them."""

    def __init__(self, run: Run, data: bytes, count: int) -> None:
        self.run, self.data, self.left = run, data, count
        run.left -= count * len(data)
        run.count += count
        run.owner = self

    def add(self) -> None:
        self.run.parts.append(self.data)
        self.left -= 1

    def give_back(self, run: Run) -> None:
        assert run is self.run
        run.left += self.left * len(self.data)
        run.count -= self.left
        self.left = 0


def test_what_is_counted_and_not_added_is_taken_back() -> None:
    box = outbox()
    data = encode(put(b"x"))
    fill(box, (b"0", DATA))
    lane = box.lane(DATA, True)
    adds = Adds(lane.run, data, 5)
    adds.add()
    adds.add()
    fill(box, (b"3", DATA))
    assert adds.left == 0
    (batch,) = batches(box)
    assert [payload(m) for m in batch[1:]] == [b"0", b"x", b"x", b"3"]
    assert box._stats.tx_messages == 4
    assert box._bytes == [0] * 8
    other = Adds(lane.run, data, 3)
    assert box.full(DATA) is False
    lane.begin()
    other.add()
    assert len(batches(box)) == 1
    assert (other.left, box._stats.tx_messages) == (0, 5)


def test_a_lane_that_is_full_or_shut_takes_nothing() -> None:
    box = outbox()
    lane = box.lane(DATA, True)
    assert lane.run.left > 0
    fill(box, *[(bytes(60), DATA)] * 3)
    assert box.full(DATA)
    assert box.lane(DATA, True).run.left <= 0 or box.lane(DATA, True).run.count
    assert len(batches(box)) == 3
    assert box.lane(DATA, True).run.left > 0
    box.shut()
    assert box.lane(DATA, True).run.left == 0
    assert box.lane(LOW, False).run.left == 0


def test_packed_messages_are_a_run_of_their_own() -> None:
    box = outbox()
    fill(box, (b"1", DATA))
    some = [encode(put(b"%d" % n)) for n in range(2, 5)]
    box.put_packed(Packed(b"".join(some), 3, QoS()), DATA, True, False, False)
    fill(box, (b"5", DATA))
    found = [m for batch in batches(box) for m in batch if isinstance(m, Push)]
    assert [payload(m) for m in found] == [b"1", b"2", b"3", b"4", b"5"]
    assert box._stats.tx_messages == 5
    assert box._bytes == [0] * 8


def test_one_packed_message_may_be_cut() -> None:
    box = outbox()
    data = encode(put(bytes(500)))
    box.put_packed(Packed(data, 1, QoS()), DATA, True, False, True)
    fragments = [f for (f,) in batches(box)]
    assert b"".join(f.payload for f in fragments) == data


def test_packed_messages_that_do_not_fit_any_more_are_split() -> None:
    box = outbox()
    some = [encode(put(bytes([n]) * 20)) for n in range(9)] + [encode(put(bytes(200)))]
    box.put_packed(Packed(b"".join(some), len(some), QoS()), DATA, True, False, False)
    frames, pieces = [], b""
    for batch in batches(box):
        frames += [m for m in batch if isinstance(m, Push)]
        pieces += b"".join(m.payload for m in batch if isinstance(m, Fragment))
    assert [payload(m) for m in frames] == [bytes([n]) * 20 for n in range(9)]
    assert pieces == some[-1]
    assert box._bytes == [0] * 8


def test_what_is_forgotten_is_counted_by_message() -> None:
    box = outbox()
    fill(box, (b"1", DATA), (b"2", DATA), (bytes(300), LOW))
    box.put_packed(Packed(encode(put(b"3")) * 4, 4, QoS()), HIGH, True, False, False)
    assert box.clear() == 7
    assert box.empty


def test_a_batch_has_its_length_before_it_in_a_stream() -> None:
    for sent in ([(b"1", DATA)], [(b"1", DATA), (b"2", LOW)], [(bytes(300), DATA)]):
        one, two = outbox(), outbox()
        fill(one, *sent)
        fill(two, *sent)
        while content := one.pull(0.0):
            assert two.pull(0.0, 2) == len(content).to_bytes(2, "little") + content
        assert two.empty


@pytest.mark.parametrize("first", [100, 127, 128, 16_300])
def test_batches_fit_whatever_their_numbers(first: int) -> None:
    """A number that grows by a byte while others wait leaves less room."""
    size = len(encode(put(bytes(20))))
    head = len(encode(Frame(reliable=True, sn=first)))
    how: dict[str, Any] = {"qos": True, "marked": True, "queue_batches": (99,) * 8}
    box = Outbox(Counters(Resolution(), first), Stats(), room=head + 3 * size, **how)
    fill(box, *[(bytes([n]) * 20, DATA) for n in range(200)])
    found = batches(box)
    sent = [payload(m) for batch in found for m in batch if isinstance(m, Push)]
    assert sent == [bytes([n]) * 20 for n in range(200)]
    assert [batch[0].sn for batch in found] == [first + n for n in range(len(found))]
    assert box._stats.tx_messages == 200
    assert box._bytes == [0] * 8


@pytest.mark.parametrize("prefix", [0, 2])
@pytest.mark.parametrize("first", [0, 125, (1 << 14) - 3])
def test_a_message_past_the_queues_is_what_it_is_through_them(first: int, prefix: int) -> None:
    past, through = outbox(), outbox()
    for box in (past, through):
        box._counters.next[:] = [first] * len(box._counters.next)
    for n in range(300):
        message = put(bytes([n % 50]), (HIGH, DATA, LOW)[n % 3])
        data, qos, reliable = encode(message), message.qos.raw, bool(n % 2)
        assert through.add(data, qos, reliable)
        expected = through.pull(0.0, prefix)
        batch = past.alone(data, qos, reliable, prefix)
        if not batch:
            # Whatever is new goes the long way once.
            assert n < 6
            assert past.add(data, qos, reliable)
            batch = past.pull(0.0, prefix)
        assert batch == expected
        assert past._counters.next == through._counters.next
        assert past._stats == through._stats
        assert past.empty


def test_a_message_goes_past_the_queues_only_if_it_fits_its_batch() -> None:
    box = outbox()
    qos = put(b"").qos.raw
    box.add(b"1", qos, True)
    box.pull(0.0)
    # Up to the last byte, also when the number of the batch gets longer.
    for sn in (120, 127, 128, (1 << 14) - 1, 1 << 14):
        box._counters.next[:] = [sn - 1] * len(box._counters.next)
        box._renew(box.lane(DATA, True))
        assert box.alone(b"x", qos, True, 0)
        most = box.lane(DATA, True).run.left
        assert not box.alone(bytes(most + 1), qos, True, 0)
        assert len(box.alone(bytes(most), qos, True, 0)) == box._room
    box.shut()
    assert not box.alone(b"x", qos, True, 0)


def test_a_marker_counts_as_something_that_waits() -> None:
    box = outbox()
    fill(box, (bytes(300), DATA), droppable=True)
    box.pull(1.0)
    assert box.give_up_stalled(DATA, 2.0)
    assert not box.empty
    assert box.lone(0) is None
    ((marker,),) = batches(box)
    assert isinstance(marker, Fragment)
    assert marker.drop
