"""What queries are made of again and again: kept, so that a message is a copy with a number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from zenwire.keyexpr import validate
from zenwire.routing.consolidation import parameter_names, resolve
from zenwire.wire.data import Err, Query
from zenwire.wire.network import Request, Response, ResponseFinal
from zenwire.wire.repeat import final_of, response_of
from zenwire.wire.structs import ResponderId
from zenwire.wire.values import WireExpr

if TYPE_CHECKING:
    from zenwire.wire.data import Reply
    from zenwire.wire.values import ConsolidationMode, QoS, QueryTarget, ZenohId

__all__ = ["Asking", "Prepared"]

_KEPT_MAX: Final = 4096
"""Of each kind. Whoever has more makes them anew."""
_NOTHING: Final = Err(payload=b"")


class Asking(NamedTuple):
    """A query without a number and a value. ``mode`` is resolved."""

    message: Request
    mode: ConsolidationMode
    anyke: bool


class Prepared:
    """The queries and replies of one node."""

    __slots__ = ("_asking", "_finals", "_responders", "_responses", "_zid")

    def __init__(self, zid: ZenohId) -> None:
        self._zid = zid
        self._asking: dict[tuple[object, ...], Asking] = {}
        self._responders: dict[int, ResponderId] = {}
        self._responses: dict[tuple[str, int, int], Response] = {}
        self._finals: dict[int, ResponseFinal] = {}

    def asking(
        self,
        key: str,
        parameters: str,
        target: QueryTarget,
        consolidation: ConsolidationMode,
        *,
        timeout: float,
        budget: int | None,
        qos: QoS,
    ) -> Asking:
        """How to ask. KeyExprError for a key that is not canonical."""
        # Enumerations are slow to hash.
        name = key, parameters, int(target), int(consolidation), timeout, budget, qos.raw
        asking = self._asking.get(name)
        if asking is None:
            validate(key)
            _bound(self._asking)
            mode = resolve(consolidation, parameters)
            message = Request(
                request_id=0,
                key=WireExpr(0, key),
                qos=qos,
                target=target,
                budget=budget,
                timeout=round(timeout * 1000),
                body=Query(consolidation=mode, parameters=parameters),
            )
            anyke = "_anyke" in parameter_names(parameters)
            asking = self._asking[name] = Asking(message, mode, anyke)
        return asking

    def responder(self, eid: int) -> ResponderId:
        """A queryable of this node."""
        known = self._responders.get(eid)
        if known is None:
            _bound(self._responders)
            known = self._responders[eid] = ResponderId(zid=self._zid, eid=eid)
        return known

    def response(
        self,
        number: int,
        key: str,
        qos: QoS,
        responder: ResponderId | None,
        body: Reply | Err,
    ) -> Response:
        """A reply, or an error, without times."""
        name = key, qos.raw, id(responder)
        like = self._responses.get(name)
        if like is None or like.responder is not responder:
            _bound(self._responses)
            like = self._responses[name] = Response(
                request_id=0, key=WireExpr(0, key), qos=qos, responder=responder, body=_NOTHING
            )
        return response_of(like, number, body)

    def final(self, number: int, qos: QoS) -> ResponseFinal:
        """No more replies."""
        like = self._finals.get(qos.raw)
        if like is None:
            like = self._finals[qos.raw] = ResponseFinal(request_id=0, qos=qos)
        return final_of(like, number)


def _bound(kept: dict[Any, Any]) -> None:
    if len(kept) >= _KEPT_MAX:
        kept.clear()
