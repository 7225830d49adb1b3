"""Test vectors: ``tests/vectors/<scope>/<message>/<case>.json``, bytes and what they mean.

``hex`` are the bytes and ``source`` says where they come from. A good vector has ``fields``, the
message as ``zenwire.wire.plain.to_plain`` gives it, and ``canonical`` if it is written shorter
than it was read. A bad one has ``fault`` instead.

Besides the scopes of messages there are ``struct``, ``linkstate`` and ``batch``. A batch has
several messages: ``batch/plain``, ``batch/low_latency`` (a bare message), ``batch/compressed``
(``content`` is what it expands to), and ``batch/stream`` and ``batch/low_latency_stream``
(batches with the length before each).

To add one: ``python -m tests.vectors SCOPE/MESSAGE/CASE HEX SOURCE`` decodes the bytes and writes
the file. Compare its fields with the specification before you trust them.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.strategies import struct_specs
from zenwire.errors import DecodeError, Fault
from zenwire.wire import (
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    decode,
    decode_batch,
    decode_linkstate,
    encode,
    encode_batch,
    expand_batch,
    frame_stream,
    split_stream,
    walk_low_latency,
)
from zenwire.wire.buffer import Reader
from zenwire.wire.define import Spec
from zenwire.wire.objects import codec_of
from zenwire.wire.plain import to_plain

ROOT = Path(__file__).parent / "vectors"


@dataclass(frozen=True)
class Vector:
    """``name`` is scope/message/case."""

    name: str
    hex: str
    source: str
    fields: Any = None
    canonical: str | None = None
    content: str | None = None
    fault: dict[str, Any] | None = None

    @property
    def scope(self) -> str:
        return self.name.split("/")[0]

    @property
    def message(self) -> str:
        return self.name.split("/")[1]

    @property
    def raw(self) -> bytes:
        return bytes.fromhex(self.hex)

    @property
    def written(self) -> bytes:
        """What our writer makes of it; of a compressed batch, what is inside."""
        written = self.canonical if self.content is None else self.content
        return bytes.fromhex(self.hex if written is None else written)

    def decode(self) -> Any:
        return read(self.scope, self.message, self.raw)


@cache
def vectors() -> tuple[Vector, ...]:
    """All there are."""
    return tuple(load(path) for path in sorted(ROOT.rglob("*.json")))


def load(path: Path) -> Vector:
    name = path.relative_to(ROOT).with_suffix("").as_posix()
    return Vector(name, **json.loads(path.read_text(encoding="utf-8")))


def good() -> tuple[Vector, ...]:
    return tuple(v for v in vectors() if v.fault is None)


def bad() -> tuple[Vector, ...]:
    return tuple(v for v in vectors() if v.fault is not None)


def directory(spec: Spec) -> str:
    """The message part of a vector's name: InitSyn and InitAck are two."""
    name = spec.name if spec.scope and not spec.variant[0] else spec.cls.__name__
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


_STREAMS = {"stream": STREAM_PREFIX, "low_latency_stream": LOW_LATENCY_PREFIX}
_STRUCTS = {directory(spec): spec for spec in struct_specs()}


def read(scope: str, message: str, raw: bytes) -> Any:
    """A message or struct; a list of messages for a batch; a list of batches for a stream."""
    match scope, message:
        case "batch", "plain":
            return decode_batch(raw)
        case "batch", "low_latency":
            return [found.message for found in walk_low_latency(raw)]
        case "batch", "compressed":
            return decode_batch(expand_batch(raw))
        case "batch", "stream" | "low_latency_stream":
            inner = message.removesuffix("stream").rstrip("_") or "plain"
            spans = split_stream(raw, _STREAMS[message])
            return [read(scope, inner, raw[start:end]) for start, end in spans]
        case "linkstate", _:
            return decode_linkstate(raw)
        case "struct", _:
            spec = _STRUCTS[message]
            r = Reader(raw)
            found: object = codec_of(spec.cls).read(r)
            if r.pos != r.end:
                raise DecodeError(Fault.TRAILING, r.pos, spec.name)
            return found
    return decode(raw, scope)


def write(scope: str, message: str, found: Any) -> bytes:
    """The reverse of ``read``, but for compression."""
    if scope == "batch" and message in _STREAMS:
        return b"".join(frame_stream(encode_batch(b), _STREAMS[message]) for b in found)
    return encode_batch(found) if scope == "batch" else encode(found)


def plain(found: Any) -> Any:
    """``to_plain`` of what ``read`` gave."""
    return [plain(item) for item in found] if isinstance(found, list) else to_plain(found)


def add(name: str, text: str, source: str) -> Path:
    """Decode the bytes, and write the file."""
    scope, message, _ = name.split("/")
    raw = bytes.fromhex(text)
    made: dict[str, Any] = {"source": source, "hex": raw.hex()}
    try:
        found = read(scope, message, raw)
    except DecodeError as e:
        made["fault"] = {"fault": e.fault.name, "offset": e.offset, "message": e.message}
    else:
        made["fields"] = plain(found)
        written = write(scope, message, found)
        if written != raw:
            made["content" if message == "compressed" else "canonical"] = written.hex()
    path = ROOT / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    sys.stdout.write(f"{add(*sys.argv[1:4])}\n")
