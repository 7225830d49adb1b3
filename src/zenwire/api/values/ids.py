"""Who: ids of nodes, of their clocks, and of what they declare."""

from __future__ import annotations

from functools import total_ordering
from typing import Self

from zenwire.wire import structs, values

__all__ = ["EntityGlobalId", "SourceInfo", "TimestampId", "ZenohId"]


class _Id:
    """1 to 16 bytes, little endian. Its text is their number in hexadecimal."""

    __slots__ = ("wire",)

    wire: values.ZenohId
    """The same id as it is in messages."""

    def __init__(self, bytes: bytes | bytearray) -> None:  # noqa: A002 # eclipse-zenoh's name
        self.wire = values.ZenohId(_bytes(bytes))

    @classmethod
    def from_wire(cls, zid: values.ZenohId) -> Self:
        """The same id as it is in messages."""
        made = cls.__new__(cls)
        made.wire = zid
        return made

    def __bytes__(self) -> bytes:
        return self.wire.raw

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.wire.raw == other.wire.raw

    def __hash__(self) -> int:
        return hash(self.wire.raw)

    def __str__(self) -> str:
        return str(self.wire)

    __repr__ = __str__

    def __reduce__(self) -> tuple[type[_Id], tuple[bytes]]:
        return type(self), (self.wire.raw,)


_bytes = bytes


class ZenohId(_Id):
    """The id of a node."""

    __slots__ = ()


@total_ordering
class TimestampId(_Id):
    """The id of a clock, which is that of its node. Ids are in the order of their bytes."""

    __slots__ = ()

    def __lt__(self, other: TimestampId) -> bool:
        if not isinstance(other, TimestampId):
            return NotImplemented
        return self.wire.raw < other.wire.raw


class EntityGlobalId:
    """What a node declared: the id of the node, and a number of the node's own."""

    __slots__ = ("eid", "zid")

    zid: ZenohId
    eid: int

    def __init__(self, zid: ZenohId, eid: int) -> None:
        self.zid = zid
        self.eid = eid

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EntityGlobalId):
            return NotImplemented
        return self.eid == other.eid and self.zid == other.zid

    def __hash__(self) -> int:
        return hash((self.zid, self.eid))

    def __repr__(self) -> str:
        return f"EntityGlobalId {{ zid: {self.zid}, eid: {self.eid} }}"


class SourceInfo:
    """Where a sample or query comes from, and the number that its source gave it."""

    __slots__ = ("source_id", "source_sn")

    source_id: EntityGlobalId
    source_sn: int

    def __init__(self, source_id: EntityGlobalId, source_sn: int) -> None:
        if not isinstance(source_id, EntityGlobalId):
            raise TypeError(f"source_id is an EntityGlobalId, not {type(source_id).__name__}")
        self.source_id = source_id
        self.source_sn = source_sn

    @classmethod
    def from_wire(cls, info: structs.SourceInfo) -> SourceInfo:
        """Create one from its form on the wire."""
        return cls(EntityGlobalId(ZenohId.from_wire(info.zid), info.eid), info.sn)

    @property
    def wire(self) -> structs.SourceInfo:
        """As it travels."""
        source = self.source_id
        return structs.SourceInfo(zid=source.zid.wire, eid=source.eid, sn=self.source_sn)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SourceInfo):
            return NotImplemented
        return self.source_sn == other.source_sn and self.source_id == other.source_id

    def __hash__(self) -> int:
        return hash((self.source_id, self.source_sn))

    def __repr__(self) -> str:
        return f"SourceInfo {{ source_id: {self.source_id!r}, source_sn: {self.source_sn} }}"
