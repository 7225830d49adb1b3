"""Entries and headers come back, and whatever is changed in them ends the index there."""

from __future__ import annotations

import random

import pytest

pytest.importorskip("pyarrow")


from zenwire.spool.index import (
    ENTRY_SIZE,
    HEADER_SIZE,
    PUBLISHED_AT,
    Entry,
    IndexFault,
    entries_of,
    header_of,
    pack_entry,
    pack_header,
    pack_published,
)


def some(count: int) -> list[Entry]:
    found, first, position = [], 100, 600
    for i in range(count):
        found.append(Entry(first, i + 1, position, 64 * (i + 1), -i, i, 9, 1 << 31 | i))
        first, position = found[-1].end, position + found[-1].length
    return found


def test_entries_come_back_up_to_the_first_that_is_changed() -> None:
    entries = some(5)
    data = b"".join(map(pack_entry, entries))
    assert entries_of(data, 100, 600) == entries
    chance = random.Random(1)
    for _ in range(500):
        at = chance.randrange(len(data))
        changed = bytearray(data)
        changed[at] ^= 1 << chance.randrange(8)
        assert entries_of(bytes(changed), 100, 600) == entries[: at // ENTRY_SIZE]
    for cut in range(len(data)):
        assert entries_of(data[:cut], 100, 600) == entries[: cut // ENTRY_SIZE]


def test_entries_that_do_not_follow_are_none() -> None:
    entries = some(5)
    data = b"".join(map(pack_entry, [entries[0], entries[2]]))
    assert entries_of(data, 100, 600) == entries[:1]
    assert entries_of(data, 101, 600) == []
    assert entries_of(data, 100, 601) == []
    assert entries_of(bytes(ENTRY_SIZE), 0, 0) == []
    nothing = pack_entry(Entry(100, 0, 600, 0, 0, 0, 0, 0))
    assert entries_of(nothing, 100, 600) == []


def test_a_header_comes_back() -> None:
    data = pack_header(7, 8)
    assert len(data) == HEADER_SIZE
    assert header_of(data) == (7, 8, 7)
    more = data[:PUBLISHED_AT] + pack_published(19) + data[PUBLISHED_AT + 16 :]
    assert header_of(more) == (7, 8, 19)


def test_a_header_that_is_changed_is_none() -> None:
    data = pack_header(7, 8)
    for at in (*range(28), *range(PUBLISHED_AT, PUBLISHED_AT + 16)):
        changed = bytearray(data)
        changed[at] ^= 0x10
        with pytest.raises(IndexFault):
            header_of(bytes(changed))
    for cut in range(HEADER_SIZE):
        with pytest.raises(IndexFault):
            header_of(data[:cut])
    with pytest.raises(IndexFault):
        header_of(data[:PUBLISHED_AT] + pack_published(6) + bytes(16))
