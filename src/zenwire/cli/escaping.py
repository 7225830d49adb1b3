"""Escape text from the network, so that it neither controls a terminal nor forges a line.

Keys, payloads, attachments, encodings and errors are chosen by other nodes. Every command passes
them through here before they reach stdout or stderr, whether that is a terminal, a file or a pipe:
the pipe may end in a terminal, and a program behind it reads lines.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

__all__ = ["escape", "escape_json", "escape_lines", "json_text"]

# C1 controls act as escape sequences on some terminals. Directional controls make a terminal show
# text in another order than it has. U+2028 and U+2029 end lines for some programs.
_ABOVE: Final = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
_CONTROLS: Final = re.compile(rf"[\x00-\x1f{_ABOVE}]")
_BUT_LINES: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_ABOVE}]")
_IN_JSON: Final = re.compile(rf"[{_ABOVE}]")
_SHORT: Final = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def escape(text: str) -> str:
    r"""Write control characters out as ``\n``, ``\x1b`` or ``\u202e``: the result is one line.

    Backslashes stay as they are, so the result cannot be turned back: JSON output can.
    """
    return text if text.isprintable() else _CONTROLS.sub(_written_out, text)


def escape_lines(text: str) -> str:
    """The same for a text of our own making, whose line ends and tabs are meant."""
    return _BUT_LINES.sub(_written_out, text)


def json_text(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """JSON in which every control character is escaped, as JSON escapes it.

    ``ascii_only`` is for text that is written in the encoding of the terminal, whichever that is.
    """
    return escape_json(json.dumps(value, ensure_ascii=ascii_only, indent=indent))


def escape_json(text: str) -> str:
    """The same for a text that is JSON already."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _written_out(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SHORT:
        return _SHORT[char]
    return f"\\x{ord(char):02x}" if char < "\u0100" else f"\\u{ord(char):04x}"
