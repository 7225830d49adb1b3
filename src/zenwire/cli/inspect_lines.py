"""Entries of a conversation as lines for people, and as JSON."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.escaping import escape
from zenwire.wire.data import Err, Reply
from zenwire.wire.declare import DeclareFinal
from zenwire.wire.define import spec_of
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Declare, Interest, Oam, Push, Request, Response
from zenwire.wire.plain import to_plain
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.transport import Close, Fragment, Frame, InitAck, InitSyn, Join, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason

if TYPE_CHECKING:
    from zenwire.capture.conversation import Entry, Loss
    from zenwire.wire.encoding import Encoding

__all__ = ["Lines", "as_json", "preview"]

_PREVIEW: Final = 48
_NAME: Final = 8
"""Digits of a ZenohID that are shown: enough to tell nodes apart."""
_WIDEST: Final = 44
_COLOURS: Final = {
    "time": "2",
    "put": "32",
    "delete": "33",
    "query": "36",
    "reply": "36",
    "error": "31",
    "loss": "1;35",
    "malformed": "1;31",
    "key": "1",
    "fault": "31",
    "note": "2",
}


class Lines:
    """Aligned as far as what came before tells: columns grow, up to a bound."""

    def __init__(self, *, colour: bool = False) -> None:
        self._colour = colour
        self._day = ""
        self._widths = {"from": _NAME, "to": _NAME, "kind": 9, "key": 12, "size": 7}

    def of(self, entry: Entry) -> Iterator[str]:
        """A line, and one before it where a day begins."""
        at = datetime.fromtimestamp(entry.time // 10**9, UTC)
        day = at.strftime("%Y-%m-%d")
        if day != self._day:
            self._day = day
            yield self._paint("note", f"{day} UTC")
        body = body_of(entry.message)
        payload = getattr(body, "payload", None)
        size = f"{len(payload):,} B" if payload is not None else ""
        who = self._pad("from", _name(entry, entry.side))
        whom = self._pad("to", _name(entry, 1 - entry.side))
        key = escape("?" if entry.key is None and entry.key_fault else entry.key or "")
        parts = [
            self._paint("time", f"{at:%H:%M:%S}.{entry.time % 10**9 // 1000:06}"),
            f"{who} \u2192 {whom}",
            self._paint(entry.kind, self._pad("kind", entry.kind)),
            self._paint("key", self._pad("key", key)),
            self._pad("size", size, right=True),
            *self._notes(entry, body),
        ]
        yield "  ".join(parts).rstrip()

    def _notes(self, entry: Entry, body: Any) -> Iterator[str]:  # Any: whatever carries a payload
        encoding: Encoding | None = getattr(body, "encoding", None)
        payload: bytes | None = getattr(body, "payload", None)
        if payload is not None:
            yield escape(str(encoding))
            if payload:
                yield preview(payload)
        if entry.loss is not None:
            yield self._paint("loss" if entry.kind == "loss" else "note", lost(entry.loss))
        if entry.fault is not None:
            yield self._paint("fault", f"{entry.fault} in {preview(entry.data)}")
        if entry.key_fault is not None:
            yield self._paint("fault", escape(entry.key_fault))
        told = escape(" ".join(detail(entry.message)))
        if told:
            yield told
        if entry.latency is not None:
            yield self._paint("note", f"after {_duration(entry.latency)}")

    def _pad(self, column: str, text: str, *, right: bool = False) -> str:
        self._widths[column] = min(max(self._widths[column], len(text)), _WIDEST)
        width = self._widths[column]
        return text.rjust(width) if right else text.ljust(width)

    def _paint(self, role: str, text: str) -> str:
        code = _COLOURS.get(role) if self._colour else None
        return f"\x1b[{code}m{text}\x1b[0m" if code else text


def as_json(entry: Entry) -> dict[str, object]:
    """Everything that is known, under the names of the tables' columns."""
    link = entry.link
    told: dict[str, object] = {
        "time": entry.time,
        "capture": link.capture,
        "flow": link.flow,
        "connection": link.connection,
        "from": _end(entry, entry.side),
        "to": _end(entry, 1 - entry.side),
        "sequence": entry.sequence,
        "offset": entry.offset,
        "layer": entry.layer,
        "kind": entry.kind,
    }
    if entry.key is not None or entry.key_fault is not None:
        told |= {"key": entry.key, "key_fault": entry.key_fault}
    if entry.latency is not None:
        told["latency"] = entry.latency
    if entry.message is not None:
        told |= {"length": entry.length, "fields": to_plain(entry.message)}
        body = body_of(entry.message)
        if body is not None:
            told |= {"encoding": str(body.encoding), "payload": body.payload.hex()}
    if entry.loss is not None:
        loss = entry.loss
        told[entry.kind] = {name: getattr(loss, name) for name in loss.__slots__}
    if entry.fault is not None:
        told |= {"fault": entry.fault, "bytes": entry.data.hex()}
    return told


def body_of(message: object) -> Any:  # Any: a PUT, an ERR or the value of a query
    """What has payload and encoding, if anything has."""
    found: object = None
    match message:
        case Push():
            found = message.body
        case Response(body=Reply() as reply):
            found = reply.body
        case Response(body=Err() as error):
            found = error
        case Request():
            found = message.body.body
    return found if hasattr(found, "payload") else None


def detail(message: object) -> Iterator[str]:
    """What a message says beside its key and value, in words."""
    match message:
        case Declare(body=DeclareFinal()):
            yield "final"
        case Declare():
            name = spec_of(type(message.body)).name[2:].lower()
            number = getattr(message.body, "id", getattr(message.body, "expr_id", ""))
            yield f"{name} {number}"
        case Interest():
            about = ("keyexprs", "subscribers", "queryables", "tokens")
            yield f"{message.id} {message.mode.name.lower()}"
            yield "+".join(name for name in about if getattr(message, name))
        case Request():
            yield from _query(message)
        case Oam():
            yield "linkstate" if message.id == OAM_LINKSTATE else f"id {message.id}"
        case InitSyn() | InitAck() | Join():
            yield f"{message.whatami.name.lower()} {message.zid}"
            agreed = ("qos", "lowlatency", "compression", "shm", "auth", "multilink")
            yield "+".join(name for name in agreed if getattr(message, name, None))
        case OpenSyn() | OpenAck():
            yield f"lease {_duration(message.lease / 1000)}"
        case Close():
            reasons = {int(reason): reason.name.lower() for reason in CloseReason}
            yield reasons.get(message.reason, f"reason {message.reason}")
            yield "of the session" if message.session else "of the link"
        case Frame() | Fragment():
            yield f"sn {message.sn} {'reliable' if message.reliable else 'best effort'}"
            yield message.priority.name.lower()
        case Scout() | Hello():
            plain = to_plain(message)
            yield " ".join(f"{k}={v}" for k, v in plain.items() if k not in ("message", "version"))
    attachment = getattr(getattr(message, "body", None), "attachment", None)
    if attachment:
        yield f"attachment {preview(attachment)}"


def _query(message: Request) -> Iterator[str]:
    if message.body.parameters:
        yield f"?{message.body.parameters}"
    yield message.target.name.lower()


def lost(loss: Loss) -> str:
    """A loss in words."""
    if loss.kind == "capture":
        sizes = [f"{n:,} bytes {what}" for n, what in _sizes(loss) if n]
        return f"capture: {loss.reason}" + (f", {', '.join(sizes)}" if sizes else "")
    which = f"{loss.from_sn}" if loss.count == 1 else f"{loss.from_sn} to {loss.to_sn}"
    if loss.kind == "fragments":
        return f"fragments {which}: {loss.reason}"
    if loss.kind == "not_sent":
        return f"source numbers {which}: {loss.reason}, nobody had subscribed on this link"
    return f"{loss.kind} numbers {which}: {loss.count:,} did not come"


def _sizes(loss: Loss) -> list[tuple[int, str]]:
    return [(loss.missing, "missing"), (loss.skipped, "skipped")]


def preview(data: bytes) -> str:
    """The begin of some bytes: as text if they are, else in hexadecimal."""
    try:
        # A character may be cut at the end of what is looked at.
        decoder = codecs.getincrementaldecoder("utf-8")()
        text = decoder.decode(data[: 4 * _PREVIEW], final=len(data) <= 4 * _PREVIEW)
    except UnicodeDecodeError:
        text = "\0"
    if text.replace("\n", "").replace("\t", "").isprintable():
        shown = text[:_PREVIEW].replace("\n", "\\n").replace("\t", "\\t")
        more = "\u2026" if len(text) > _PREVIEW or len(data) > 4 * _PREVIEW else ""
        return f'"{shown}"{more}'
    cut = data[: _PREVIEW // 3]
    return cut.hex(" ", -4) + ("\u2026" if len(data) > len(cut) else "")


def _name(entry: Entry, side: int) -> str:
    end = entry.link.ends[side]
    if entry.link.flow is None:
        return "-"
    return end.zid[:_NAME] if end.zid else end.name


def _end(entry: Entry, side: int) -> dict[str, object]:
    end = entry.link.ends[side]
    return {"zid": end.zid, "mode": end.mode, "address": end.address, "port": end.port}


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} \u00b5s"
