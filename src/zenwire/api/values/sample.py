"""What subscribers get."""

from __future__ import annotations

from zenwire.api.values.encoding import Encoding
from zenwire.api.values.enums import CongestionControl, Priority, Reliability, SampleKind
from zenwire.api.values.ids import SourceInfo
from zenwire.api.values.stack import TimestampStack
from zenwire.api.values.time import Timestamp
from zenwire.api.values.zbytes import ZBytes
from zenwire.keyexpr import KeyExpr
from zenwire.wire import structs
from zenwire.wire.data import Del, Put
from zenwire.wire.values import QoS

__all__ = ["Sample"]


class Sample:
    """A value of a key, or its end.

    It holds the message that it came in; each property is made of it when it is asked for.
    ``key`` is the whole key, whose text must be canonical.
    """

    __slots__ = ("_body", "_key", "_qos", "_stack", "reliability")

    def __init__(
        self,
        key: KeyExpr | str,
        body: Put | Del,
        qos: QoS = QoS(),  # noqa: B008 # immutable
        reliability: Reliability = Reliability.RELIABLE,
        timestamp_stack: structs.TimestampStack | None = None,
    ) -> None:
        self._key = key
        self._body = body
        self._qos = qos
        self.reliability = reliability
        self._stack = timestamp_stack

    @property
    def key_expr(self) -> KeyExpr:
        """Key that it was published on."""
        key = self._key
        if isinstance(key, str):
            key = self._key = KeyExpr(key)
        return key

    @property
    def body(self) -> Put | Del:
        """The message that it came in."""
        return self._body

    @property
    def payload(self) -> ZBytes:
        """Value that was put; empty for a delete."""
        body = self._body
        return ZBytes(body.payload) if isinstance(body, Put) else ZBytes()

    @property
    def kind(self) -> SampleKind:
        """SampleKind.PUT for a value, SampleKind.DELETE for a deletion."""
        return SampleKind.PUT if isinstance(self._body, Put) else SampleKind.DELETE

    @property
    def encoding(self) -> Encoding:
        """Encoding of the payload; of a delete the default one."""
        body = self._body
        return Encoding.from_wire(body.encoding) if isinstance(body, Put) else Encoding()

    @property
    def timestamp(self) -> Timestamp | None:
        """Time and id of the node that stamped it, or None."""
        timestamp = self._body.timestamp
        return None if timestamp is None else Timestamp.from_wire(timestamp)

    @property
    def congestion_control(self) -> CongestionControl:
        """CongestionControl that it was sent with."""
        return CongestionControl(self._qos.congestion_control)

    @property
    def priority(self) -> Priority:
        """CONTROL, which applications cannot use, is shown as the highest that they can."""
        raw = self._qos.raw & 7
        return Priority(raw) if raw else Priority.MAX

    @property
    def express(self) -> bool:
        """True if it was sent at once, instead of waiting for others to fill a batch."""
        return self._qos.express

    @property
    def attachment(self) -> ZBytes | None:
        """Attachment of the put or delete, or None."""
        attachment = self._body.attachment
        return None if attachment is None else ZBytes(attachment)

    @property
    def source_info(self) -> SourceInfo | None:
        """Entity and sequence number that the publisher added, or None."""
        info = self._body.source_info
        return None if info is None else SourceInfo.from_wire(info)

    @property
    def timestamp_stack(self) -> TimestampStack | None:
        """Times taken along the route of an instrumented sample, or None."""
        return None if self._stack is None else TimestampStack(self._stack)

    def __repr__(self) -> str:
        return (
            f"Sample({self.kind.name} {str(self._key)!r}, {self.payload!r}, "
            f"encoding={str(self.encoding)!r}, timestamp={self.timestamp}, {self._qos})"
        )
