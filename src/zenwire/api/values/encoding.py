"""What a payload is."""

from __future__ import annotations

from typing import ClassVar

from zenwire.wire import encoding as codec

__all__ = ["Encoding"]


class Encoding:
    """``name[;schema]``, as in ``text/plain;utf-8``. Immutable, and equal to its text.

    Each registered name is a constant: ``Encoding.TEXT_PLAIN``.
    """

    __slots__ = ("wire",)

    wire: codec.Encoding
    """The same encoding as it is in messages."""

    ZENOH_BYTES: ClassVar[Encoding]
    ZENOH_STRING: ClassVar[Encoding]
    ZENOH_SERIALIZED: ClassVar[Encoding]
    APPLICATION_OCTET_STREAM: ClassVar[Encoding]
    TEXT_PLAIN: ClassVar[Encoding]
    APPLICATION_JSON: ClassVar[Encoding]
    TEXT_JSON: ClassVar[Encoding]
    APPLICATION_CDR: ClassVar[Encoding]
    APPLICATION_CBOR: ClassVar[Encoding]
    APPLICATION_YAML: ClassVar[Encoding]
    TEXT_YAML: ClassVar[Encoding]
    TEXT_JSON5: ClassVar[Encoding]
    APPLICATION_PYTHON_SERIALIZED_OBJECT: ClassVar[Encoding]
    APPLICATION_PROTOBUF: ClassVar[Encoding]
    APPLICATION_JAVA_SERIALIZED_OBJECT: ClassVar[Encoding]
    APPLICATION_OPENMETRICS_TEXT: ClassVar[Encoding]
    IMAGE_PNG: ClassVar[Encoding]
    IMAGE_JPEG: ClassVar[Encoding]
    IMAGE_GIF: ClassVar[Encoding]
    IMAGE_BMP: ClassVar[Encoding]
    IMAGE_WEBP: ClassVar[Encoding]
    APPLICATION_XML: ClassVar[Encoding]
    APPLICATION_X_WWW_FORM_URLENCODED: ClassVar[Encoding]
    TEXT_HTML: ClassVar[Encoding]
    TEXT_XML: ClassVar[Encoding]
    TEXT_CSS: ClassVar[Encoding]
    TEXT_JAVASCRIPT: ClassVar[Encoding]
    TEXT_MARKDOWN: ClassVar[Encoding]
    TEXT_CSV: ClassVar[Encoding]
    APPLICATION_SQL: ClassVar[Encoding]
    APPLICATION_COAP_PAYLOAD: ClassVar[Encoding]
    APPLICATION_JSON_PATCH_JSON: ClassVar[Encoding]
    APPLICATION_JSON_SEQ: ClassVar[Encoding]
    APPLICATION_JSONPATH: ClassVar[Encoding]
    APPLICATION_JWT: ClassVar[Encoding]
    APPLICATION_MP4: ClassVar[Encoding]
    APPLICATION_SOAP_XML: ClassVar[Encoding]
    APPLICATION_YANG: ClassVar[Encoding]
    AUDIO_AAC: ClassVar[Encoding]
    AUDIO_FLAC: ClassVar[Encoding]
    AUDIO_MP4: ClassVar[Encoding]
    AUDIO_OGG: ClassVar[Encoding]
    AUDIO_VORBIS: ClassVar[Encoding]
    VIDEO_H261: ClassVar[Encoding]
    VIDEO_H263: ClassVar[Encoding]
    VIDEO_H264: ClassVar[Encoding]
    VIDEO_H265: ClassVar[Encoding]
    VIDEO_H266: ClassVar[Encoding]
    VIDEO_MP4: ClassVar[Encoding]
    VIDEO_OGG: ClassVar[Encoding]
    VIDEO_RAW: ClassVar[Encoding]
    VIDEO_VP8: ClassVar[Encoding]
    VIDEO_VP9: ClassVar[Encoding]

    def __init__(self, encoding: str | None = None) -> None:
        if encoding is not None and not isinstance(encoding, str):
            raise TypeError(f"an encoding is an Encoding or text, not {type(encoding).__name__}")
        self.wire = codec.Encoding.parse(encoding or "")

    @classmethod
    def from_wire(cls, encoding: codec.Encoding) -> Encoding:
        """The same encoding as it is in messages."""
        made = cls.__new__(cls)
        made.wire = encoding
        return made

    @classmethod
    def of(cls, value: Encoding | str | None) -> Encoding:
        """The Encoding that an argument stands for."""
        return value if isinstance(value, Encoding) else cls(value)

    def with_schema(self, schema: str) -> Encoding:
        """The same name with another schema."""
        if not isinstance(schema, str):
            raise TypeError(f"a schema is text, not {type(schema).__name__}")
        if self.wire.id != codec.CUSTOM:
            return Encoding.from_wire(codec.Encoding(self.wire.id, schema.encode()))
        name = str(self).partition(";")[0]
        text = f"{name};{schema}" if name and schema else name or schema
        return Encoding.from_wire(codec.Encoding(codec.CUSTOM, text.encode()))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Encoding):
            return self.wire == other.wire
        if isinstance(other, str):
            return self == Encoding(other)
        return NotImplemented

    def __hash__(self) -> int:
        # Equal to its text, so it must hash like the text.
        return hash(str(self))

    def __str__(self) -> str:
        return str(self.wire)

    def __repr__(self) -> str:
        return f"Encoding({str(self)!r})"

    def __reduce__(self) -> tuple[object, tuple[codec.Encoding]]:
        return Encoding.from_wire, (self.wire,)


_SEPARATORS = str.maketrans(dict.fromkeys("/-+.", "_"))
for _name in codec.ENCODINGS:
    setattr(Encoding, _name.upper().translate(_SEPARATORS), Encoding(_name))
