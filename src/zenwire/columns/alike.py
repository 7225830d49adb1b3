"""Rows that differ in their payloads alone, as a publisher's do: they are written as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from zenwire.wire.objects import encode
from zenwire.wire.repeat import Known, with_body, with_payload

if TYPE_CHECKING:
    from zenwire.columns.scan import Bytes, Int32
    from zenwire.wire.data import Put
    from zenwire.wire.network import Push

__all__ = ["Alike"]

_SLACK: Final = bytes(32)
"""Bytes behind a head that the kernel may copy with it."""


class Alike:
    """Payloads, and what all of them have before theirs: the first ``size`` bytes of ``head``."""

    __slots__ = ("_like", "_put", "count", "head", "offsets", "payload", "size")

    def __init__(self, payloads: pa.Array, like: Push, put: Put, head: bytes) -> None:
        self._like, self._put = like, put
        self.count = len(payloads)
        self.size = len(head)
        self.head: Bytes = np.frombuffer(head + _SLACK, np.uint8)
        _, offsets, data = payloads.buffers()
        first = payloads.offset
        self.offsets: Int32 = np.frombuffer(offsets, np.int32)[first : first + self.count + 1]
        self.payload: Bytes = np.frombuffer(b"" if data is None else data, np.uint8)

    @classmethod
    def of(cls, payloads: pa.Array, like: Push, put: Put) -> Alike | None:
        """Rows of ``like``, whose body is ``put``, but for these payloads.

        None if they have to be written field by field.
        """
        if not (pa.types.is_binary(payloads.type) or pa.types.is_string(payloads.type)):
            return None
        if payloads.null_count:
            return None
        known = Known.of(encode(like), like)
        return None if known is None else cls(payloads, like, put, known.head)

    def message(self, row: int) -> Push:
        start, end = self.offsets[row : row + 2]
        return with_body(self._like, with_payload(self._put, self.payload[start:end].tobytes()))
