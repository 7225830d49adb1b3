"""Puts of a session that differ in their value alone, and what is kept of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.api.publisher import qos_of, quality_of
from zenwire.api.puts import Puts
from zenwire.api.values import (
    CongestionControl,
    Encoding,
    Priority,
    Reliability,
    key_expr_of,
)
from zenwire.keyexpr import KeyExpr
from zenwire.node.stream import Stream
from zenwire.wire.data import Put
from zenwire.wire.repeat import with_payload

if TYPE_CHECKING:
    from zenwire.api.core import Core
    from zenwire.api.values import IntoKeyExpr
    from zenwire.node.neighbour import Waiting

__all__ = ["Repeated", "Repeats"]

_KEYS: Final = 4096
"""Keys that are remembered. Whoever has more of them goes the long way."""


class Repeated(Puts):
    """A put, but for its value; ``said`` has its key, encoding, QoS and reliability.

    ``stream`` knows a short way, where there is one; it is made when the same is put again.
    """

    __slots__ = (
        "_core",
        "_key",
        "_like",
        "_quality",
        "congestion_control",
        "encoding",
        "express",
        "priority",
        "reliability",
        "stream",
    )

    def __init__(
        self,
        core: Core,
        encoding: Encoding | str | None,
        congestion_control: CongestionControl | None,
        priority: Priority | None,
        *,
        express: bool | None,
        reliability: Reliability | None,
    ) -> None:
        self.encoding = encoding
        self.congestion_control = congestion_control
        self.priority = priority
        self.express = express
        self.reliability = reliability
        self.stream: Stream | None = None
        self._core = core

    def begin(self, key_expr: IntoKeyExpr) -> None:
        """It is put again. Raises KeyExprError, and what else is wrong with it."""
        core = self._core
        key = str(key_expr_of(key_expr))
        self._key = core.namespace.outward(key)
        self._like = Put(encoding=Encoding.of(self.encoding).wire, payload=b"")
        asked = qos_of(self.priority, self.congestion_control, self.express)
        how = quality_of(core, key, asked, self.reliability, None)
        self._quality = how
        self.stream = Stream(
            core.node,
            core.face,
            self._key,
            self._like,
            qos=how.qos,
            reliable=how.reliable,
            allowed_destination=how.destination,
        )

    def _short(self) -> Stream | None:
        return self.stream

    def put_long(self, payload: bytes) -> list[Waiting] | None:
        core = self._core
        core.check("put")
        body = with_payload(self._like, payload)
        qos, reliable, where = self._quality
        core.face.push(self._key, body, qos=qos, reliable=reliable, allowed_destination=where)
        return core.settle()


class Repeats:
    """By key, the put that was made there last."""

    __slots__ = ("_core", "_known")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[IntoKeyExpr, Repeated] = {}

    def find(  # noqa: PLR0917 # names cost time, and this is called for each put
        self,
        key_expr: IntoKeyExpr,
        encoding: Encoding | str | None,
        congestion_control: CongestionControl | None,
        priority: Priority | None,
        express: bool | None,
        reliability: Reliability | None,
    ) -> Repeated | None:
        """What was put so before. A put that nothing is known of has to be made as ever."""
        if type(key_expr) is not str and type(key_expr) is not KeyExpr:
            return None
        same = self._known.get(key_expr)
        if (
            same is not None
            and same.congestion_control is congestion_control
            and same.priority is priority
            and same.express is express
            and same.encoding is encoding
            and same.reliability is reliability
        ):
            if same.stream is None:
                same.begin(key_expr)
            return same
        if self._core.node.config.timestamping or (same is None and len(self._known) >= _KEYS):
            return None
        # Of what is wrong the long way tells.
        given: tuple[tuple[object, type | tuple[type, ...]], ...] = (
            (encoding, (str, Encoding)),
            (congestion_control, CongestionControl),
            (priority, Priority),
            (reliability, Reliability),
        )
        if all(value is None or isinstance(value, kind) for value, kind in given):
            self._known[key_expr] = Repeated(
                self._core,
                encoding,
                congestion_control,
                priority,
                express=express,
                reliability=reliability,
            )
        return None
