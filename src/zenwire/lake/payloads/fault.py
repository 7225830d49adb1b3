"""Why a payload has no value."""

from __future__ import annotations

from zenwire.errors import ZError

__all__ = ["Fault"]


class Fault(ZError):  # noqa: N818 - it is a word of the tables, too
    """The bytes are not what the encoding says."""
