"""Data messages: what PUSH, REQUEST and RESPONSE carry."""

from __future__ import annotations

from zenwire.wire import kinds as k
from zenwire.wire import structs as s
from zenwire.wire.define import ext, field, flag, message, unknown_exts
from zenwire.wire.encoding import Encoding
from zenwire.wire.objects import OneOf
from zenwire.wire.structs import QueryBody, SourceInfo, Timestamp
from zenwire.wire.values import ConsolidationMode, UnknownExt

__all__ = ["Del", "Err", "Put", "Query", "Reply"]


@message("PUT", scope="data", id=0x01)
class Put:
    """A value for a key.

    An absent encoding and the default encoding are the same PUT. ``shm`` says that the payload
    is a description of shared memory, which a node without shared memory must refuse.
    """

    T = flag(5)
    E = flag(6)

    timestamp: Timestamp | None = field(s.timestamp, when=T, default=None)
    encoding: Encoding = field(k.encoding, when=E, default=Encoding())
    source_info: SourceInfo | None = ext(0x1, s.source_info, default=None, column="source")
    shm: bool = ext(0x2, k.unit, mandatory=True, default=False)
    attachment: bytes | None = ext(0x3, k.rest, default=None)
    unknown: tuple[UnknownExt, ...] = unknown_exts(default=())
    payload: bytes = field(k.payload)


@message("DEL", scope="data", id=0x02)
class Del:
    """A key has no value any more. Its attachment has another id than PUT's."""

    T = flag(5)

    timestamp: Timestamp | None = field(s.timestamp, when=T, default=None)
    source_info: SourceInfo | None = ext(0x1, s.source_info, default=None, column="source")
    attachment: bytes | None = ext(0x2, k.rest, default=None)
    unknown: tuple[UnknownExt, ...] = unknown_exts(default=())


@message("QUERY", scope="data", id=0x03)
class Query:
    """What is asked for. ``parameters`` are ``k=v`` pairs joined by ``;``."""

    C = flag(5)
    P = flag(6)

    consolidation: ConsolidationMode = field(
        k.consolidation, when=C, default=ConsolidationMode.AUTO
    )
    parameters: str = field(k.parameters, when=P, default="")
    source_info: SourceInfo | None = ext(0x1, s.source_info, default=None, column="source")
    shm: bool = ext(0x4, k.unit, default=False)
    body: QueryBody | None = ext(0x3, s.query_body, default=None, column="")
    attachment: bytes | None = ext(0x5, k.rest, default=None)
    unknown: tuple[UnknownExt, ...] = unknown_exts(default=())


@message("REPLY", scope="data", id=0x04)
class Reply:
    """A value, or a deletion, that answers a query."""

    C = flag(5)

    consolidation: ConsolidationMode = field(
        k.consolidation, when=C, default=ConsolidationMode.AUTO
    )
    unknown: tuple[UnknownExt, ...] = unknown_exts(default=())
    body: Put | Del = field(OneOf[Put | Del](Put, Del))


@message("ERR", scope="data", id=0x05)
class Err:
    """A queryable could not answer; the payload says why."""

    E = flag(6)

    encoding: Encoding = field(k.encoding, when=E, default=Encoding())
    source_info: SourceInfo | None = ext(0x1, s.source_info, default=None, column="source")
    shm: bool = ext(0x2, k.unit, mandatory=True, default=False)
    unknown: tuple[UnknownExt, ...] = unknown_exts(default=())
    payload: bytes = field(k.payload)
