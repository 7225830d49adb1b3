from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import define, objects
from zenwire.wire import kinds as k
from zenwire.wire.data import Put
from zenwire.wire.define import (
    Ext,
    Plain,
    Unknown,
    bits,
    boolean,
    ext,
    field,
    flag,
    message,
    messages,
    spec_of,
    struct,
    unknown_exts,
    word,
)
from zenwire.wire.objects import codec_of, decode, encode
from zenwire.wire.transport import InitAck, InitSyn
from zenwire.wire.values import Priority, UnknownExt


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is defined here is not seen elsewhere."""
    monkeypatch.setattr(define, "_SPECS", dict(define._SPECS))
    monkeypatch.setattr(objects, "_CODECS", dict(objects._CODECS))


def test_a_definition_is_a_frozen_dataclass_of_keywords() -> None:
    put = Put(payload=b"x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        put.payload = b"y"  # type: ignore[misc] # what is tested
    with pytest.raises(TypeError):
        Put(b"x")  # type: ignore[call-arg,arg-type] # what is tested
    with pytest.raises(TypeError):
        Put()  # type: ignore[call-arg] # what is tested
    assert not hasattr(put, "__dict__")
    assert put == Put(payload=b"x")
    assert hash(put) == hash(Put(payload=b"x"))


def test_a_spec_has_its_elements_in_wire_order() -> None:
    spec = spec_of(Put)
    assert (spec.name, spec.scope, spec.id, spec.cls) == ("PUT", "data", 0x01, Put)
    assert [e.name for e in spec.fields] == [
        "timestamp",
        "encoding",
        "source_info",
        "shm",
        "attachment",
        "unknown",
        "payload",
    ]
    kinds = [type(e) for e in spec.elements]
    assert kinds == [Plain, Plain, Ext, Ext, Ext, Unknown, Plain]
    assert [e.header for e in spec.exts] == [0x41, 0x12, 0x43]


def test_variants_share_an_id() -> None:
    syn, ack = spec_of(InitSyn), spec_of(InitAck)
    assert (syn.id, syn.name) == (ack.id, ack.name)
    assert [s.matches(0x41) for s in (syn, ack)] == [True, False]
    assert [s.matches(0x61) for s in (syn, ack)] == [False, True]
    assert {syn, ack} <= set(messages("transport"))


def test_a_new_message_has_a_codec() -> None:
    @message("NEW", scope="new", id=0x02)
    class New:
        """A message with everything."""

        A = flag(5)
        B = flag(6, width=1)
        WORD = word(when=B)

        gate: bool = boolean(B, default=False)
        lane: Priority = bits(WORD.flag(0), Priority, default=Priority.CONTROL)
        number: int = field(k.z16, when=A, default=7, column="n")
        mark: bool = ext(0x1, k.unit, default=False)
        level: int = ext(0x1, k.z64, default=0, mandatory=True, column="")
        unknown: tuple[UnknownExt, ...] = unknown_exts(default=())
        tail: bytes = field(k.rest)

    spec = spec_of(New)
    assert messages("new") == (spec,)
    columns = {e.name: e.column for e in spec.fields if isinstance(e, Plain | Ext)}
    assert columns == {"number": "n", "mark": "mark", "level": "", "tail": "tail"}
    assert encode(New(tail=b"")) == b"\x02"
    new = New(gate=True, lane=Priority.REAL_TIME, number=1, mark=True, level=5, tail=b"t")
    assert encode(new).hex() == "e2" + "01" + "01" + "81" + "3105" + "74"
    assert decode(encode(new), "new") == new
    with pytest.raises(EncodeError, match="without a place"):
        encode(New(lane=Priority.REAL_TIME, tail=b""))
    with pytest.raises(DecodeError) as caught:
        decode(b"\x22", "new")
    assert (caught.value.fault, caught.value.message) == (Fault.TRUNCATED, "NEW")


def test_a_new_struct_has_a_codec() -> None:
    @struct
    class Pair:
        """Two numbers."""

        a: int = field(k.u8)
        b: int = field(k.u8)

    @struct
    class Nothing:
        """No fields at all."""

    assert encode(Pair(a=1, b=2)) == b"\1\2"
    assert encode(Nothing()) == b""
    assert codec_of(Pair) is codec_of(Pair)
    assert (spec_of(Pair).name, spec_of(Pair).scope) == ("Pair", "")


def made(**body: Any) -> type:
    return type("Bad", (), {"__annotations__": dict.fromkeys(body, int), **body})


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (
            {
                "a": ext(1, k.z64, default=0),
                "b": field(k.u8),
                "c": ext(2, k.z64, default=0),
            },
            "one chain",
        ),
        ({"a": ext(1, k.z64, default=0), "b": ext(1, k.z16, default=0)}, "one header"),
        ({"a": ext(1, k.unit, default=None)}, "False when absent"),
        ({"a": field(k.u8, when=flag(5))}, "has a default"),
        ({"A": word(), "B": word()}, "one additional flag word"),
    ],
)
def test_a_bad_definition_does_not_import(body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        message("BAD", scope="bad", id=0x01)(made(**body))
    with pytest.raises(TypeError, match=complaint):
        struct(made(**body))
    assert messages("bad") == ()


def test_two_messages_of_a_scope_have_two_ids() -> None:
    message("ONE", scope="some", id=0x01)(made(a=field(k.u8)))
    message("ONE", scope="other", id=0x01)(made(a=field(k.u8)))
    with pytest.raises(TypeError, match="TWO and ONE have the same id in some"):
        message("TWO", scope="some", id=0x01)(made(a=field(k.u8)))
