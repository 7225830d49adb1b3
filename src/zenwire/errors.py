"""Every exception zenwire raises, and the fault codes of malformed bytes.

- ``ZError``
    - ``DecodeError``: bytes that are not what they should be; has fault, offset, message
    - ``EncodeError``: a value that the wire cannot carry
    - ``KeyExprError``: text that is not a key expression; has text, position
    - ``CaptureError``: a file that is no capture, or that cannot be read; has path
"""

from __future__ import annotations

from enum import IntEnum, unique

__all__ = ["CaptureError", "DecodeError", "EncodeError", "Fault", "KeyExprError", "ZError"]


@unique
class Fault(IntEnum):
    """Why bytes did not decode. Both readers report the same fault at the same offset."""

    TRUNCATED = 1
    """The bytes end, or a declared length reaches beyond what is there."""
    UNKNOWN_ID = 2
    """The low five bits of a header name no message of this layer."""
    OVERFLOW = 3
    """An integer is wider than its field."""
    LIMIT = 4
    """A declared length or count is above its named limit (``zenwire.wire.limits``)."""
    UTF8 = 5
    """Text that is not UTF-8."""
    RESERVED_ENCODING = 6
    """An extension, or an OAM body, with the reserved encoding 0b11."""
    MANDATORY_EXTENSION = 7
    """An extension with the M bit that this message does not know."""
    TRAILING = 8
    """Bytes are left where a message or a structured extension should have ended."""
    INVALID = 9
    """A value that the protocol forbids, such as an all-zero ZenohID."""
    COMPRESSION = 10
    """An LZ4 block that does not expand, or an unknown batch header."""


class ZError(Exception):
    """The root of everything zenwire raises on purpose."""


class DecodeError(ZError):
    """Bytes that are not what they should be.

    ``offset`` counts from the first byte of the buffer that was handed in;
    ``message`` is the protocol's name of the innermost message that was being read.
    """

    def __init__(self, fault: Fault, offset: int, message: str = "", detail: str = "") -> None:
        super().__init__(fault, offset, message, detail)
        self.fault = fault
        self.offset = offset
        self.message = message
        self.detail = detail

    def __reduce__(self) -> tuple[type[DecodeError], tuple[Fault, int, str, str]]:
        """The message becomes known on the way out, so what was handed in is not all."""
        return type(self), (self.fault, self.offset, self.message, self.detail)

    def __str__(self) -> str:
        where = f" in {self.message}" if self.message else ""
        why = f": {self.detail}" if self.detail else ""
        return f"{self.fault.name} at byte {self.offset}{where}{why}"


class EncodeError(ZError, ValueError):
    """A value that the wire cannot carry, such as an encoding schema of 300 bytes."""


class KeyExprError(ZError, ValueError):
    """Text that is not a key expression.

    ``position`` is the index of the character that is wrong.
    """

    def __init__(self, text: str, position: int, reason: str) -> None:
        super().__init__(text, position, reason)
        self.text = text
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.text!r} is not a key expression: {self.reason} (at character {self.position})"
        )


class CaptureError(ZError):
    """A file that is no capture, or that cannot be read."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"
