from __future__ import annotations

import pytest

from zenwire.errors import DecodeError
from zenwire.transport import LinkFacts
from zenwire.transport.framing import FEW, Framing, Unwrap


def unwrap(stream: bool = True, **agreed: bool) -> Unwrap:
    framing = Framing(LinkFacts(stream=stream), 1000)
    framing.agree(100, **({"compression": False, "lowlatency": False} | agreed))
    return Unwrap(framing)


@pytest.mark.parametrize("compression", [False, True])
@pytest.mark.parametrize("lowlatency", [False, True])
def test_any_chunks(compression: bool, lowlatency: bool) -> None:
    contents = [b"", b"a", bytes(80), bytes(range(90)), b"b"]
    made = unwrap(compression=compression, lowlatency=lowlatency)
    data = b"".join(made.framing.wrap(content) for content in contents)
    for size in range(1, len(data) + 1):
        into = unwrap(compression=compression, lowlatency=lowlatency)
        found = [c for at in range(0, len(data), size) for c in into.feed(data[at : at + size])]
        assert found == contents
        assert not into._kept


def test_the_framing_may_change_between_two_batches() -> None:
    framing = Framing(LinkFacts())
    into = Unwrap(framing)
    found = []
    for content in into.feed(bytes.fromhex("0100 aa 01000000 bb 02000000 cc")):
        found.append(content)
        framing.agree(100, compression=False, lowlatency=True)
    assert found == [b"\xaa", b"\xbb"]
    assert list(into.feed(b"\xdd")) == [b"\xcc\xdd"]


def test_a_length_above_the_limit_is_refused_at_once() -> None:
    assert list(unwrap().feed((98).to_bytes(2, "little"))) == []
    data = (99).to_bytes(2, "little")
    with pytest.raises(DecodeError):
        list(unwrap().feed(data))
    slowly = unwrap()
    assert list(slowly.feed(data[:1])) == []
    with pytest.raises(DecodeError):
        list(slowly.feed(data[1:]))
    with pytest.raises(DecodeError):
        list(unwrap(lowlatency=True).feed((1001).to_bytes(4, "little")))
    with pytest.raises(DecodeError):
        list(unwrap(stream=False).feed(bytes(101)))
    assert list(unwrap(stream=False).feed(bytes(100))) == [bytes(100)]


def test_room_and_limit() -> None:
    assert (unwrap().framing.room, unwrap().framing.limit) == (98, 98)
    framing = unwrap(compression=True).framing
    assert (framing.room, framing.limit) == (97, 98)
    assert len(framing.wrap(bytes(range(97)))) == 100
    assert (unwrap(stream=False).framing.room, unwrap(stream=False).framing.limit) == (100, 100)
    low = unwrap(lowlatency=True).framing
    assert (low.room, low.limit) == (100, 1000)


def test_a_read_of_a_few_whole_batches_is_seen_at_once() -> None:
    into = unwrap()
    wrap = into.framing.wrap
    assert list(into.few(wrap(b"abc"))) == [(2, 5)]
    assert list(into.few(wrap(b""))) == [(2, 2)]
    assert list(into.few(wrap(b"abc") + wrap(b"") + wrap(b"d"))) == [(2, 5), (7, 7), (9, 10)]
    assert len(into.few(FEW * wrap(b"a"))) == FEW
    # Not a whole one, too many, and such as are too long.
    two, long = wrap(b"a") + wrap(b"bc"), b"\x63\0" + bytes(99)
    cut = [two[:end] for end in range(len(two)) if end != len(wrap(b"a"))]
    for data in (*cut, two + b"\0", (FEW + 1) * wrap(b"a"), long, wrap(b"a") + long):
        assert not into.few(data)
    assert list(into.feed(b"\x03\0ab")) == []
    assert not into.few(wrap(b"abc"))
    packed = unwrap(compression=True)
    assert not packed.few(packed.framing.wrap(b"abc"))
    datagrams = unwrap(stream=False)
    assert list(datagrams.few(b"abc")) == [(0, 3)]
    assert not datagrams.few(bytes(101))
