"""Values of one stream in a run, alone and with other messages."""

from __future__ import annotations

import pytest

from tests.unit.transport.pair import payload, put
from tests.unit.transport.test_outbox import DATA, LOW, batches, fill, outbox
from zenwire.transport.outbox import Outbox
from zenwire.transport.runs import Run
from zenwire.wire import encode
from zenwire.wire.network import Push

VALUE = b"1234"
WHOLE = encode(put(VALUE))
BEFORE = WHOLE[: -len(VALUE)]


def add(box: Outbox, *values: bytes, before: bytes = BEFORE) -> Run:
    lane = box.lane(DATA, True)
    if not lane.run.count:
        lane.begin()
    lane.run.add_values(before, values)
    return lane.run


def sent(box: Outbox) -> list[bytes]:
    return [payload(m) for batch in batches(box) for m in batch if isinstance(m, Push)]


def test_what_stands_before_each_value_is_kept_once() -> None:
    box = outbox()
    run = add(box, VALUE, b"5678")
    add(box, b"9012")
    assert run.parts == [b"", VALUE, b"5678", b"9012"]
    assert (run.count, run.size) == (3, 3 * len(WHOLE))
    assert sent(box) == [VALUE, b"5678", b"9012"]
    assert (box._stats.tx_frames, box._stats.tx_messages) == (1, 3)


@pytest.mark.parametrize("message", [b"x", b"more"])
def test_others_add_to_it(message: bytes) -> None:
    box = outbox()
    data = encode(put(message))
    before = data[: -len(message)]
    run = add(box, VALUE)
    assert not box.add(data, put(message).qos.raw, True)
    fill(box, (message, DATA))
    add(box, b"5678")
    # The same bytes of somebody else are not the same.
    add(box, message, before=bytes(bytearray(before)))
    assert (run.before, run.count, run.size) == (b"", 4, 2 * len(WHOLE) + 2 * len(data))
    assert box.add(data, put(message).qos.raw, True)
    assert sent(box) == [VALUE, message, b"5678", message, message]


def test_it_shares_a_batch() -> None:
    box = outbox()
    fill(box, (b"low", LOW))
    add(box, VALUE, b"5678")
    ((_, *first, _, last),) = batches(box)
    assert [payload(m) for m in (*first, last)] == [VALUE, b"5678", b"low"]


def test_one_that_does_not_fit_is_split() -> None:
    box = outbox()
    values = [b"%04d" % n for n in range(30)]
    run = add(box, *values)
    assert run.size > box._room
    assert sent(box) == values
    assert box._stats.tx_messages == 30
    assert box._bytes == [0] * 8
    assert box.empty
