"""Bit diagrams: against the specification's own, and against the definitions."""

from __future__ import annotations

import re

import pytest

from tests.strategies import label, message_specs, specs
from zenwire.wire import structs
from zenwire.wire.data import Put
from zenwire.wire.define import Ext, Plain, Spec, spec_of
from zenwire.wire.diagram import condition, diagram, flag_name, flags_of, kind_label, title
from zenwire.wire.kinds import Nibble
from zenwire.wire.linkstate import LinkState
from zenwire.wire.network import Interest, Push
from zenwire.wire.transport import InitAck, TransportOam

EVERY = pytest.mark.parametrize("spec", specs(), ids=label)
EVERY_MESSAGE = pytest.mark.parametrize("spec", message_specs(), ids=label)


def boxes(text: str) -> list[str]:
    """What stands between the sides, without the rulers and the notes."""
    return [line[:17] for line in text.splitlines()[2:] if line[0] in "|%~"]


def test_push_is_drawn_as_the_specification_draws_it() -> None:
    assert diagram(spec_of(Push)) == (
        " 7 6 5 4 3 2 1 0\n"
        "+-+-+-+-+-+-+-+-+\n"
        "|Z|M|N|  PUSH   |   ID = 0x1D\n"
        "+-+-+-+---------+\n"
        "% key_scope:z16 %\n"
        "+---------------+\n"
        "~  key_suffix   ~   if N==1: <utf8;z16>\n"
        "+---------------+\n"
        "~  [push_exts]  ~   if Z==1: qos, timestamp, node_id, timestamp_stack\n"
        "+---------------+\n"
        "~     body      ~   PUT or DEL\n"
        "+---------------+"
    )


@pytest.mark.parametrize(
    ("cls", "expected"),
    [
        (
            TransportOam,
            ["|Z|ENC|   OAM   |", "%    id:z16     %", "~  [oam_exts]   ~", "~     body      ~"],
        ),
        (
            Put,
            [
                "|Z|E|T|   PUT   |",
                "~   timestamp   ~",
                "%  encoding_id  %",
                "~    schema     ~",
                "~  [put_exts]   ~",
                "~    payload    ~",
            ],
        ),
        (
            Interest,
            [
                "|Z|MOD|INTEREST |",
                "%    id:z32     %",
                "|A|M|N|R|T|Q|S|K|",
                "% key_scope:z16 %",
                "~  key_suffix   ~",
                "~[interest_exts]~",
            ],
        ),
        (
            InitAck,
            [
                "|Z|S|1|  INIT   |",
                "|    version    |",
                "|zid_len|X|X|WAI|",
                "~      zid      ~",
                "|X|X|X|X|RID|FSN|",
                "|  batch_size   |",
                "|               |",
                "~cookie:<u8;z16>~",
                "~  [init_exts]  ~",
            ],
        ),
        (
            structs.SourceInfo,
            ["|zid_len|X|X|X|X|", "~      zid      ~", "%    eid:z32    %", "%    sn:z32     %"],
        ),
    ],
)
def test_boxes(cls: type, expected: list[str]) -> None:
    assert boxes(diagram(spec_of(cls))) == expected


def test_link_state_names_the_bits_of_its_options() -> None:
    drawn = diagram(spec_of(LinkState))
    assert "z64: bit 0 PID, bit 1 WAI, bit 2 LOC, bit 3 WGT, bit 4 GWY" in drawn
    assert "~   locators    ~   if LOC==1: n x <utf8;z8> locator" in drawn


@EVERY
def test_every_line_has_the_width_of_a_byte(spec: Spec) -> None:
    lines = diagram(spec).splitlines()
    assert lines[0] == " 7 6 5 4 3 2 1 0"
    for line, below in zip(lines[2::2], lines[3::2], strict=True):
        assert re.match(r"([|%~]).{15}\1($|   \S)", line), line
        assert re.fullmatch(r"\+[-+ ]{15}\+", below), below
        cuts = [i for i, c in enumerate(line[:17]) if c == "|"] if line[0] == "|" else [0, 16]
        assert [i for i, c in enumerate(below) if c == "+"] == cuts


@EVERY_MESSAGE
def test_the_header_shows_the_flags_of_the_definition(spec: Spec) -> None:
    cells = diagram(spec).splitlines()[2][1:16].split("|")
    bit = 8
    shown = {}
    for cell in cells[:-1]:
        bit -= (len(cell) + 1) // 2
        shown[cell] = bit
    assert bit == 5
    for name, bits in flags_of(spec).items():
        assert shown.pop(name) == bits.shift
    fixed = {name for name in shown if name in "01"}
    assert bool(fixed) == bool(spec.variant[0])
    assert set(shown) - fixed <= {"X"}


@EVERY
def test_every_field_and_extension_is_named(spec: Spec) -> None:
    drawn = diagram(spec)
    for e in spec.elements:
        if isinstance(e, Plain | Ext):
            name = e.name if not isinstance(e.kind, Nibble) else f"= {e.name}"
            assert name in drawn


@EVERY_MESSAGE
def test_every_message_may_have_extensions(spec: Spec) -> None:
    assert re.search(r"~ *\[\w+\] *~   if Z==1", diagram(spec))


def test_flags_of_a_word() -> None:
    options = flags_of(spec_of(Interest), word=1)
    assert {n: b.shift for n, b in options.items()} == {
        "aggregate": 7,
        "M": 6,
        "N": 5,
        "R": 4,
        "tokens": 3,
        "queryables": 2,
        "subscribers": 1,
        "keyexprs": 0,
    }


def test_conditions() -> None:
    spec = spec_of(Interest)
    assert condition(spec) == ""
    assert condition(spec, Interest.R, Interest.N) == "if R==1 && N==1: "
    assert condition(spec, Interest.MOD) == "if MOD!=0: "
    assert flag_name(spec, Interest.MOD) == "MOD"


def test_titles_and_labels() -> None:
    assert title(spec_of(Push)) == "PUSH"
    assert title(spec_of(InitAck)) == "INIT (InitAck)"
    push = {e.name: e for e in spec_of(Push).elements if isinstance(e, Plain | Ext)}
    assert kind_label(push["body"].kind) == "PUT or DEL"
    assert kind_label(push["timestamp_stack"].kind) == "TimestampStack"
