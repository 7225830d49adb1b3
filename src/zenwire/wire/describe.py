"""The message reference, made from the definitions: bit diagrams and the pages of docs/wire.

``python -m zenwire.wire.describe --write`` writes the pages, ``--check`` compares them.
"""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum, IntFlag
from pathlib import Path
from types import ModuleType
from typing import Any

from zenwire.wire import data, declare, limits, linkstate, network, scouting, transport, values
from zenwire.wire import kinds as k
from zenwire.wire.define import BitsField, Ext, Plain, Spec, Unknown, Word, messages, spec_of
from zenwire.wire.diagram import (
    AnyKind,
    condition,
    diagram,
    flag_name,
    flags_of,
    hex_byte,
    kind_label,
    title,
    word_name,
)
from zenwire.wire.encoding import CUSTOM, ENCODINGS
from zenwire.wire.inspect.dissect import Form, dissect
from zenwire.wire.inspect.dump import Dump
from zenwire.wire.objects import Struct
from zenwire.wire.plain import plain_value
from zenwire.wire.specialise import Z_FLAG

__all__ = ["all_messages", "diagram", "main", "pages"]

SCOPES: dict[str, ModuleType] = {
    "scouting": scouting,
    "transport": transport,
    "network": network,
    "declare": declare,
    "data": data,
}


ROOT = Path(__file__).resolve().parents[3]
VECTORS = ROOT / "tests" / "vectors"
_EXAMPLE_MAX = 120
"""Hexadecimal digits: an example is to be read at a glance."""


def all_messages() -> tuple[Spec, ...]:
    """Every message of every scope."""
    return tuple(spec for scope in SCOPES for spec in messages(scope))


def pages() -> dict[str, str]:
    """The text of every page by file name."""
    made = {"README.md": _index()}
    for scope, module in SCOPES.items():
        made[f"{scope}.md"] = _page(module, messages(scope))
    roots = (spec_of(linkstate.LinkStateList), spec_of(linkstate.LinkState))
    made["linkstate.md"] = _page(linkstate, roots)
    return made


_ENCODINGS = {k.ExtEncoding.UNIT: "Unit", k.ExtEncoding.Z64: "Z64", k.ExtEncoding.ZBUF: "ZBuf"}
_BODIES = ("nothing", "z64", "<u8;z32>")
_NOTE = "<!-- Written by `make docs` from the definitions in src/zenwire/wire. Do not edit. -->"


def _page(module: ModuleType, specs: tuple[Spec, ...]) -> str:
    name = module.__name__.rpartition(".")[2]
    first, _, rest = inspect.cleandoc(module.__doc__ or "").partition("\n\n")
    subject, _, what = " ".join(first.split()).partition(": ")
    parts = [_NOTE, f"# {subject}", what[:1].upper() + what[1:], _prose(rest)]
    if specs[0].scope:
        rows = [(f"`{hex_byte(s.id)}`", _link(title(s)), _first_line(s.cls)) for s in specs]
        parts.append(_table(("id", "message", "what it says"), rows))
    for spec in specs:
        parts += _section(spec, name)
    inner = [s for s in _structs(specs) if s not in specs]
    if inner:
        parts.append("## Structures")
        for spec in inner:
            parts += _section(spec, name, top=False)
    return "\n\n".join(p for p in parts if p) + "\n"


def _link(text: str) -> str:
    anchor = "".join(c for c in text.lower() if c.isalnum() or c in " _").replace(" ", "-")
    return f"[{text}](#{anchor})"


def _prose(text: str) -> str:
    return inspect.cleandoc(text).replace("``", "`")


def _first_line(cls: type) -> str:
    return " ".join(_prose(cls.__doc__ or "").split("\n\n")[0].split())


def _section(spec: Spec, page: str, *, top: bool = True) -> list[str]:
    made = f"Python: `{spec.cls.__module__}.{spec.cls.__name__}`."
    if spec.scope:
        made = f"Id `{hex_byte(spec.id)}` among {page} messages. {made}"
    parts = [
        f"{'##' if top else '###'} {title(spec)}",
        _prose(spec.cls.__doc__ or ""),
        f"```\n{diagram(spec)}\n```",
        made,
    ]
    tables: dict[tuple[str, ...], list[tuple[str, ...]]] = {
        ("flag", "bits", "mask", "meaning"): _flag_table(spec),
        ("field", "kind", "when", "default", "limit"): list(_field_table(spec)),
        ("extension", "id", "encoding", "M", "header", "kind", "default", "limit"): [
            (
                f"`{e.name}`",
                f"0x{e.id:X}",
                _ENCODINGS[e.kind.encoding],
                "yes" if e.mandatory else "no",
                f"`{hex_byte(e.header)}`",
                _code(kind_label(e.kind)),
                _default(e.default),
                _limit(e.kind),
            )
            for e in spec.exts
        ],
    }
    parts += [_table(head, rows) for head, rows in tables.items() if rows]
    if any(isinstance(e, Unknown) for e in spec.elements):
        parts.append("Other optional extensions are kept, and written again after these.")
    elif spec.scope:
        parts.append("Other optional extensions are skipped.")
    return parts + _example(spec)


def _example(spec: Spec) -> list[str]:
    """One of the test vectors, field by field: recorded rather than made, long rather than short."""
    name = spec.cls.__name__ if spec.variant[0] else spec.name
    folder = VECTORS / spec.scope / re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    found = [(path, json.loads(path.read_text("utf-8"))) for path in sorted(folder.glob("*.json"))]
    fit = [(path, v) for path, v in found if "fault" not in v and len(v["hex"]) <= _EXAMPLE_MAX]
    if not spec.scope or not fit:
        return []

    def interest(case: tuple[Path, dict[str, str]]) -> tuple[bool, int]:
        return "captures" in case[1]["source"], len(case[1]["hex"])

    path, vector = max(fit, key=interest)
    form = Form.BATCH if spec.scope == "transport" else Form(spec.scope)
    dump = Dump(full=True)
    lines = [
        line
        for section in dissect(bytes.fromhex(vector["hex"]), form)
        for line in dump.lines(section, section.entries)
    ]
    where = "/".join(path.parts[-3:])
    return [f"Example (`tests/vectors/{where}`):", "```\n" + "\n".join(lines) + "\n```"]


def _flag_table(spec: Spec) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    mask, value = spec.variant
    if mask:
        bit = mask.bit_length() - 1
        rows.append(
            (f"{value >> bit}", str(bit), hex_byte(mask), f"what makes it {spec.cls.__name__}")
        )
    for word in (0, 1):
        for name, bits in flags_of(spec, word).items():
            top = bits.shift + bits.width - 1
            where = str(bits.shift) if bits.width == 1 else f"{top}:{bits.shift}"
            of = f" of `{word_name(spec)}`" if word else ""
            rows.append((name, where + of, hex_byte(bits.mask), _meaning(spec, bits)))
    return sorted(rows, key=lambda r: ("of" in r[1], -int(r[2], 16)))


def _meaning(spec: Spec, bits: k.Bits) -> str:
    """What a bit says, by who refers to it."""
    if spec.scope and bits.word == 0 and bits.mask == Z_FLAG:
        return "extensions follow"
    said = []
    for e in spec.elements:
        when = getattr(e, "when", None)
        if isinstance(e, BitsField) and (e.bits.word, e.bits.mask) == (bits.word, bits.mask):
            said.append(f"`{e.name}`" + ("" if e.type is bool else f" ({e.type.__name__})"))
        elif when is not None and (when.word, when.mask) == (bits.word, bits.mask):
            name = word_name(spec) if isinstance(e, Word) else e.name
            said.append(f"`{name}` is there")
        elif isinstance(e, Plain) and isinstance(e.kind, k.FlaggedKind):
            said += _kind_meaning(e.name, e.kind, bits)
    return "; ".join(said)


def _kind_meaning(name: str, kind: k.FlaggedKind[Any], bits: k.Bits) -> list[str]:
    if kind.word != bits.word or not kind.mask & bits.mask:
        return []
    match kind:
        case k.WireExprKind() if kind.named.mask == bits.mask:
            return [f"`{name}` has a suffix"]
        case k.WireExprKind():
            return [f"the scope of `{name}` is the sender's, else the receiver's"]
        case k.Lease():
            return [f"`{name}` is in seconds, else in milliseconds"]
        case k.OamBody():
            return [f"`{name}`: " + ", ".join(f"{e >> 5} {how}" for e, how in _ENCODINGS.items())]
    return [f"`{name}`: {kind.label}"]


def _field_table(spec: Spec) -> Iterator[tuple[str, ...]]:
    for e in spec.elements:
        if isinstance(e, Plain):
            when = condition(spec, e.when)[3:-2]
            yield (
                f"`{e.name}`",
                _code(kind_label(e.kind)),
                when,
                _default(e.default),
                _limit(e.kind),
            )
        elif isinstance(e, BitsField):
            kind = "bit" if e.type is bool else e.type.__name__
            where = f"bit {e.bits.shift} of `{word_name(spec)}`" if e.bits.word else ""
            where = where or f"{kind} in {flag_name(spec, e.bits)}"
            yield f"`{e.name}`", where, "", _default(e.default), ""


def _code(label: str) -> str:
    return f"`{label}`".replace("|", "\\|")


def _default(value: object) -> str:
    if value is dataclasses.MISSING:
        return "required"
    if value is None or value in ("", ()):
        return "absent" if value is None else "empty"
    if type(value).__str__ is object.__str__:
        value = json.dumps(plain_value(value))
    return f"`{value.name if isinstance(value, IntEnum) else value}`"


def _limit(kind: AnyKind) -> str:
    limit = getattr(kind, "limit", None)
    if limit is None:
        return f"{limits.ZID_MAX} bytes" if isinstance(kind, k.PlainZid) else ""
    return f"{limit:,} {'items' if isinstance(kind, k.Sequence) else 'bytes'}"


def _structs(specs: tuple[Spec, ...]) -> list[Spec]:
    """The structs that these definitions hold, in the order they are met."""
    found: dict[type, Spec] = {}

    def look(kind: object) -> None:
        if isinstance(kind, k.Sequence | k.Repeat):
            look(kind.kind)
        elif isinstance(kind, Struct) and kind.cls not in found:
            found[kind.cls] = spec_of(kind.cls)
            enter(found[kind.cls])

    def enter(spec: Spec) -> None:
        for e in spec.elements:
            if isinstance(e, Plain | Ext):
                look(e.kind)

    for spec in specs:
        enter(spec)
    return list(found.values())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---" for _ in head], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _index() -> str:
    rows = []
    for scope, module in SCOPES.items():
        names = dict.fromkeys(spec.name for spec in messages(scope))
        rows.append((f"[{scope}]({scope}.md)", _subject(module), ", ".join(names)))
    rows.append(("[linkstate](linkstate.md)", _subject(linkstate), "the body of network OAM 1"))
    encodings = [(str(number), name) for number, name in enumerate(ENCODINGS)]
    caps = [(f"`{name}`", f"{getattr(limits, name):,}") for name in sorted(limits.__all__)]
    parts = [
        _NOTE,
        "# The wire, message by message",
        _READING,
        _table(("page", "what", "messages"), rows),
        "## Extensions",
        _EXTENSIONS,
        _table(
            ("encoding", "bits 6:5", "body"),
            [
                (name, f"{e >> 5:02b}", body)
                for (e, name), body in zip(_ENCODINGS.items(), _BODIES, strict=True)
            ],
        ),
        "## Enumerations",
        *_enumerations(),
        "## Other values",
        *_values(),
        "## Encodings",
        _table(("id", "name"), [*encodings, (str(CUSTOM), "any other, whole in the schema")]),
        "## Limits",
        "A declared length or count above its limit is a LIMIT fault.",
        _table(("name", "value"), caps),
    ]
    return "\n\n".join(parts) + "\n"


_READING = """\
Each diagram shows bytes from the top down, and the bits of a byte from 7 to 0. `|` stands at the
sides of bytes, `%` of a variable-length integer, `~` of anything that has no fixed length; `X` is
a bit that is written 0 and not looked at.

`z8` to `z64` are integers of 7 bits per byte, the lowest first; bit 7 says that another byte
follows, and the ninth byte gives all its eight bits. `<u8;z16>` is a length, here of at most 16
bits, and that many bytes; `<utf8;z16>` the same with text. Other integers are little endian."""

_EXTENSIONS = """\
The Z bit of a header announces a chain of extensions, each with a header of its own: Z (another
one follows), how the body is encoded, M (who does not know it must refuse the message), and an id.

```
 7 6 5 4 3 2 1 0
+-+-+-+-+-+-+-+-+
|Z|ENC|M|  id   |
+-+---+-+-------+
~     body      ~   as ENC says
+---------------+
```

An extension is known by its id, its encoding and M together. An unknown one is skipped by its
encoding; with M it is a fault. The order is free. Extensions that have their default are not
written."""


def _subject(module: ModuleType) -> str:
    return " ".join(_prose(module.__doc__ or "").split("\n\n")[0].partition(": ")[2].split())


def _enumerations() -> Iterator[str]:
    for cls in _classes():
        if issubclass(cls, IntEnum | IntFlag):
            members = ", ".join(f"{int(m)} `{m.name}`" for m in cls.__members__.values())
            yield f"**{cls.__name__}.** {_first_line(cls)}\\\n{members}"


def _values() -> Iterator[str]:
    for cls in _classes():
        if not issubclass(cls, IntEnum | IntFlag):
            yield f"**{cls.__name__}.** {_first_line(cls)}"


def _classes() -> list[type]:
    return [getattr(values, name) for name in values.__all__]


def main(argv: Sequence[str] | None = None) -> int:
    """Write or compare the pages. Exit code 1: a page is missing, differs or is left over."""
    parser = argparse.ArgumentParser(prog="python -m zenwire.wire.describe", description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", action="store_true", help="write the pages")
    what.add_argument("--check", action="store_true", help="compare the pages, write nothing")
    here = ROOT / "docs" / "wire"
    parser.add_argument("--into", type=Path, default=here, help="the folder (docs/wire)")
    args = parser.parse_args(argv)
    folder: Path = args.into
    wanted = pages()
    there = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("*.md"))}
    if args.write:
        folder.mkdir(parents=True, exist_ok=True)
        for name in there.keys() - wanted.keys():
            (folder / name).unlink()
        for name, text in wanted.items():
            (folder / name).write_text(text, "utf-8")
        return 0
    wrong = [name for name in sorted(wanted | there) if wanted.get(name) != there.get(name)]
    for name in wrong:
        print(f"{folder / name} differs from the definitions: run `make docs`", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
