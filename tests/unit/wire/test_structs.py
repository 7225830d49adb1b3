from __future__ import annotations

from datetime import UTC, datetime

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire.buffer import Reader
from zenwire.wire.encoding import Encoding
from zenwire.wire.objects import codec_of, encode
from zenwire.wire.structs import QueryBody, StackEntry, Timestamp, TimestampStack
from zenwire.wire.values import ZenohId

AA01 = ZenohId(b"\x01\xaa")


def test_a_time_is_seconds_since_1970_and_a_fraction() -> None:
    raw = bytes.fromhex("c0fee1e3a7bd81fd6a0201aa")
    stamp = codec_of(Timestamp).read(Reader(raw))
    assert stamp == Timestamp(time=0x6AFA_05EA_7C78_7F40, id=AA01)
    assert stamp.time >> 32 == 1_794_770_410
    assert stamp.datetime == datetime(2026, 11, 15, 19, 20, 10, 486213, tzinfo=UTC)
    assert str(stamp) == "7708480216866783040/aa01"
    assert encode(stamp) == raw


@pytest.mark.parametrize(
    ("fraction", "microseconds"), [(0, 0), (1, 0), (1 << 31, 500_000), ((1 << 32) - 1, 999_999)]
)
def test_a_time_is_rounded_down_to_microseconds(fraction: int, microseconds: int) -> None:
    stamp = Timestamp(time=fraction, id=AA01)
    assert stamp.datetime == datetime(1970, 1, 1, 0, 0, 0, microseconds, tzinfo=UTC)


def test_the_last_time_is_a_date() -> None:
    assert Timestamp(time=2**64 - 1, id=AA01).datetime.year == 2106


def test_the_payload_of_a_query_is_what_remains() -> None:
    body = QueryBody(encoding=Encoding(4), payload=b"body")
    assert encode(body) == b"\x08body"
    assert codec_of(QueryBody).read(Reader(b"\x08body")) == body


def test_a_timestamp_stack_records_somewhere() -> None:
    with pytest.raises(EncodeError, match="must not be 0"):
        encode(TimestampStack(record=0, entries=()))
    with pytest.raises(DecodeError) as caught:
        codec_of(TimestampStack).read(Reader(b"\0\0"))
    assert caught.value.fault is Fault.INVALID


def test_a_timestamp_stack_has_255_entries() -> None:
    entry = StackEntry(point=1, stamp=b"")
    full = TimestampStack(record=7, entries=(entry,) * 255)
    assert codec_of(TimestampStack).read(Reader(encode(full))) == full
    with pytest.raises(EncodeError, match="above the limit of 255"):
        encode(TimestampStack(record=7, entries=(entry,) * 256))


def test_a_stamp_is_a_timestamp_or_what_the_application_made() -> None:
    stamp = Timestamp(time=1, id=AA01)
    raw = encode(stamp)
    assert StackEntry(point=1, stamp=raw).timestamp == stamp
    assert StackEntry(point=1, stamp=raw + b"more").timestamp == stamp
    assert StackEntry(point=0x81, stamp=raw).timestamp is None
    assert StackEntry(point=1, stamp=b"hi").timestamp is None
    assert StackEntry(point=1, stamp=b"").timestamp is None
