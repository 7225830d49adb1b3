"""The same bytes to a machine that makes objects of all messages, and to one that scans them."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("numba")
pytest.importorskip("pyarrow")

from tests import recorded
from tests.unit.plane.talk import Talk, stream_of
from tests.unit.transport.pair import pair
from zenwire.columns.receive import Receiving
from zenwire.transport import Closed, Event, Received, ReceivedRun, Unicast
from zenwire.transport.sequence import lane
from zenwire.wire.batch import decode_batch, encode_batch
from zenwire.wire.data import Del
from zenwire.wire.network import Push
from zenwire.wire.transport import Fragment, Frame
from zenwire.wire.values import Mapping, Resolution, WireExpr

RECEIVING = Receiving()


class Side:
    """A machine, and all that it said, message by message."""

    def __init__(self, machine: Unicast) -> None:
        self.machine = machine
        self.said: list[Any] = []
        self.runs = 0
        self._kept = b""

    def objects(self, data: bytes) -> None:
        self._heard(self.machine.receive(data, 0.0))

    def rows(self, data: bytes) -> None:
        """As a link does: what is not done with comes again."""
        room = memoryview(bytearray(self._kept + data))
        self.machine.bursts = RECEIVING
        events, done = self.machine.receive_many(room, 0.0, len(data))
        self._heard(events)
        self._kept = bytes(room[done:])
        # Its place is used again.
        room[:] = bytes(len(room))

    def _heard(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, ReceivedRun):
                self.runs += 1
                self.said += [(one, event.run.reliable) for one in event.run.messages()]
            elif isinstance(event, Received):
                self.said += [(one, event.reliable) for one in event.messages]
            elif isinstance(event, Closed):
                # A length is counted from where the bytes were cut.
                text = re.sub(r"LIMIT at byte \d+ in batch", "LIMIT in batch", event.text)
                self.said.append((event.reason, event.by_peer, text, event.session_over))
            else:
                self.said.append(event)

    @property
    def counted(self) -> dict[str, Any]:
        return asdict(self.machine.stats)


def sides(**settings: Any) -> tuple[Side, Side, int, int]:
    """Two machines in the same state, what their first number is, and the greatest."""
    made = [pair(settings, settings) for _ in range(2)]
    session = made[0].b.machine.session
    assert session is not None
    first = session.lanes.newest[0].last + 1 & session.lanes.mask
    one, other = (Side(each.b.machine) for each in made)
    return one, other, first, session.lanes.mask


def agree(objects: Side, rows: Side, pieces: list[bytes], others: list[bytes]) -> None:
    for piece in pieces:
        objects.objects(piece)
    for piece in others:
        rows.rows(piece)
    assert rows.said == objects.said
    assert rows.counted == objects.counted
    assert rows.machine.state is objects.machine.state


@pytest.mark.parametrize("seed", range(40))
def test_the_same_events_and_counters(seed: int) -> None:
    objects, rows, first, mask = sides()
    talk = Talk(seed, first, mask)
    stream = stream_of(talk.batches(60) + talk.ends())
    agree(objects, rows, talk.split(stream, 500), talk.split(stream, 20_000))
    assert rows.runs
    assert len(objects.said) > 300


@pytest.mark.parametrize("seed", range(5))
def test_numbers_that_begin_again(seed: int) -> None:
    """Eight bits of sequence numbers: they wrap many times, and half of them are late."""
    objects, rows, first, mask = sides(resolution=Resolution.of(8, 32))
    assert mask == 127
    talk = Talk(f"wrap {seed}", first, mask)
    stream = stream_of(talk.batches(600, odd=0.05))
    agree(objects, rows, [stream], talk.split(stream, 50_000))
    assert objects.machine.stats.rx_frames > 3 * 128


def test_more_messages_than_there_are_rows_to_begin_with() -> None:
    """The shortest there are: what comes of the first must not be lost when the last is read."""
    objects, rows, first, mask = sides()
    talk = Talk("tiny", first, mask)
    tiny = encode_batch([Push(key=WireExpr(1, "", Mapping.SENDER), body=Del())])
    other = encode_batch([Push(key=WireExpr(2, "", Mapping.SENDER), body=Del())])
    batches = [
        encode_batch([talk.frame()]) + (tiny if at % 2 else other) * 20_000 for at in range(8)
    ]
    stream = stream_of(batches)
    assert sum(map(len, batches)) > 3 * 131_072
    agree(objects, rows, [stream], [stream])
    assert rows.runs == 1


@pytest.mark.parametrize("seed", range(5))
def test_without_priorities(seed: int) -> None:
    objects, rows, first, mask = sides(qos=False)
    talk = Talk(f"no qos {seed}", first, mask)
    stream = stream_of(talk.batches(30))
    agree(objects, rows, [stream], [stream])
    assert any(isinstance(one, tuple) and "without QoS" in str(one) for one in objects.said)


@pytest.mark.parametrize("seed", range(30))
def test_mutilated_bytes(seed: int) -> None:
    objects, rows, first, mask = sides()
    talk = Talk(f"mutilated {seed}", first, mask)
    stream = bytearray(stream_of(talk.batches(40)))
    random = Random(seed)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(len(stream) // 3, len(stream))
        stream[at] = random.randrange(256)
    agree(objects, rows, [bytes(stream)], talk.split(bytes(stream), 8_000))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_pieces_of_any_size(size: int) -> None:
    objects, rows, first, mask = sides()
    talk = Talk("small", first, mask)
    stream = stream_of(talk.batches(12))
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    agree(objects, rows, [stream], pieces)


def test_from_one_way_to_the_other_and_back() -> None:
    """What one has kept of a batch, the other goes on with."""
    objects, rows, first, mask = sides()
    talk = Talk("to and fro", first, mask)
    stream = stream_of(talk.batches(60))
    for at, piece in enumerate(talk.split(stream, 3_000)):
        objects.objects(piece)
        if at % 3:
            rows.rows(piece)
        else:
            kept, rows._kept = rows._kept, b""
            rows.machine.stats.rx_bytes -= len(kept)
            rows.objects(kept + piece)
    assert rows.said == objects.said
    assert rows.counted == objects.counted


@pytest.mark.parametrize("path", recorded.CAPTURES, ids=lambda path: path.stem)
def test_recorded_traffic(path: Path) -> None:
    flows: dict[Any, list[bytes]] = {}
    for batch in recorded.batches(path):
        if not batch.lowlatency and len(batch.data) < 65_000:
            flows.setdefault(batch.flow, []).append(batch.data)
    for batches in flows.values():
        objects, rows, _, _ = sides()
        numbers: dict[int, int] = {}
        for message in (one for content in batches for one in decode_batch(content)):
            if isinstance(message, Frame | Fragment):
                numbers.setdefault(lane(message.priority, message.reliable), message.sn)
        for side in (objects, rows):
            assert side.machine.session is not None
            lanes = side.machine.session.lanes
            for at, sn in numbers.items():
                lanes.newest[at].last = sn - 1 & lanes.mask
        stream = stream_of(batches)
        agree(objects, rows, [stream], Talk(path.stem).split(stream, 100_000))


def test_a_reader_is_asked_only_in_an_open_session_without_compression() -> None:
    for settings in ({"compression": True}, {"lowlatency": True, "qos": False}):
        objects, rows, _, _ = sides(**settings)
        rows.rows(b"\x01\x00")
        objects.objects(b"\x01\x00")
        assert rows.said == objects.said
        assert not rows.runs
