"""Values of Python and their bytes; compared with what eclipse-zenoh writes and reads."""

from __future__ import annotations

import math
from typing import Any

import pytest
import zenoh
import zenoh.ext
from hypothesis import given
from hypothesis import strategies as st

from zenwire.aio import ext
from zenwire.api.ext import z_deserialize, z_serialize
from zenwire.api.values import ZBytes
from zenwire.errors import DecodeError, EncodeError, Fault, ZError
from zenwire.wire.serialized import EMPTY_ITEMS_MAX

SIZED = ["Int8", "Int16", "Int32", "Int64", "Int128", "UInt8", "UInt16", "UInt32", "UInt64",
         "UInt128"]  # fmt: skip
BITS = {name: int(name.removeprefix("U")[3:]) for name in SIZED}


def limits(name: str) -> tuple[int, int]:
    bits = BITS[name]
    return (0, 2**bits - 1) if name[0] == "U" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


Pair = tuple[Any, Any]
"""Of ours and of theirs: types, or values of them."""


def both(name: str, value: Any) -> Pair:
    return getattr(ext, name)(value), getattr(zenoh.ext, name)(value)


def _numbers(name: str) -> st.SearchStrategy[Pair]:
    least, most = limits(name)
    return st.integers(least, most).map(lambda i: both(name, i))


def _same(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Pair]:
    return values.map(lambda v: (v, v))


FLOATS = st.floats(allow_nan=False)
SCALARS: list[tuple[Pair, st.SearchStrategy[Pair]]] = [
    *[((getattr(ext, n), getattr(zenoh.ext, n)), _numbers(n)) for n in SIZED],
    (
        (ext.Float32, zenoh.ext.Float32),
        st.floats(allow_nan=False, width=32).map(lambda f: both("Float32", f)),
    ),
    ((ext.Float64, zenoh.ext.Float64), FLOATS.map(lambda f: both("Float64", f))),
    ((int, int), _same(st.integers(-(2**31), 2**31 - 1))),
    ((float, float), _same(FLOATS)),
    ((bool, bool), _same(st.booleans())),
    ((str, str), _same(st.text())),
    ((bytes, bytes), _same(st.binary())),
    ((bytearray, bytearray), _same(st.binary().map(bytearray))),
    ((ZBytes, zenoh.ZBytes), st.binary().map(lambda b: (ZBytes(b), zenoh.ZBytes(b)))),
]
HASHABLE = [s for s in SCALARS if s[0][0] not in (bytearray, ZBytes)]

Typed = tuple[Pair, st.SearchStrategy[Pair]]


def _apart(pairs: Any, make: Any) -> Pair:
    return make(pair[0] for pair in pairs), make(pair[1] for pair in pairs)


def _list(item: Typed) -> Typed:
    (ours, theirs), values = item
    return (list[ours], list[theirs]), st.lists(values, max_size=5).map(  # type: ignore[valid-type]
        lambda pairs: _apart(pairs, list)
    )


def _set(kind: Any) -> Any:
    def build(item: Typed) -> Typed:
        (ours, theirs), values = item
        # One item: the order of several is not that of the other set.
        return (kind[ours], kind[theirs]), st.lists(values, max_size=1).map(
            lambda pairs: _apart(pairs, kind)
        )

    return build


def _dict(key_and_value: tuple[Typed, Typed]) -> Typed:
    ((ours, theirs), keys), ((ours_v, theirs_v), values) = key_and_value

    def made(pairs: list[tuple[Pair, Pair]]) -> Pair:
        return {k[0]: v[0] for k, v in pairs}, {k[1]: v[1] for k, v in pairs}

    return (dict[ours, ours_v], dict[theirs, theirs_v]), st.lists(  # type: ignore[valid-type]
        st.tuples(keys, values), max_size=5
    ).map(made)


def _tuple(items: list[Typed]) -> Typed:
    kinds = [kind for kind, _ in items]
    ours, theirs = tuple(kind[0] for kind in kinds), tuple(kind[1] for kind in kinds)
    return (tuple[ours], tuple[theirs]), st.tuples(*[v for _, v in items]).map(  # type: ignore[valid-type]
        lambda pairs: _apart(pairs, tuple)
    )


TYPED: st.SearchStrategy[Typed] = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(_list),
        st.sampled_from(HASHABLE).map(_set(set)),
        st.sampled_from(HASHABLE).map(_set(frozenset)),
        st.tuples(st.sampled_from(HASHABLE), inner).map(_dict),
        st.lists(inner, min_size=1, max_size=3).map(_tuple),
    ),
    max_leaves=5,
)


def plain(value: Any) -> Any:
    """Without the types of either."""
    match value:
        case list() | tuple():
            return type(value)(plain(v) for v in value)
        case set() | frozenset():
            return {plain(v) for v in value}
        case dict():
            return {plain(k): plain(v) for k, v in value.items()}
        case bool():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case ZBytes() | zenoh.ZBytes():
            return value.to_bytes()
    return value


@pytest.mark.interop
@given(st.data())
def test_bytes_and_values_are_those_of_the_reference(data: st.DataObject) -> None:
    (ours, theirs), values = data.draw(TYPED)
    mine, their = data.draw(values)
    written = z_serialize(mine)
    assert written == zenoh.ext.z_serialize(their).to_bytes()
    found = z_deserialize(ours, written)
    assert plain(found) == plain(zenoh.ext.z_deserialize(theirs, zenoh.ZBytes(written.to_bytes())))
    assert z_serialize(found) == written


@pytest.mark.interop
@given(TYPED, st.binary(max_size=40))
def test_bytes_are_refused_where_the_reference_does(typed: Typed, data: bytes) -> None:
    (ours, theirs), _ = typed
    # It allocates what large counts declare, and ends the process if that is too much.
    data = bytes(byte & 0x3F for byte in data)
    try:
        found = z_deserialize(ours, data)
    except ext.ZDeserializeError as e:
        if e.fault is Fault.TRAILING:
            # Of several implementations, only that of Python lets them pass.
            zenoh.ext.z_deserialize(theirs, zenoh.ZBytes(data))
            return
        with pytest.raises(zenoh.ext.ZDeserializeError):
            zenoh.ext.z_deserialize(theirs, zenoh.ZBytes(data))
        return
    again = zenoh.ext.z_deserialize(theirs, zenoh.ZBytes(data))
    assert repr(plain(found)) == repr(plain(again)) or plain(found) == plain(again)


@pytest.mark.parametrize("name", SIZED)
def test_sized_integers_are_bounded(name: str) -> None:
    kind = getattr(ext, name)
    for value in limits(name):
        assert z_deserialize(kind, z_serialize(kind(value))) == value
        assert type(z_deserialize(kind, z_serialize(kind(value)))) is kind
        assert len(z_serialize(kind(value))) == BITS[name] // 8
    least, most = limits(name)
    for value in (least - 1, most + 1):
        with pytest.raises(EncodeError, match=name):
            kind(value)


@pytest.mark.interop
@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, 1e300, -1e300, 3.40282356779733e38, -0.0, 1e-46]
)
def test_floats_that_32_bits_have_no_room_for(value: float) -> None:
    ours, theirs = both("Float32", value)
    assert z_serialize(ours) == zenoh.ext.z_serialize(theirs).to_bytes()


def test_values_that_cannot_be_written() -> None:
    for value in (None, object(), 1j, [None], {"a": None}, (None,), type("I", (int,), {})(1)):
        with pytest.raises(TypeError, match="cannot be serialized"):
            z_serialize(value)
    for mixed in ([1, "a"], [ext.Int8(1), 1], {"a": 1, "b": "c"}, {1: 1, "a": 1}):
        with pytest.raises(ValueError, match="same type"):
            z_serialize(mixed)
    for large in (2**31, [2**31], "\ud800"):
        with pytest.raises(EncodeError):
            z_serialize(large)


def test_types_that_cannot_be_read() -> None:
    for bare in (list, dict, set, frozenset, tuple):
        with pytest.raises(ValueError, match="specialized"):
            z_deserialize(bare, b"")
    for other in (object, None, tuple[int, ...], list[None], type("I", (int,), {})):
        with pytest.raises(TypeError, match="not supported"):
            z_deserialize(other, b"")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ZBytes"):
        z_deserialize(int, "text")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "data", "fault", "offset"),
    [
        (int, "000000", Fault.TRUNCATED, 0),
        (int, "0000000000", Fault.TRAILING, 4),
        (ext.UInt128, "00" * 15, Fault.TRUNCATED, 0),
        (bool, "", Fault.TRUNCATED, 0),
        (bool, "02", Fault.INVALID, 0),
        (str, "0361ff62", Fault.UTF8, 2),
        (bytes, "", Fault.TRUNCATED, 0),
        (bytes, "80", Fault.TRUNCATED, 0),
        (bytes, "ff" * 8 + "7f", Fault.TRUNCATED, 0),
        (bytes, "80" * 9 + "02", Fault.OVERFLOW, 0),
        (bytes, "80" * 20, Fault.OVERFLOW, 0),
        (list[bytes], "ff" * 8 + "7f", Fault.TRUNCATED, 0),
        (list[ext.Int64], "02" + "00" * 15, Fault.TRUNCATED, 0),
        (dict[ext.Int8, ext.Int8], "020102", Fault.TRUNCATED, 0),
        (list[tuple[()]], "ff" * 8 + "7f", Fault.LIMIT, 0),
        (tuple[bool, bool], "0103", Fault.INVALID, 1),
    ],
)
def test_hostile_bytes_allocate_nothing(kind: Any, data: str, fault: Fault, offset: int) -> None:
    with pytest.raises(ext.ZDeserializeError) as caught:
        z_deserialize(kind, bytes.fromhex(data))
    assert (caught.value.fault, caught.value.offset) == (fault, offset)
    assert isinstance(caught.value, DecodeError)
    assert isinstance(caught.value, ZError)


def test_empty_items_are_bounded_by_their_number() -> None:
    assert z_deserialize(list[tuple[()]], z_serialize([()] * EMPTY_ITEMS_MAX)) == (
        [()] * EMPTY_ITEMS_MAX
    )
    with pytest.raises(ext.ZDeserializeError):
        z_deserialize(list[tuple[()]], z_serialize([()] * (EMPTY_ITEMS_MAX + 1)))


def test_counts_may_be_longer_than_they_need() -> None:
    assert z_deserialize(bytes, b"\x83\x00abc") == b"abc"
    assert z_deserialize(bytes, b"\x83" + b"\x80" * 8 + b"\x00abc") == b"abc"


def test_of_one_key_the_last_holds() -> None:
    assert z_deserialize(dict[str, ext.UInt8], b"\x02\x01a\x01\x01a\x02") == {"a": 2}


def test_what_is_read_from() -> None:
    for data in (b"\x01a", bytearray(b"\x01a"), memoryview(b"\x01a"), ZBytes(b"\x01a")):
        assert z_deserialize(str, data) == "a"
