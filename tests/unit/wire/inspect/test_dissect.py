"""Whole inputs: what they are taken for, how they are cut, and that no byte is lost."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.recorded import CAPTURES, _streams, batches
from tests.unit.wire.inspect.test_trace import assert_tiles
from zenwire.errors import Fault
from zenwire.wire.batch import compress_batch, encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.inspect.dissect import Entry, Form, Section, dissect, trace
from zenwire.wire.network import Oam, Push
from zenwire.wire.objects import encode
from zenwire.wire.transport import Close, Fragment, Frame, InitSyn, KeepAlive, OpenSyn
from zenwire.wire.values import WhatAmI, WireExpr, ZenohId

CAPTURE = pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
PUSH = Push(key=WireExpr(suffix="k/1"), body=Put(payload=b"x" * 100))
INIT: dict[str, Any] = {"version": 9, "zid": ZenohId(b"\x01"), "whatami": WhatAmI.CLIENT}
OPEN = encode(OpenSyn(lease=10_000, initial_sn=1, cookie=b""))


def entries(sections: Iterable[Section]) -> list[Entry]:
    return [entry for section in sections for entry in section.entries]


def faults(sections: Iterable[Section]) -> list[Fault]:
    return [entry.fault.fault for entry in entries(sections) if entry.fault]


def messages(sections: Iterable[Section]) -> list[object]:
    return [entry.message for entry in entries(sections) if entry.message is not None]


def assert_covered(data: bytes, form: Form) -> list[Section]:
    """Sections that are not derived tile the input, derived ones their own data."""
    sections = list(dissect(data, form))
    reached = 0
    for section in sections:
        at = 0 if section.derived else reached
        for entry in section.entries:
            span = trace(section, entry)
            assert (span.start, span.end) == (entry.start, entry.end)
            assert entry.start == at
            assert_tiles(span)
            at = entry.end
        if section.derived:
            assert at == len(section.data)
        else:
            reached = at
    assert reached == len(data)
    return sections


@CAPTURE
def test_recorded_batches(path: Path) -> None:
    step = 20 if path.stem == "thousands" else 1
    for batch in batches(path)[::step]:
        if batch.lowlatency:
            sections = assert_covered(frame_stream(batch.data, 4), Form.LOWLATENCY)
        else:
            sections = assert_covered(batch.data, Form.BATCH)
        assert not faults(sections)


@CAPTURE
def test_recorded_streams(path: Path) -> None:
    for stream in _streams(path).values():
        if len(stream) < 1_000_000:
            assert not faults(assert_covered(stream, Form.STREAM))
        assert not faults(dissect(stream, Form.STREAM))


@pytest.mark.parametrize("form", Form)
def test_every_form_survives_anything(form: Form) -> None:
    rng = random.Random(form)
    for _ in range(150):
        assert_covered(rng.randbytes(rng.randint(1, 60)), form)
    assert_covered(b"\0", form)
    assert form.description


@pytest.mark.parametrize(
    ("form", "digits", "name"),
    [
        (Form.SCOUTING, "010907", "Scout"),
        (Form.DATA, "0105706c61696e", "Put"),
        (Form.DECLARE, "62010003612f62", "DeclareSubscriber"),
        (Form.LINKSTATE, "0100000000", "LinkStateList"),
    ],
)
def test_single_messages(form: Form, digits: str, name: str) -> None:
    data = bytes.fromhex(digits)
    (found,) = messages(assert_covered(data, form))
    assert type(found).__name__ == name
    (*_, last) = entries(assert_covered(data + b"\0", form))
    assert last.fault is not None
    assert (last.fault.fault, last.fault.offset) == (Fault.TRAILING, len(data))


def test_a_stream_cut_at_every_byte() -> None:
    batch = encode_batch([Frame(sn=1), PUSH])
    stream = frame_stream(encode(KeepAlive())) + frame_stream(batch)
    for n in range(1, len(stream)):
        found = faults(assert_covered(stream[:n], Form.STREAM))
        assert found == ([] if n == 3 else [Fault.TRUNCATED]), n


def test_what_is_there_of_a_cut_batch_is_decoded() -> None:
    stream = frame_stream(encode_batch([Frame(sn=1), PUSH, PUSH]))
    at = len(stream) - len(encode(PUSH))
    sections = assert_covered(stream[:at], Form.STREAM)
    assert messages(sections) == [Frame(sn=1), PUSH]
    *_, last = entries(sections)
    assert last.fault is not None
    assert last.fault.detail == f"{len(encode(PUSH))} bytes are missing"


def test_a_stream_goes_on_after_a_bad_batch() -> None:
    stream = frame_stream(b"\x1e") + frame_stream(encode(KeepAlive()))
    sections = assert_covered(stream, Form.STREAM)
    assert faults(sections) == [Fault.UNKNOWN_ID]
    assert messages(sections) == [KeepAlive()]
    assert [section.batch for section in sections] == [1, 2]


def test_a_batch_has_a_longest() -> None:
    data = encode(KeepAlive()) * 70_000
    *_, last = entries(assert_covered(data, Form.BATCH))
    assert last.fault is not None
    assert (last.fault.fault, last.fault.offset) == (Fault.LIMIT, 65_535)


def test_many_network_messages_come_in_several_sections() -> None:
    sections = list(dissect(encode(PUSH) * 2500, Form.NETWORK))
    assert [len(section.entries) for section in sections] == [1000, 1000, 500]
    assert messages(sections) == [PUSH] * 2500


def test_what_comes_after_a_close_is_not_looked_at() -> None:
    sections = assert_covered(encode(Close(reason=0)) + b"\xff\xff", Form.BATCH)
    assert [entry.name for entry in entries(sections)] == ["", "ignored after CLOSE"]
    stream = frame_stream(encode(Close(reason=0)) + b"\xff", 4)
    assert not faults(assert_covered(stream, Form.LOWLATENCY))


def test_empty_batches() -> None:
    assert [e.name for e in entries(assert_covered(b"\0\0\0\0", Form.STREAM))] == [
        "batch 1",
        "batch 2",
    ]


def test_a_frame_has_no_place_in_low_latency() -> None:
    stream = frame_stream(encode(Frame(sn=1)), 4)
    assert faults(assert_covered(stream, Form.LOWLATENCY)) == [Fault.UNKNOWN_ID]


def pieces(*, first: bool) -> list[bytes]:
    whole = encode(PUSH)
    cuts = [whole[:40], whole[40:80], whole[80:]]
    return [
        encode(Fragment(reliable=True, sn=i, more=i < 2, first=first and i == 0, payload=cut))
        for i, cut in enumerate(cuts)
    ]


@pytest.mark.parametrize("first", [True, False])
def test_fragments_are_put_together(first: bool) -> None:
    stream = b"".join(map(frame_stream, pieces(first=first)))
    *_, whole = assert_covered(stream, Form.STREAM)
    assert whole.derived == "message of 3 fragments"
    assert messages([whole]) == [PUSH]


def test_fragments_without_their_beginning_are_not() -> None:
    stream = b"".join(map(frame_stream, pieces(first=False)[1:]))
    sections = assert_covered(stream, Form.STREAM)
    assert not faults(sections)
    assert not any(section.derived for section in sections)


def test_dropped_fragments_are_forgotten() -> None:
    drop = encode(Fragment(reliable=True, sn=1, drop=True, payload=b""))
    stream = b"".join(map(frame_stream, [pieces(first=True)[0], drop, *pieces(first=True)]))
    sections = assert_covered(stream, Form.STREAM)
    assert [s.derived for s in sections if s.derived] == ["message of 3 fragments"]


def test_lanes_have_their_own_fragments() -> None:
    other = encode(Fragment(reliable=False, sn=9, more=True, first=True, payload=b"\x1d"))
    one, two, three = pieces(first=True)
    stream = b"".join(map(frame_stream, [one, other, two, three]))
    *_, whole = assert_covered(stream, Form.STREAM)
    assert messages([whole]) == [PUSH]


@pytest.mark.parametrize("compression", [True, False])
def test_a_stream_shows_whether_compression_was_agreed(compression: bool) -> None:
    content = encode_batch([Frame(sn=1), PUSH])
    batch = compress_batch(content) if compression else content
    syn = encode(InitSyn(**INIT, compression=True))
    stream = b"".join(map(frame_stream, [syn, OPEN, batch]))
    sections = assert_covered(stream, Form.STREAM)
    assert messages(sections)[-1] == PUSH
    assert sections[-1].derived == ("expanded batch" if compression else "")


@pytest.mark.parametrize("lowlatency", [True, False])
def test_a_stream_shows_whether_low_latency_was_agreed(lowlatency: bool) -> None:
    content = encode(PUSH) if lowlatency else encode_batch([Frame(sn=1), PUSH])
    rest = frame_stream(content, 4 if lowlatency else 2) + frame_stream(encode(Close(reason=0)))
    syn = encode(InitSyn(**INIT, lowlatency=True))
    stream = frame_stream(syn) + frame_stream(OPEN) + rest
    sections = assert_covered(stream, Form.STREAM)
    assert messages(sections)[-2:] == [PUSH, Close(reason=0)]


def test_a_block_that_does_not_expand() -> None:
    sections = assert_covered(frame_stream(b"\x01\xff\xff"), Form.COMPRESSED_STREAM)
    (_, entry) = entries(sections)
    assert entry.fault is not None
    assert (entry.name, entry.fault.fault, entry.fault.offset) == ("LZ4", Fault.COMPRESSION, 3)


def test_link_state_is_decoded_inside_its_oam() -> None:
    body = bytes.fromhex("010300020202bb0200")
    data = encode(Oam(id=1, body=body))
    (entry,) = entries(assert_covered(data, Form.NETWORK))
    assert entry.linkstate is not None
    assert entry.linkstate.entries[0].zid == ZenohId(b"\x02\xbb")
    bad = encode(Oam(id=1, body=body[:-1])) + encode(PUSH)
    one, two = entries(assert_covered(bad, Form.NETWORK))
    assert isinstance(one.message, Oam)
    assert one.fault is not None
    assert (one.fault.fault, one.fault.offset) == (Fault.TRUNCATED, one.end)
    assert two.message == PUSH
    (other,) = entries(assert_covered(encode(Oam(id=2, body=body)), Form.NETWORK))
    assert other.linkstate is None
    assert other.fault is None
