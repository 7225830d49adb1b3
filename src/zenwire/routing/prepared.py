"""What queries are made of again and again: kept, so that a message is a copy with a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from zenwire.keyexpr import validate
from zenwire.routing.consolidation import parameter_names, resolve
from zenwire.routing.faces import Locality
from zenwire.wire.data import Err, Query
from zenwire.wire.network import Request, Response, ResponseFinal
from zenwire.wire.repeat import final_of, response_of
from zenwire.wire.structs import ResponderId
from zenwire.wire.values import CongestionControl, ConsolidationMode, QoS, QueryTarget, WireExpr

if TYPE_CHECKING:
    from zenwire.wire.data import Reply
    from zenwire.wire.values import ZenohId

__all__ = ["QUERY_TIMEOUT", "Prepared", "Question", "question"]

QUERY_TIMEOUT: Final = 10.0
"""Seconds that a request without a timeout has."""

_KEPT_MAX: Final = 4096
"""Of each kind. Whoever has more makes them anew."""
_NOTHING: Final = Err(payload=b"")


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What is asked, and how: made once, asked any number of times. ``mode`` is resolved."""

    key: str
    message: Request
    """Without a number and a value."""
    mode: ConsolidationMode
    anyke: bool
    timeout: float
    destination: Locality


def question(
    key: str,
    parameters: str = "",
    target: QueryTarget = QueryTarget.BEST_MATCHING,
    consolidation: ConsolidationMode = ConsolidationMode.AUTO,
    *,
    timeout: float = QUERY_TIMEOUT,
    budget: int | None = None,
    qos: QoS = QoS.of(congestion_control=CongestionControl.BLOCK),  # noqa: B008 # frozen
    allowed_destination: Locality = Locality.ANY,
) -> Question:
    """How to ask. KeyExprError for a key that is not canonical.

    After ``timeout`` seconds it ends with an error `Timeout`. A ``budget`` bounds the replies that
    are delivered.
    """
    validate(key)
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
    return Question(key, message, mode, anyke, timeout, allowed_destination)


class Prepared:
    """The replies of one node."""

    __slots__ = ("_finals", "_responders", "_responses", "_zid")

    def __init__(self, zid: ZenohId) -> None:
        self._zid = zid
        self._responders: dict[int, ResponderId] = {}
        self._responses: dict[tuple[str, int, int], Response] = {}
        self._finals: dict[int, ResponseFinal] = {}

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
