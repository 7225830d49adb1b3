"""Encoding: what a payload is. A registered number, and a schema that is free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zenwire.errors import EncodeError
from zenwire.wire.buffer import utf8
from zenwire.wire.limits import SCHEMA_MAX

__all__ = ["CUSTOM", "ENCODINGS", "Encoding"]

ENCODINGS: Final[tuple[str, ...]] = (
    "zenoh/bytes",
    "zenoh/string",
    "zenoh/serialized",
    "application/octet-stream",
    "text/plain",
    "application/json",
    "text/json",
    "application/cdr",
    "application/cbor",
    "application/yaml",
    "text/yaml",
    "text/json5",
    "application/python-serialized-object",
    "application/protobuf",
    "application/java-serialized-object",
    "application/openmetrics-text",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/bmp",
    "image/webp",
    "application/xml",
    "application/x-www-form-urlencoded",
    "text/html",
    "text/xml",
    "text/css",
    "text/javascript",
    "text/markdown",
    "text/csv",
    "application/sql",
    "application/coap-payload",
    "application/json-patch+json",
    "application/json-seq",
    "application/jsonpath",
    "application/jwt",
    "application/mp4",
    "application/soap+xml",
    "application/yang",
    "audio/aac",
    "audio/flac",
    "audio/mp4",
    "audio/ogg",
    "audio/vorbis",
    "video/h261",
    "video/h263",
    "video/h264",
    "video/h265",
    "video/h266",
    "video/mp4",
    "video/ogg",
    "video/raw",
    "video/vp8",
    "video/vp9",
)
"""Names by number."""

CUSTOM: Final = 65_535
"""The number of every name that is not registered: the whole name is then the schema."""

_NUMBERS: Final = {name: number for number, name in enumerate(ENCODINGS)}


@dataclass(frozen=True, slots=True)
class Encoding:
    """``id`` is the registered number; ``schema`` is opaque, by convention UTF-8."""

    id: int = 0
    schema: bytes | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.id <= 0xFFFF:
            raise EncodeError(f"an encoding id has 16 bits: {self.id}")
        if self.schema is not None and len(self.schema) > SCHEMA_MAX:
            raise EncodeError(f"an encoding schema has at most {SCHEMA_MAX} bytes")

    @classmethod
    def parse(cls, text: str) -> Encoding:
        """``name[;schema]``. A name that is not registered becomes a schema of ``CUSTOM``."""
        if not text:
            return cls()
        name, _, schema = text.partition(";")
        number = _NUMBERS.get(name)
        if number is None:
            return cls(CUSTOM, utf8(text))
        return cls(number, utf8(schema) if schema else None)

    @property
    def name(self) -> str:
        """The registered name; empty for CUSTOM, ``unknown(N)`` for other numbers."""
        if self.id < len(ENCODINGS):
            return ENCODINGS[self.id]
        return "" if self.id == CUSTOM else f"unknown({self.id})"

    def __str__(self) -> str:
        if self.schema is None:
            return self.name
        schema = self.schema.decode(errors="replace")
        return schema if self.id == CUSTOM else f"{self.name};{schema}"
