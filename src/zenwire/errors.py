"""Every exception zenwire raises, and the fault codes of malformed bytes.

- ``ZError``
    - ``DecodeError``: bytes that are not what they should be; has fault, offset, message
    - ``EncodeError``: a value that the wire cannot carry
    - ``KeyExprError``: text that is not a key expression; has text, position
    - ``CaptureError``: a file that is no capture, or that cannot be read; has path
    - ``ConfigError``: a configuration that cannot be used; has all its problems, and the source
    - ``SessionClosed``: a call on a session that is closed
    - ``Undeclared``: a call on a publisher, subscriber or the like that is undeclared
    - ``ForkedSession``: a call in a forked child on a session that its parent opened
    - ``ChannelClosed``: nothing more comes out of a handler
    - ``Timeout``: something did not happen in time; has seconds
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, unique

__all__ = [
    "CaptureError",
    "ChannelClosed",
    "ConfigError",
    "ConfigProblem",
    "DecodeError",
    "EncodeError",
    "Fault",
    "ForkedSession",
    "KeyExprError",
    "SessionClosed",
    "Timeout",
    "Undeclared",
    "WrongLoop",
    "ZError",
]


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


@dataclass(frozen=True, slots=True)
class ConfigProblem:
    """One thing wrong in a configuration.

    ``path`` is written with slashes, as in ``transport/link/tx/lease``, and empty when the text
    itself cannot be read. ``line`` and ``column`` count from 1; both are 0 where there is no text.
    ``hint`` is what to try, or empty.
    """

    path: str
    reason: str
    hint: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: " if self.line else ""
        what = f"{self.path}: " if self.path else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}{what}{self.reason}{hint}"


class ConfigError(ZError, ValueError):
    """A configuration that cannot be used. ``problems`` are all there are, in order of the text.

    ``source`` is the file it comes from, or empty.
    """

    def __init__(self, problems: tuple[ConfigProblem, ...], source: str = "") -> None:
        super().__init__(problems, source)
        self.problems = problems
        self.source = source

    def __str__(self) -> str:
        name = self.source or "the configuration"
        if len(self.problems) == 1:
            return f"{name}: {self.problems[0]}"
        lines = "".join(f"\n  {problem}" for problem in self.problems)
        return f"{name} has {len(self.problems)} problems:{lines}"


class SessionClosed(ZError):  # noqa: N818 # the word says what is the matter
    """A call on a session that is closed. ``what`` was called, ``reason`` is why it closed."""

    def __init__(self, what: str, reason: str = "") -> None:
        super().__init__(what, reason)
        self.what = what
        self.reason = reason

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.what}: the session is closed{why}; open another one"


class Undeclared(ZError):  # noqa: N818 # the word says what is the matter
    """A call on something that is undeclared. ``what`` is its kind, ``key`` its expression."""

    def __init__(self, what: str, key: str = "") -> None:
        super().__init__(what, key)
        self.what = what
        self.key = key

    def __str__(self) -> str:
        key = f" on {self.key!r}" if self.key else ""
        return f"the {self.what}{key} is undeclared; declare another one"


class ForkedSession(ZError):  # noqa: N818 # the word says what is the matter
    """A call in a forked child on a session that its parent opened.

    Sockets and sequence numbers cannot have two owners; ``parent`` is the process that has them.
    """

    def __init__(self, what: str, parent: int) -> None:
        super().__init__(what, parent)
        self.what = what
        self.parent = parent

    def __str__(self) -> str:
        return (
            f"{self.what}: this session belongs to process {self.parent}, from which this one "
            "was forked; open a session after the fork"
        )


class WrongLoop(ZError):  # noqa: N818 # the word says what is the matter
    """A call from another event loop, or another thread, than that in which a session was opened."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"{self.what}: this session belongs to another event loop; call it there, as with "
            "asyncio.run_coroutine_threadsafe, open a session here, or take zenwire.open, whose "
            "sessions any thread may use"
        )


class ChannelClosed(ZError):  # noqa: N818 # the word says what is the matter
    """Nothing more comes out of a handler: its owner is gone and everything has been read."""

    def __init__(self, what: str = "the channel") -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} is closed and empty"


class Timeout(ZError, TimeoutError):  # noqa: N818 # the word says what is the matter
    """Something did not happen in time. ``what`` was waited for, ``hint`` is what to try."""

    def __init__(self, what: str, seconds: float, hint: str = "") -> None:
        super().__init__(what, seconds, hint)
        self.what = what
        self.seconds = seconds
        self.hint = hint

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.what}: nothing within {self.seconds:g} s{hint}"
