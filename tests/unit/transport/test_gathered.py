from __future__ import annotations

from itertools import product

from zenwire.transport.gathered import Gathered, Taken, alone, joined


def taken(before: bytes, *parts: bytes) -> Taken:
    return before, list(parts), len(before.join(parts))


def test_a_batch_and_none() -> None:
    assert joined(None) == b""
    assert joined(alone(b"data")) == b"data"
    assert joined(taken(b"-", b"head", b"1", b"2")) == b"head-1-2"


def test_they_come_one_after_the_other_whatever_stands_before_their_parts() -> None:
    one, other = b"<one>", b"<other>"

    def kinds() -> list[Taken]:
        return [
            alone(b"alone"),
            taken(b"", b"some", b"parts"),
            taken(one, b"head", b"1", b"2"),
            taken(one, b"more", b"3"),
            taken(other, b"another", b"4"),
        ]

    for places in product(range(5), repeat=3):
        gathered = Gathered()
        wanted = b""
        for at in places:
            batch = kinds()[at]
            wanted += joined(batch)
            gathered.add(batch)
            assert gathered.size == len(wanted)
        assert gathered.take() == wanted
        assert (gathered.size, gathered.take()) == (0, b"")
