"""How samples and replies are shown: by a template, as JSON, or in a line.

What others have sent is escaped, unless ``raw`` asks for it as it is.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.escaping import escape, json_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire import aio

__all__ = ["FIELDS", "TEMPLATE", "Template", "TemplateError", "json_of", "text_of", "value_of"]

_SHOWN: Final = 32
_TEXTUAL: Final = frozenset(
    {
        "zenoh/string",
        "application/json",
        "application/yaml",
        "application/xml",
        "application/sql",
        "application/jwt",
        "application/jsonpath",
        "application/yang",
        "application/json-seq",
        "application/json-patch+json",
        "application/soap+xml",
        "application/openmetrics-text",
        "application/x-www-form-urlencoded",
    }
)


def value_of(payload: bytes, encoding: str) -> str | None:
    """The payload as text, if it is that: by its encoding, or by its looks if that says nothing.

    Without an encoding a payload is zenoh/bytes, which most programs leave as it is; text is then
    what is UTF-8 without control characters.
    """
    name = encoding.partition(";")[0]
    try:
        if name.startswith("text/") or name in _TEXTUAL:
            return payload.decode()
        if name in ("", "zenoh/bytes"):
            text = payload.decode()
            return text if not _CONTROL.search(text) else None
    except UnicodeDecodeError:
        pass
    return None


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def text_of(payload: bytes, encoding: str) -> str:
    """The payload for people: text as it is, or how many bytes there are and how they begin."""
    text = value_of(payload, encoding)
    if text is not None:
        return text
    more = "..." if len(payload) > _SHOWN else ""
    return f"<{len(payload)} bytes: {payload[:_SHOWN].hex()}{more}>"


def _plain(payload: bytes, encoding: str) -> tuple[str, str]:
    """For JSON: what it is, and which of text and base64 that is."""
    text = value_of(payload, encoding)
    if text is not None:
        return text, "text"
    return base64.b64encode(payload).decode(), "base64"


def json_of(sample: aio.Sample, time_ns: int | None = None, **more: Any) -> str:
    """One line. ``payload_is`` says whether the payload is text or base64."""
    told: dict[str, Any] = {"key": str(sample.key_expr), "kind": sample.kind.name}
    told["payload"], told["payload_is"] = _plain(sample.payload.to_bytes(), str(sample.encoding))
    told["encoding"] = str(sample.encoding)
    stamp = sample.timestamp
    told["timestamp"] = stamp and stamp.get_time_as_ntp64().to_string_rfc3339_lossy()
    told["timestamp_id"] = stamp and str(stamp.get_id())
    if time_ns is not None:
        told["received_ns"] = time_ns
    told["priority"] = sample.priority.name.lower()
    told["congestion_control"] = sample.congestion_control.name.lower()
    told["express"] = sample.express
    told["reliability"] = sample.reliability.name.lower()
    attachment = sample.attachment
    if attachment is not None:
        told["attachment"], told["attachment_is"] = _plain(attachment.to_bytes(), "")
    source = sample.source_info
    if source is not None:
        who = source.source_id
        told["source"] = {"zid": str(who.zid), "eid": who.eid, "sn": source.source_sn}
    return json_text(told | more)


class TemplateError(Exception):
    """A template that names a field that there is not."""


def _attachment(sample: aio.Sample) -> str:
    found = sample.attachment
    return "" if found is None else text_of(found.to_bytes(), "")


def _source(sample: aio.Sample) -> str:
    info = sample.source_info
    return "" if info is None else f"{info.source_id.zid}:{info.source_id.eid}#{info.source_sn}"


def _timestamp(sample: aio.Sample) -> str:
    return "" if sample.timestamp is None else sample.timestamp.to_string_rfc3339_lossy()


_FIELD: Final[dict[str, Callable[[aio.Sample, int], str]]] = {
    "key": lambda sample, _: str(sample.key_expr),
    "kind": lambda sample, _: sample.kind.name,
    "payload": lambda sample, _: text_of(sample.payload.to_bytes(), str(sample.encoding)),
    "base64": lambda sample, _: base64.b64encode(sample.payload.to_bytes()).decode(),
    "hex": lambda sample, _: sample.payload.to_bytes().hex(),
    "size": lambda sample, _: str(len(sample.payload)),
    "encoding": lambda sample, _: str(sample.encoding),
    "timestamp": lambda sample, _: _timestamp(sample),
    "received": lambda _, time_ns: f"{time_ns // 10**9}.{time_ns % 10**9:09}",
    "attachment": lambda sample, _: _attachment(sample),
    "source": lambda sample, _: _source(sample),
    "priority": lambda sample, _: sample.priority.name.lower(),
    "congestion_control": lambda sample, _: sample.congestion_control.name.lower(),
    "express": lambda sample, _: str(sample.express).lower(),
    "reliability": lambda sample, _: sample.reliability.name.lower(),
    "json": json_of,
}
FIELDS: Final = tuple(_FIELD)
TEMPLATE: Final = "{kind} {key} {payload}"
_OUR_OWN: Final = frozenset({"json"})
"""Fields that are escaped already, by rules of their own."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
_PARTS: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|\\(.)|[{}]", re.DOTALL)


class Template:
    r"""``{key} {payload}``: fields in braces, ``{{`` is a brace, ``\n`` and ``\t`` as in C.

    Fields are escaped, what is between them is not; with ``raw``, nothing is. Raises TemplateError.
    """

    def __init__(self, text: str, *, raw: bool = False) -> None:
        self._raw = raw
        self._parts: list[str | Callable[[aio.Sample, int], str]] = []
        end = 0
        for found in _PARTS.finditer(text):
            self._parts += [text[end : found.start()], self._part(found)]
            end = found.end()
        self._parts.append(text[end:])

    def _part(self, found: re.Match[str]) -> str | Callable[[aio.Sample, int], str]:
        whole, name, escaped = found[0], found[1], found[2]
        if whole in ("{{", "}}"):
            return whole[0]
        if escaped is not None:
            return _ESCAPES.get(escaped, whole)
        if name not in _FIELD:
            raise TemplateError(f"no field {whole!r} in a format; there are {', '.join(FIELDS)}")
        field = _FIELD[name]
        if self._raw or name in _OUR_OWN:
            return field
        return lambda sample, time_ns: escape(field(sample, time_ns))

    def show(self, sample: aio.Sample, time_ns: int = 0) -> str:
        """The template with the fields of this sample."""
        return "".join(p if isinstance(p, str) else p(sample, time_ns) for p in self._parts)
