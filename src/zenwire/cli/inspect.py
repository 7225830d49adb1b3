"""``zenwire inspect``: what was said in a capture, or what bytes contain, field by field."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from zenwire.cli.captures import MAGICS, is_capture
from zenwire.cli.diagnostics import tell
from zenwire.cli.escaping import json_text
from zenwire.cli.extras import require
from zenwire.cli.file_types import other_directory, other_file
from zenwire.errors import CaptureError
from zenwire.wire.describe import all_messages
from zenwire.wire.diagram import diagram, title
from zenwire.wire.inspect.dissect import Entry, Form, Section, dissect, trace
from zenwire.wire.inspect.dump import Dump
from zenwire.wire.inspect.guess import guess
from zenwire.wire.plain import to_plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from zenwire.wire.inspect.trace import Span
    from zenwire.wire.plain import PlainValue

SUMMARY = "show who said what in a capture, or what bytes contain, field by field"
EXAMPLES: tuple[str, ...] = (
    "zenwire inspect capture.pcap",
    "zenwire inspect capture.pcap.gz --key 'fleet/**' --kind put,delete --json",
    "zenwire inspect capture.pcapng --kind query,reply,error,loss --limit 20",
    "zenwire inspect captures/ --session 3e80 --follow",
    "zenwire inspect 25 9bd2b00b 7d00 08 64656d6f2f632f32 01 05 706c61696e",
    "zenwire inspect session.zenoh --limit 20",
    "zenwire inspect --as data --json 0105706c61696e",
    "zenwire inspect - < datagram.bin",
    "zenwire inspect --layout PUT",
)
_LIMIT = 1000
_FORMS = [form.value for form in Form]
# Options that mean something for captures alone.
_OF_CAPTURES = ("key", "kind", "session", "follow")


class UsageError(Exception):
    """The arguments do not say what to inspect."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input, and how it is read and shown."""
    parser.add_argument(
        "input",
        nargs="*",
        metavar="CAPTURE|HEX|FILE",
        help="a capture (pcap or pcapng, also compressed; needs zenwire[fast]) or a directory of them; hexadecimal "
        "(spaces, colons, 0x allowed), a file of bytes or of hexadecimal text, or - for standard "
        "input",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=["auto", *_FORMS],
        default="auto",
        metavar="FORM",
        help=f"what the input is: {', '.join(_FORMS)}; or auto, the default, which looks for what "
        "decodes completely and says what it took",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument(
        "--full", action="store_true", help="show every byte; with --json, also defaults"
    )
    parser.add_argument(
        "--limit",
        type=int,
        metavar="N",
        help=f"show N messages, 0 for all (default: {_LIMIT}, the rest is only checked); of a "
        "capture, stop after N lines (default: all)",
    )
    parser.add_argument(
        "--layout", metavar="NAME", help="print the layout of a message, such as PUT"
    )
    captures = parser.add_argument_group("captures")
    captures.add_argument(
        "--key", metavar="KEYEXPR", help="only what is about keys that intersect this"
    )
    captures.add_argument(
        "--kind",
        metavar="KIND,...",
        help="only these: put, delete, query, reply, error, final, declare, undeclare, interest, "
        "init, open, close, loss, not_sent, malformed, ...; all adds frame, fragment and "
        "keepalive",
    )
    captures.add_argument(
        "--session", metavar="ZID", help="only sessions of this ZenohID, or of one that begins so"
    )
    captures.add_argument(
        "--follow", action="store_true", help="go on as the capture grows, until Ctrl-C"
    )


def run(args: argparse.Namespace) -> int:
    """Print it. Exit code 1: something did not decode; 2: there is nothing to inspect."""
    try:
        if args.layout:
            return _layout(args.layout)
        capture = _capture(args.input)
        if capture is not None:
            return _inspect_capture(capture, args)
        data = _read(args.input, any_format=args.form != "auto")
        _refuse_capture_options(args)
        form = _guess(data) if args.form == "auto" else Form(args.form)
    except UsageError as error:
        _say(str(error))
        return 2
    tally = _Tally(_LIMIT if args.limit is None else args.limit)
    dump = Dump(full=args.full, paint=_colour if _in_colour() else None)
    for section in dissect(data, form):
        shown = [entry for entry in section.entries if tally.take(section, entry)]
        if not shown:
            continue
        if args.json:
            lines = _json_lines(section, shown, full=args.full)
        else:
            lines = dump.lines(section, shown)
        for line in lines:
            print(line)
    sys.stdout.flush()
    _say(tally.summary(len(data)))
    return 1 if tally.faults else 0


def _say(text: str) -> None:
    tell("inspect", text)


# --- captures -----------------------------------------------------------------------------------


def _capture(given: list[str]) -> Path | None:
    """The capture or the directory that is meant, if one is. Raises UsageError."""
    if len(given) != 1 or given == ["-"] or not _is_file(given[0]):
        return None
    path = Path(given[0])
    if path.is_dir():
        other = other_directory(path)
        if other is not None:
            raise UsageError(f"{path} is {other}")
        return path
    known = is_capture(path)
    if known is None:
        known = _is_expanded_capture(path)
    return path if known else None


def _is_expanded_capture(path: Path) -> bool:
    """Whether what a compressed file holds is a capture; such are not told from the outside."""
    require("fast")
    from zenwire.capture.rotation import check  # noqa: PLC0415 - slow to load

    try:
        check(str(path))
    except CaptureError:
        return False
    return True


def _inspect_capture(path: Path, args: argparse.Namespace) -> int:
    require("fast")
    from zenwire.cli.inspect_capture import inspect_capture  # noqa: PLC0415 - slow to load

    try:
        return inspect_capture(path, args, colour=_in_colour())
    except ValueError as e:
        raise UsageError(str(e)) from None


def _refuse_capture_options(args: argparse.Namespace) -> None:
    useless = [f"--{name}" for name in _OF_CAPTURES if getattr(args, name)]
    if useless:
        raise UsageError(f"{', '.join(useless)}: for captures, and this is none")


# --- bytes --------------------------------------------------------------------------------------


class _Tally:
    """What there is, and how much of it is shown."""

    def __init__(self, limit: int) -> None:
        self.limit = limit if limit > 0 else sys.maxsize
        self.messages = self.framing = self.faults = self.batches = 0

    def take(self, section: Section, entry: Entry) -> bool:
        """Count an entry, and say whether to show it. Faults have a limit of their own."""
        self.batches = max(self.batches, section.batch)
        self.messages += entry.message is not None
        self.framing += entry.layer == "framing"
        if entry.fault is not None:
            self.faults += 1
            return self.faults <= self.limit
        if entry.layer == "framing":
            return self.messages < self.limit and self.framing <= self.limit
        return self.messages <= self.limit

    def summary(self, size: int) -> str:
        """What was there, in a line."""
        told = [_count(size, "byte"), _count(self.batches, "batch", "batches")]
        told += [_count(self.messages, "message"), _count(self.faults, "fault")]
        hidden = max(self.messages - self.limit, 0)
        more = f"; {hidden:,} not shown (--limit 0 shows all)" if hidden else ""
        return ", ".join(t for t in told if t) + more


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}" if n else ""


def _layout(name: str) -> int:
    wanted = name.upper()
    found = [s for s in all_messages() if wanted in (s.name, s.cls.__name__.upper())]
    if not found:
        names = ", ".join(dict.fromkeys(s.name for s in all_messages()))
        raise UsageError(f"no message is called {name!r}; there are {names}")
    print("\n\n".join(f"{title(s)}, a {s.scope} message\n\n{diagram(s)}" for s in found))
    return 0


def _read(given: list[str], *, any_format: bool) -> bytes:
    """The bytes that the arguments mean; ``any_format`` also of files of other formats."""
    if not given:
        raise UsageError("give bytes in hexadecimal, a file, or - for standard input")
    if given == ["-"]:
        return _content(sys.stdin.buffer.read(), "standard input", any_format=any_format)
    if len(given) == 1 and _is_file(given[0]):
        return _content(Path(given[0]).read_bytes(), given[0], any_format=any_format)
    data = _from_hex(" ".join(given))
    if data is None:
        raise UsageError(f"{' '.join(given)!r} is neither a file nor hexadecimal")
    if not data:
        raise UsageError("no bytes were given")
    return data


def _is_file(name: str) -> bool:
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):  # a long run of digits is no file name
        return False


def _content(content: bytes, source: str, *, any_format: bool) -> bytes:
    """A file's bytes, or those that its text says."""
    if content[:4] in MAGICS:
        raise UsageError(
            f"{source} is a capture: write it to a file, and inspect that (--follow as it grows)"
        )
    if not content:
        raise UsageError(f"{source} is empty")
    other = None if any_format else other_file(content[:64])
    if other is not None:
        raise UsageError(f"{source} is {other}")
    try:
        data = _from_hex(content.decode("ascii"))
    except UnicodeDecodeError:
        return content
    if not data:
        return content
    _say(f"{source} is read as hexadecimal text")
    return data


_HEX = re.compile(r"(0[xX])?([0-9a-fA-F]+)")


def _from_hex(text: str) -> bytes | None:
    """Hexadecimal with spaces, colons, commas and 0x between bytes; None if it is something else.

    Raises UsageError for half a byte.
    """
    digits = []
    for token in re.split(r"[\s:,]+", text):
        found = _HEX.fullmatch(token)
        if found is not None:
            digits.append(found[2].zfill(2) if found[1] else found[2])
        elif token:
            return None
    joined = "".join(digits)
    if len(joined) % 2:
        raise UsageError(f"{len(joined)} hexadecimal digits: the last byte is half")
    return bytes.fromhex(joined)


def _guess(data: bytes) -> Form:
    found = guess(data)
    fits = " or ".join(f"--as {form}" for form in found.others)
    also = f"; {fits} would fit" if fits else ""
    _say(f"taken for {found.form.description}: {found.why}{also}")
    return found.form


def _json_lines(section: Section, shown: Iterable[Entry], *, full: bool) -> Iterator[str]:
    """A line per message and per fault; framing without a fault is not told."""
    where: dict[str, PlainValue] = {"batch": section.batch} if section.batch else {}
    if section.derived:
        where["derived"] = section.derived
    for entry in shown:
        if entry.message is not None:
            told = where | {"offset": entry.start, "end": entry.end, "layer": entry.layer}
            told["fields"] = to_plain(entry.message, full=full)
            if entry.linkstate is not None:
                told["linkstate"] = to_plain(entry.linkstate, full=full)
            told["spans"] = _spans(trace(section, entry))
            yield json_text(told, ascii_only=True)
        if entry.fault is not None:
            fault = entry.fault
            told = where | {"fault": fault.fault.name, "offset": fault.offset}
            told |= {"message": fault.message, "detail": fault.detail}
            yield json_text(told, ascii_only=True)


def _spans(span: Span) -> PlainValue:
    """Where the fields are: [start, end] by name, and by number in sequences."""
    found: dict[str, PlainValue] = {}

    def add(span: Span, path: str) -> None:
        for child in span.children:
            name = f"{path}{child.name or 'unknown'}" if child.name[:1] == "[" else ""
            name = name or f"{path}{'.' if path else ''}{child.name or 'unknown'}"
            if child.children:
                add(child, name)
            else:
                found[name] = [child.start, child.end]

    add(span, "")
    return found


_COLOURS = {"offset": "2", "message": "1;36", "note": "2", "fault": "1;31"}


def _in_colour() -> bool:
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout.isatty()


def _colour(role: str, text: str) -> str:
    code = _COLOURS.get(role)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text
