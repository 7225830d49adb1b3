"""What holds for ours alone; tests/interop/test_values.py compares with the reference."""

from __future__ import annotations

import array
import pickle
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zenwire.api import values
from zenwire.api.values import (
    NTP64,
    Encoding,
    EntityGlobalId,
    Hello,
    Link,
    Parameters,
    Priority,
    Reply,
    ReplyError,
    Sample,
    SampleKind,
    Selector,
    SourceInfo,
    Timestamp,
    TimestampId,
    TimestampStack,
    WhatAmI,
    WhatAmIMatcher,
    ZBytes,
    ZenohId,
)
from zenwire.errors import EncodeError, KeyExprError
from zenwire.wire import structs
from zenwire.wire import values as wire
from zenwire.wire.data import Del, Err, Put

ZID = ZenohId(b"\x02\xbb")


def test_a_view_is_kept_and_what_can_change_is_copied() -> None:
    buffer = b"0123456789"
    payload = ZBytes(memoryview(buffer)[2:5])
    assert payload.view().obj is buffer
    assert (payload.to_bytes(), len(payload), payload.to_string()) == (b"234", 3, "234")
    assert ZBytes(buffer).to_bytes() is buffer
    for changing in (bytearray(b"abc"), memoryview(bytearray(b"abc")), array.array("b", b"abc")):
        copied = ZBytes(changing)  # type: ignore[arg-type]
        changing[0] = 0
        assert copied == b"abc"
    assert ZBytes(memoryview(b"abcd")[::2]) == b"ac"
    assert len(ZBytes(array.array("i", [1, 2]))) == 8  # type: ignore[arg-type]
    assert repr(ZBytes(b"a" * 100)) == f"ZBytes({b'a' * 64!r}, 100 bytes)"
    assert ZBytes("\N{SNOWMAN}") != "\ud800"


def test_a_sample_is_made_of_its_message() -> None:
    body = Put(payload=b"x", encoding=Encoding("text/plain").wire, attachment=b"")
    sample = Sample("a/b", body, wire.QoS.of(wire.Priority.DATA_LOW, express=True))
    assert (str(sample.key_expr), sample.kind) == ("a/b", SampleKind.PUT)
    assert sample.key_expr is sample.key_expr
    assert sample.payload.to_bytes() == b"x"
    assert sample.attachment is not None
    assert not sample.attachment
    assert (sample.priority, sample.express) == (Priority.DATA_LOW, True)
    assert [sample.timestamp, sample.source_info, sample.timestamp_stack] == [None] * 3
    assert "'a/b'" in repr(sample)
    gone = Sample("a", Del(), wire.QoS(0))
    assert (gone.kind, str(gone.encoding)) == (SampleKind.DELETE, "zenoh/bytes")
    assert not gone.payload
    assert gone.priority is Priority.MAX
    with pytest.raises(KeyExprError):
        _ = Sample("a//b", Del()).key_expr


def test_a_reply_is_one_of_two() -> None:
    sample, error = Sample("a", Del()), ReplyError(Err(payload=b"no"))
    good, bad = Reply(sample), Reply(error, EntityGlobalId(ZID, 1))
    assert (good.ok, good.err, good.result) == (sample, None, sample)
    assert (bad.ok, bad.err, bad.result) == (None, error, error)
    assert (str(error.payload), str(error.encoding)) == ("no", "zenoh/bytes")
    assert "replier_id=EntityGlobalId { zid: bb02, eid: 1 }" in repr(bad)


def test_source_info_goes_to_the_wire_and_back() -> None:
    info = SourceInfo(EntityGlobalId(ZID, 3), 7)
    assert SourceInfo.from_wire(info.wire) == info
    assert len({info, SourceInfo.from_wire(info.wire)}) == 1


def test_a_stack_of_times() -> None:
    stamp = Timestamp(NTP64(5, 0), b"\x01")
    raw = b"\x80\x80\x80\x80\x50\x01\x01"
    stack = TimestampStack(
        structs.TimestampStack(
            record=5,
            entries=(
                structs.StackEntry(point=1, stamp=raw),
                structs.StackEntry(point=0x84, stamp=b"mine"),
                structs.StackEntry(point=1, stamp=b"\xff"),
                structs.StackEntry(point=8, stamp=b""),
            ),
        )
    )
    assert stack.instrumentation.is_instrumented(values.InterceptionPoint.RECEIVE)
    first, second, broken, unknown = stack.records
    assert (first.point, first.is_custom) == (values.InterceptionPoint.SEND, False)
    assert first.timestamp() == stamp
    assert (second.point, second.is_custom) == (values.InterceptionPoint.RECEIVE, True)
    assert (second.timestamp(), broken.timestamp()) == (b"mine", b"\xff")
    with pytest.raises(EncodeError):
        _ = unknown.point


@pytest.mark.parametrize(
    "value",
    [
        *(ZID, TimestampId(b"\x01"), NTP64(1, 2), Timestamp(NTP64(1, 2), b"\x01")),
        *(Encoding("text/plain;x"), Encoding("own"), ZBytes(memoryview(b"abc"))),
        *(Priority.DATA, WhatAmI.PEER, Parameters("a=1"), Selector("a?b")),
        *(WhatAmIMatcher("peer"), Hello(WhatAmI.PEER, ZID, ["tcp/a:1"]), Link(ZID, "a", "b")),
    ],
)
def test_values_cross_processes(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_arguments_stand_for_values() -> None:
    assert Encoding.of(None) == "zenoh/bytes"
    assert Encoding.of(Encoding.TEXT_CSV) is Encoding.TEXT_CSV
    assert ZBytes.of("x") == b"x"
    assert Selector.of("a?b").parameters == "b"
    assert WhatAmIMatcher.of("peer").wire is wire.WhatAmIMatcher.PEER
    assert WhatAmIMatcher.of(WhatAmI.PEER) | "router" == WhatAmIMatcher("router|peer")
    assert values.key_expr_of("a") == "a"
    selector = Selector("a")
    selector.key_expr, selector.parameters = "b", {"x": "1"}
    assert str(selector) == "b?x=1"
    selector.parameters.insert("y", "2")
    assert str(selector) == "b?x=1"


@given(st.integers(0, 2**64 - 1))
def test_a_time_keeps_its_number(time: int) -> None:
    ntp = NTP64.from_int(time)
    assert int(ntp) == time
    assert ntp.as_nanos() == ntp.as_secs() * 10**9 + ntp.subsec_nanos()


@given(st.integers(0, 2**32 - 1), st.integers(0, 10**9 - 1))
def test_nanoseconds_come_back(seconds: int, nanos: int) -> None:
    ntp = NTP64(seconds, nanos)
    assert ntp.as_nanos() == seconds * 10**9 + nanos
    assert NTP64.parse_rfc3339(ntp.to_string_rfc3339_lossy()) == ntp


def test_bad_times_are_refused() -> None:
    for seconds, nanos in ((2**32, 0), (2**32 - 1, 10**9)):
        with pytest.raises(EncodeError):
            NTP64(seconds, nanos)
    with pytest.raises(EncodeError):
        NTP64.from_int(2**64)
    with pytest.raises(EncodeError):
        Timestamp(datetime(1960, 1, 1, tzinfo=UTC), b"\x01")


@given(st.text(), st.text(), st.text())
def test_parameters_take_any_text(text: str, key: str, value: str) -> None:
    parameters = Parameters(text)
    list(parameters)
    if key and not set(key + value) & set(";=|"):
        parameters.insert(key, value)
        assert parameters[key] == value
        parameters.remove(key)
        assert key not in parameters
