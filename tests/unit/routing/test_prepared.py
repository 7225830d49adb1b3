from __future__ import annotations

import pytest

from zenwire.errors import KeyExprError
from zenwire.routing import prepared
from zenwire.routing.prepared import Prepared, Question, question
from zenwire.wire.data import Err, Put, Query, Reply
from zenwire.wire.network import Request, Response, ResponseFinal
from zenwire.wire.structs import ResponderId
from zenwire.wire.values import ConsolidationMode, QoS, QueryTarget, WireExpr, ZenohId

ZID = ZenohId(b"\x01\x02")
QOS = QoS.of(express=True)
AUTO, LATEST, NONE = ConsolidationMode.AUTO, ConsolidationMode.LATEST, ConsolidationMode.NONE


def asking(key: str = "a/b", parameters: str = "") -> Question:
    return question(key, parameters, QueryTarget.ALL, AUTO, timeout=1.5, budget=3, qos=QOS)


def test_how_to_ask() -> None:
    made = asking()
    assert made.message == Request(
        request_id=0,
        key=WireExpr(0, "a/b"),
        qos=QOS,
        target=QueryTarget.ALL,
        budget=3,
        timeout=1500,
        body=Query(consolidation=LATEST),
    )
    assert (made.mode, made.anyke, made.timeout) == (LATEST, False, 1.5)
    other = asking(parameters="_anyke;_time=x")
    assert (other.mode, other.anyke) == (NONE, True)
    assert other.message.body.parameters == "_anyke;_time=x"


def test_a_key_that_is_none_is_refused() -> None:
    with pytest.raises(KeyExprError):
        asking("a//b")


def test_answers_and_their_end() -> None:
    made = Prepared(ZID)
    who = made.responder(7)
    assert who == ResponderId(zid=ZID, eid=7)
    assert made.responder(7) is who
    for number, body in ((1, Reply(body=Put(payload=b"x"))), (2, Err(payload=b"no"))):
        for responder in (who, None, ResponderId(zid=ZID, eid=8)):
            assert made.response(number, "k", QOS, responder, body) == Response(
                request_id=number, key=WireExpr(0, "k"), qos=QOS, responder=responder, body=body
            )
    for qos in (QOS, QoS(), QOS):
        assert made.final(9, qos) == ResponseFinal(request_id=9, qos=qos)


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "_KEPT_MAX", 4)
    made = Prepared(ZID)
    for n in range(20):
        who = made.responder(n)
        response = made.response(n, f"k/{n}", QOS, who, Err(payload=b""))
        assert (response.key, response.responder) == (WireExpr(0, f"k/{n}"), who)
    assert max(len(made._responders), len(made._responses)) <= 4
