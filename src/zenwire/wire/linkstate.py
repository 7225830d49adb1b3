"""Link state: the body of network OAM 1, by which routers and peers tell who they know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from zenwire.errors import DecodeError, Fault
from zenwire.wire import kinds as k
from zenwire.wire.buffer import Buffer, Reader, Writer
from zenwire.wire.define import boolean, field, struct, word
from zenwire.wire.limits import LINKS_MAX, LINKSTATES_MAX
from zenwire.wire.locator import Locator
from zenwire.wire.objects import Struct, codec_of
from zenwire.wire.values import WhatAmI, ZenohId

__all__ = ["OAM_LINKSTATE", "Link", "LinkState", "LinkStateList", "decode_linkstate"]

OAM_LINKSTATE: Final = 1
"""The OAM id."""


@dataclass(frozen=True, slots=True)
class Link:
    """A link to the node that the sender numbers ``psid``. Weight 0 is not set."""

    psid: int
    weight: int = 0


class LinksKind(k.FlaggedKind[tuple[Link, ...]]):
    """A count and that many psids; then, if WGT, as many weights."""

    label = "z n, n x z psid, [n x z16 weight]"

    def __init__(self, weighted: k.Bits) -> None:
        self.word = weighted.word
        self.mask = weighted.mask
        self._psids = k.Sequence(k.z64, LINKS_MAX)

    def read(self, r: Reader, word: int) -> tuple[Link, ...]:
        psids = self._psids.read(r)
        if not word & self.mask:
            return tuple([Link(psid) for psid in psids])
        return tuple([Link(psid, k.z16.read(r)) for psid in psids])

    def write(self, w: Writer, value: tuple[Link, ...]) -> None:
        self._psids.write(w, tuple(link.psid for link in value))
        if self.bits(value):
            for link in value:
                k.z16.write(w, link.weight)

    def bits(self, value: tuple[Link, ...]) -> int:
        return self.mask if any(link.weight for link in value) else 0


@struct
class LinkState:
    """What the sender knows of one node. Absent parts are unchanged.

    ``psid`` is the sender's own number for the node; ``sn`` is the version of this entry.
    """

    OPTIONS = word(k.z64)
    PID = OPTIONS.flag(0)
    WAI = OPTIONS.flag(1)
    LOC = OPTIONS.flag(2)
    WGT = OPTIONS.flag(3)
    GWY = OPTIONS.flag(4)

    psid: int = field(k.z64)
    sn: int = field(k.z64)
    zid: ZenohId | None = field(k.plain_zid, when=PID, default=None)
    whatami: WhatAmI | None = field(k.whatami_bitmap, when=WAI, default=None)
    locators: tuple[Locator, ...] | None = field(k.locators, when=LOC, default=None)
    links: tuple[Link, ...] = field(LinksKind(WGT), default=())
    gateway: bool = boolean(GWY, default=False)


@struct
class LinkStateList:
    """All that is said at once."""

    entries: tuple[LinkState, ...] = field(k.Sequence(Struct(LinkState), LINKSTATES_MAX))


def decode_linkstate(body: Buffer) -> LinkStateList:
    """The body of an OAM of id 1. Raises DecodeError."""
    r = Reader(body)
    found = codec_of(LinkStateList).read(r)
    if r.pos != r.end:
        raise DecodeError(Fault.TRAILING, r.pos, "LinkStateList")
    return found
