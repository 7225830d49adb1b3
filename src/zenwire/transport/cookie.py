"""The cookie of InitAck: what an acceptor must know at OpenSyn, so that it need not remember it.

Its content can be read by anyone, and changed by nobody without the key. The acceptor of a
connection remembers the cookie's nonce only: a cookie is valid on the connection that issued it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from zenwire.errors import DecodeError
from zenwire.transport.limits import COOKIE_MAX
from zenwire.transport.refused import RefusedError
from zenwire.wire.buffer import Reader, Writer
from zenwire.wire.values import CloseReason, Resolution, WhatAmI, ZenohId

__all__ = ["Cookie", "seal"]

_TAG = 32


def seal(key: bytes, data: bytes) -> bytes:
    """Proof that whoever had the key has seen the data."""
    return hmac.digest(key, data, "sha256")


@dataclass(frozen=True, slots=True)
class Cookie:
    """Who asked, when (in milliseconds of the acceptor's clock), and what was answered.

    ``nonce`` binds the cookie to one connection.
    """

    nonce: bytes
    issued: int
    zid: ZenohId
    whatami: WhatAmI
    resolution: Resolution
    batch_size: int
    notes: dict[str, bytes] = field(default_factory=dict)

    def encode(self, key: bytes) -> bytes:
        w = Writer()
        w.sized(self.nonce, COOKIE_MAX)
        w.z(self.issued)
        w.sized(self.zid.raw, COOKIE_MAX)
        w.u8(self.whatami)
        w.u8(self.resolution.raw)
        w.u16(self.batch_size)
        for name, note in self.notes.items():
            w.text(name, COOKIE_MAX)
            w.sized(note, COOKIE_MAX)
        content = bytes(w.out)
        return seal(key, content) + content

    @classmethod
    def decode(cls, data: bytes, key: bytes) -> Cookie:
        """Raises RefusedError for any but our own."""
        tag, content = data[:_TAG], data[_TAG:]
        if not hmac.compare_digest(tag, seal(key, content)):
            raise RefusedError(CloseReason.INVALID, "the cookie is not ours")
        r = Reader(content)
        try:
            nonce = r.take(r.length(COOKIE_MAX))
            issued, zid = r.z(), ZenohId(r.take(r.length(COOKIE_MAX)))
            whatami, resolution = WhatAmI(r.u8()), Resolution(r.u8())
            batch_size = r.u16()
            notes = {}
            while r.pos < r.end:
                name = r.text(r.length(COOKIE_MAX))
                notes[name] = r.take(r.length(COOKIE_MAX))
        except (DecodeError, ValueError) as e:
            raise RefusedError(CloseReason.INVALID, f"the cookie is not ours: {e}") from None
        return cls(nonce, issued, zid, whatami, resolution, batch_size, notes)
