"""What holds for every message and struct, whatever its definition says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.strategies import encoded, label, message_specs, messages, mutilated, specs
from zenwire.errors import DecodeError, Fault
from zenwire.wire import (
    BATCH_MAX,
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    compress_batch,
    decode,
    decode_batch,
    decode_linkstate,
    encode,
    encode_batch,
    expand_batch,
    frame_stream,
    split_stream,
    walk,
    walk_low_latency,
)
from zenwire.wire.buffer import Buffer, Reader
from zenwire.wire.define import Spec
from zenwire.wire.objects import codec_of
from zenwire.wire.transport import Close, Fragment

few = settings(max_examples=8, derandomize=True)
some = settings(max_examples=30, derandomize=True)
many = settings(max_examples=100, derandomize=True)

every_spec = pytest.mark.parametrize("spec", specs(), ids=label)
every_message = pytest.mark.parametrize("spec", message_specs(), ids=label)


def read(spec: Spec, data: Buffer) -> Any:
    """A message or a struct that fills ``data``."""
    if spec.scope:
        return decode(data, spec.scope)
    r = Reader(data)
    found: object = codec_of(spec.cls).read(r)
    if r.pos != r.end:
        raise DecodeError(Fault.TRAILING, r.pos, spec.name)
    return found


def check(e: DecodeError, data: bytes, fault: Fault | None = None, since: int = 0) -> None:
    """The error says what and where; where it is known, which fault and from where on."""
    assert isinstance(e.fault, Fault)
    assert fault in (None, e.fault)
    assert since <= e.offset
    assert 0 <= e.offset <= len(data)
    assert str(e).startswith(f"{e.fault.name} at byte {e.offset}")


@every_spec
@some
@given(data=st.data())
def test_what_is_written_is_read(spec: Spec, data: st.DataObject) -> None:
    message = data.draw(messages(spec.cls))
    raw = encode(message)
    found = read(spec, raw)
    assert found == message
    assert type(found) is spec.cls
    assert encode(found) == raw


@every_spec
@some
@given(data=st.data())
def test_anything_gives_a_value_or_a_fault(spec: Spec, data: st.DataObject) -> None:
    raw = data.draw(mutilated(encoded(spec.cls)))
    try:
        found = read(spec, raw)
    except DecodeError as e:
        check(e, raw)
        return
    canonical = encode(found)
    assert len(canonical) <= len(raw)
    again = Reader(canonical)
    assert codec_of(type(found)).read(again, again.u8() if spec.scope else 0) == found
    assert again.pos == again.end


@every_message
@few
@given(data=st.data())
def test_a_part_of_a_message_is_truncated(spec: Spec, data: st.DataObject) -> None:
    raw = data.draw(encoded(spec.cls))
    short = range(min(len(raw), 64))
    drawn = data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=4))
    for n in {*short, len(raw) - 1, *drawn}:
        part = raw[:n]
        if spec.cls is Fragment:
            _part_of_fragment(part, raw)
            continue
        with pytest.raises(DecodeError) as caught:
            read(spec, part)
        check(caught.value, part, Fault.TRUNCATED)


def _part_of_fragment(part: bytes, raw: bytes) -> None:
    """Its payload has no length: any part that has its head is a whole FRAGMENT."""
    try:
        found = decode(part, "transport")
    except DecodeError as e:
        check(e, part, Fault.TRUNCATED)
    else:
        assert decode(raw, "transport").payload.startswith(found.payload)


@every_message
@few
@given(data=st.data())
def test_a_tail_is_not_part_of_the_message(spec: Spec, data: st.DataObject) -> None:
    message = data.draw(messages(spec.cls))
    tail = data.draw(st.binary(min_size=1, max_size=4))
    raw = encode(message)
    if isinstance(message, Fragment):
        assert decode(raw + tail, spec.scope).payload == message.payload + tail
        return
    with pytest.raises(DecodeError) as caught:
        decode(raw + tail, spec.scope)
    assert (caught.value.fault, caught.value.offset) == (Fault.TRAILING, len(raw))
    assert caught.value.message == spec.name
    r = Reader(b"\xff" + raw + tail, 1)
    assert codec_of(spec.cls).read(r, r.u8()) == message
    assert r.pos == 1 + len(raw)


@every_message
@few
@given(data=st.data())
def test_every_buffer_type_reads_the_same(spec: Spec, data: st.DataObject) -> None:
    raw = data.draw(encoded(spec.cls))
    expected = decode(raw, spec.scope)
    assert decode(bytearray(raw), spec.scope) == expected
    assert decode(memoryview(raw), spec.scope) == expected


@pytest.mark.parametrize("scope", strategies.SCOPES)
@many
@given(raw=st.binary(max_size=40))
def test_random_bytes_give_a_value_or_a_fault(scope: str, raw: bytes) -> None:
    try:
        found = decode(raw, scope)
    except DecodeError as e:
        check(e, raw)
    else:
        assert decode(encode(found), scope) == found


@many
@given(strategies.batch())
def test_a_batch_is_read_as_written(written: list[Any]) -> None:
    raw = encode_batch(written)
    located = list(walk(raw))
    assert [found.message for found in located] == written == decode_batch(raw)
    ends = [0, *(found.end for found in located)]
    assert [found.start for found in located] == ends[:-1]
    assert ends[-1] == len(raw)
    shifted = list(walk(b"\x1f" * 3 + raw + b"\x05", 3, 3 + len(raw)))
    assert [(f.start - 3, f.end - 3, f.message) for f in shifted] == [
        (f.start, f.end, f.message) for f in located
    ]


@many
@given(st.data())
def test_a_damaged_batch_gives_messages_then_a_fault(data: st.DataObject) -> None:
    raw = data.draw(mutilated(strategies.batch().map(encode_batch)))
    end, last = 0, None
    try:
        for found in walk(raw):
            assert found.start == end < found.end <= len(raw)
            end, last = found.end, found.message
    except DecodeError as e:
        check(e, raw, since=end)
    else:
        assert end == len(raw) or isinstance(last, Close)


@some
@given(strategies.any_of("network"))
def test_low_latency_carries_one_network_message(message: Any) -> None:
    raw = encode(message)
    assert [found.message for found in walk_low_latency(raw)] == [message]
    with pytest.raises(DecodeError) as caught:
        list(walk_low_latency(raw + b"\x04"))
    assert (caught.value.fault, caught.value.offset) == (Fault.TRAILING, len(raw))


@some
@given(st.data())
def test_damaged_low_latency_gives_a_message_or_a_fault(data: st.DataObject) -> None:
    raw = data.draw(mutilated(strategies.any_of("network").map(encode)))
    try:
        assert len(list(walk_low_latency(raw))) == bool(raw)
    except DecodeError as e:
        check(e, raw)


@some
@given(st.data())
def test_link_state_gives_a_list_or_a_fault(data: st.DataObject) -> None:
    spec = next(s for s in specs() if s.name == "LinkStateList")
    raw = data.draw(mutilated(encoded(spec.cls)))
    try:
        found = decode_linkstate(raw)
    except DecodeError as e:
        check(e, raw)
    else:
        assert decode_linkstate(encode(found)) == found


@some
@given(
    contents=st.lists(st.binary(max_size=20), max_size=5),
    prefix=st.sampled_from([STREAM_PREFIX, LOW_LATENCY_PREFIX]),
)
def test_a_stream_is_split_wherever_it_is_cut(contents: list[bytes], prefix: int) -> None:
    stream = b"".join(frame_stream(content, prefix) for content in contents)
    whole = [stream[start:end] for start, end in split_stream(stream, prefix)]
    assert whole == contents
    ends: list[int] = []
    for n in range(len(stream) + 1):
        spans = list(split_stream(stream[:n], prefix))
        ends = [end for _, end in spans]
        assert [stream[start:end] for start, end in spans] == contents[: len(spans)]
        assert ends == sorted(ends)
    assert len(ends) == len(contents)


@some
@given(st.one_of(st.binary(max_size=300), strategies.batch().map(encode_batch)))
def test_what_is_compressed_expands(content: bytes) -> None:
    batch = compress_batch(content)
    assert expand_batch(batch, max(BATCH_MAX, len(content))) == content
    assert len(batch) <= len(content) + 1


@many
@given(st.data())
def test_a_damaged_compressed_batch_gives_bytes_or_a_fault(data: st.DataObject) -> None:
    block = st.binary(max_size=40).map(lambda content: compress_batch(content * 8))
    raw = data.draw(mutilated(block))
    try:
        assert len(expand_batch(raw, 1000)) <= 1000
    except DecodeError as e:
        check(e, raw, Fault.COMPRESSION)
