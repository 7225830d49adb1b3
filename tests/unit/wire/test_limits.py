"""Hostile input: declared lengths and counts that nothing has, and what they cost."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from tests import vectors
from tests.strategies import SCOPES
from zenwire.errors import DecodeError, Fault
from zenwire.wire import (
    decode,
    decode_batch,
    decode_linkstate,
    expand_batch,
    limits,
    split_stream,
    walk_low_latency,
)

HUGE = {2**32 - 1: "ffffffff0f", 2**63: "80" * 9, 2**64 - 1: "ff" * 9}

# Every length and count that a message declares: what stands before it.
LENGTHS = {
    "hello locators": ("scouting", "22091001aa"),
    "hello locator": ("scouting", "22091001aa01"),
    "init cookie": ("transport", "210900aa"),
    "open cookie": ("transport", "420a00"),
    "init shm": ("transport", "810902cc42"),
    "init auth": ("transport", "810902cc43"),
    "init auth inner": ("transport", "810902cc430a41"),
    "init multilink": ("transport", "810902cc44"),
    "init multilink modulus": ("transport", "810902cc440a"),
    "init region name": ("transport", "810902cc48"),
    "init unknown": ("transport", "810902cc49"),
    "open password": ("transport", "c20a0000430c420b"),
    "join lanes": ("transport", "a7091110aa0a000051"),
    "transport oam body": ("transport", "4001"),
    "keep alive unknown": ("transport", "8441"),
    "frame unknown": ("transport", "a50741"),
    "fragment unknown": ("transport", "e60741"),
    "push suffix": ("network", "7d00"),
    "push timestamp": ("network", "dd0142"),
    "push timestamp id": ("network", "dd01420c00"),
    "push stack": ("network", "dd0147"),
    "push stack count": ("network", "dd01470b01"),
    "push stack entry": ("network", "dd01470c010101"),
    "push unknown": ("network", "dd014a"),
    "request suffix": ("network", "7c0100"),
    "response responder": ("network", "db010243"),
    "interest suffix": ("network", "79013200"),
    "declare timestamp": ("network", "9e42"),
    "oam body": ("network", "5f01"),
    "keyexpr suffix": ("declare", "200100"),
    "subscriber suffix": ("declare", "620100"),
    "queryable suffix": ("declare", "640100"),
    "token suffix": ("declare", "660100"),
    "undeclared key": ("declare", "83015f"),
    "put timestamp id": ("data", "2100"),
    "put schema": ("data", "4101"),
    "put source": ("data", "8141"),
    "put attachment": ("data", "8143"),
    "put unknown": ("data", "814a"),
    "put payload": ("data", "01"),
    "del attachment": ("data", "8242"),
    "query parameters": ("data", "43"),
    "query body": ("data", "8343"),
    "query schema": ("data", "83430b01"),
    "err payload": ("data", "05"),
    "link states": ("linkstate", ""),
    "links": ("linkstate", "01000000"),
    "link state id": ("linkstate", "01010000"),
    "link state locators": ("linkstate", "01040000"),
    "link state locator": ("linkstate", "0104000001"),
}


def reader(scope: str) -> Callable[[bytes], Any]:
    return decode_linkstate if scope == "linkstate" else lambda raw: decode(raw, scope)


@pytest.mark.parametrize("value", HUGE)
@pytest.mark.parametrize("name", LENGTHS)
def test_a_huge_length_is_a_fault_and_costs_nothing(name: str, value: int) -> None:
    scope, before = LENGTHS[name]
    raw = bytes.fromhex(before + HUGE[value]) + bytes(64)
    read = reader(scope)
    with pytest.raises(DecodeError) as first:  # whatever is made once is made now
        read(raw)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            read(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64_000
    assert caught.value.fault in {Fault.LIMIT, Fault.TRUNCATED, Fault.OVERFLOW}
    where = (first.value.fault, first.value.offset)
    assert where == (caught.value.fault, caught.value.offset)
    assert len(before) // 2 <= caught.value.offset <= len(before) // 2 + 9


def test_a_payload_costs_what_it_is() -> None:
    raw = b"\x01\xff\xff\x03" + bytes(65_535)
    decode(raw, "data")
    tracemalloc.start()
    try:
        decode(raw, "data")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(raw)


def test_memory_does_not_grow_with_bad_input() -> None:
    raws = [(v.scope, v.message, v.raw) for v in vectors.bad()]

    def feed() -> None:
        for scope, message, raw in raws:
            with pytest.raises(DecodeError):
                vectors.read(scope, message, raw)

    feed()
    tracemalloc.start()
    try:
        feed()
        before, _ = tracemalloc.get_traced_memory()
        for _ in range(5):
            feed()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 64_000


def test_a_stream_that_announces_much_waits_without_memory() -> None:
    assert list(split_stream(b"\xff\xff")) == []
    with pytest.raises(DecodeError):
        list(split_stream(b"\xff\xff\xff\xff", 4))


def test_a_bomb_stops_at_its_limit() -> None:
    bomb = bytes.fromhex("011f040100") + b"\xff" * 60_000 + bytes(2)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            expand_batch(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.fault is Fault.COMPRESSION
    assert peak < 400_000


@pytest.mark.parametrize("scope", SCOPES)
def test_nothing_is_truncated(scope: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(b"", scope)
    assert (caught.value.fault, caught.value.offset) == (Fault.TRUNCATED, 0)


def test_an_empty_batch_is_no_fault() -> None:
    assert decode_batch(b"") == []
    assert list(walk_low_latency(b"")) == []


def test_every_limit_is_named() -> None:
    names = {name for name in vars(limits) if name.endswith("_MAX")}
    assert names == set(limits.__all__)
    assert all(0 < getattr(limits, name) < 2**32 for name in names)


def test_limits_of_the_protocol() -> None:
    assert limits.ZID_MAX == 16
    assert limits.LOCATOR_MAX == limits.SCHEMA_MAX == limits.TIMESTAMP_STACK_MAX == 255
    assert limits.KEY_SUFFIX_MAX == limits.COOKIE_MAX == 65_535
    assert limits.REGION_NAME_MAX == 32
    assert limits.PAYLOAD_MAX == limits.EXTENSION_BODY_MAX == 2**32 - 1
