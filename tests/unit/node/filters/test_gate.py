"""The filters of one session in a row, with faces and messages, and without a node."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from tests.strategies import any_of
from zenwire.node.config import Config
from zenwire.node.config.interceptors import AclMessage, Flow
from zenwire.node.filters import Filtered, Filters, Gate, Party, gate
from zenwire.node.filters.gate import Cause
from zenwire.routing import PEER, Face
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import (
    Declare,
    Interest,
    NetworkMessage,
    Oam,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenwire.wire.structs import QueryBody
from zenwire.wire.values import (
    CongestionControl,
    InterestMode,
    Mapping,
    Priority,
    QoS,
    WhatAmI,
    WireExpr,
    ZenohId,
)

ZID = ZenohId.parse("a1")
MESSAGES = [message.value for message in AclMessage]
INGRESS, EGRESS = Flow.INGRESS, Flow.EGRESS


class Gated:
    """A gate, and what comes of it."""

    def __init__(self, flow: Flow, party: Party | None = None, **settings: Any) -> None:
        filters = Filters.of(Config.from_dict(settings).settings)
        assert filters is not None
        self.face = Face(1, ZID, WhatAmI.PEER, PEER.relations[WhatAmI.PEER])
        self.answers: list[NetworkMessage] = []
        self.filtered: Counter[Filtered] = Counter()
        self.steps = filters.steps(party or Party(zid=ZID), flow)
        self.gate = Gate(
            flow,
            self.steps,
            self.face,
            answer=self.answers.append,
            filtered=self.filtered,
            key_length=100,
        )

    def passes(self, message: NetworkMessage, now: float = 0.0, *, reliable: bool = True) -> bool:
        return self.gate(message, reliable, now) is not None


def denying(*messages: str, key: str = "no/**") -> dict[str, Any]:
    rule = {"id": "r", "messages": list(messages), "key_exprs": [key], "permission": "deny"}
    return {
        "access_control": {
            "enabled": True,
            "default_permission": "allow",
            "rules": [rule],
            "subjects": [{"id": "s"}],
            "policies": [{"rules": ["r"], "subjects": ["s"]}],
        }
    }


def put(key: str | WireExpr, payload: bytes = b"", qos: QoS = QoS(), **more: Any) -> Push:  # noqa: B008
    expr = WireExpr(0, key) if isinstance(key, str) else key
    return Push(key=expr, qos=qos, body=Put(payload=payload, **more))


def said(key: WireExpr) -> dict[str, NetworkMessage]:
    """A message of each kind."""
    return {
        "put": Push(key=key, body=Put(payload=b"x")),
        "delete": Push(key=key, body=Del()),
        "query": Request(request_id=7, key=key, body=Query()),
        "reply": Response(request_id=7, key=key, body=Reply(body=Put(payload=b"x"))),
        "declare_subscriber": Declare(body=DeclareSubscriber(id=8, key=key)),
        "declare_queryable": Declare(body=DeclareQueryable(id=8, key=key)),
        "liveliness_token": Declare(body=DeclareToken(id=8, key=key)),
        "liveliness_query": Interest(
            mode=InterestMode.CURRENT, id=9, tokens=True, keyexprs=True, key=key
        ),
        "declare_liveliness_subscriber": Interest(
            mode=InterestMode.FUTURE, id=9, tokens=True, keyexprs=True, key=key
        ),
    }


@pytest.mark.parametrize("flow", Flow)
@pytest.mark.parametrize("message", MESSAGES)
def test_each_kind_is_told_apart_counted_and_answered(message: str, flow: Flow) -> None:
    gated = Gated(flow, **denying(message))
    for kind, what in said(WireExpr(0, "no/a")).items():
        assert gated.passes(what) is (kind != message)
    for what in said(WireExpr(0, "yes/a")).values():
        assert gated.passes(what)
    counted = Filtered(Cause.ACCESS_CONTROL, flow, AclMessage(message))
    assert gated.filtered == {counted: 1}
    assert str(counted) == f"access_control/{flow.value}/{message}"
    control = QoS.of(Priority.CONTROL, CongestionControl.BLOCK)
    wanted: list[NetworkMessage] = []
    if message == "query":
        wanted = [ResponseFinal(request_id=7)]
    elif message in {"liveliness_query", "declare_liveliness_subscriber"}:
        wanted = [Declare(interest_id=9, qos=control, body=DeclareFinal())]
    assert gated.answers == wanted


def test_an_error_is_a_reply() -> None:
    gated = Gated(INGRESS, **denying("reply"))
    key = WireExpr(0, "no/a")
    assert not gated.passes(Response(request_id=1, key=key, body=Err(payload=b"")))


@pytest.mark.parametrize("flow", Flow)
def test_what_no_rule_speaks_of_passes(flow: Flow) -> None:
    gated = Gated(flow, **denying(*MESSAGES, key="**"))
    alias = WireExpr(0, "no/a")
    for message in (
        Declare(body=DeclareKeyExpr(expr_id=1, key=alias)),
        Declare(interest_id=3, body=DeclareFinal()),
        ResponseFinal(request_id=1),
        Oam(id=1, body=b""),
        Interest(mode=InterestMode.FINAL, id=4),
        Interest(mode=InterestMode.CURRENT_FUTURE, id=5, subscribers=True, queryables=True),
        Interest(mode=InterestMode.CURRENT, id=6, subscribers=True, key=alias),
    ):
        assert gated.passes(message)
    assert not gated.filtered


def test_aliases_of_both_sides() -> None:
    for flow in Flow:
        gated = Gated(flow, **denying("put"))
        gated.face.aliases.learn(1, "no")
        gated.face.aliases.learn(2, "yes")
        assert gated.face.aliases.declare("yes") == 1
        assert gated.face.aliases.declare("no") == 2
        # The number is that of the sender, or that of the receiver.
        theirs = Mapping.SENDER if flow is INGRESS else Mapping.RECEIVER
        ours = Mapping.RECEIVER if flow is INGRESS else Mapping.SENDER
        assert not gated.passes(put(WireExpr(1, "/a", theirs)))
        assert gated.passes(put(WireExpr(2, "/a", theirs)))
        assert gated.passes(put(WireExpr(1, "/a", ours)))
        assert not gated.passes(put(WireExpr(2, "/a", ours)))


@pytest.mark.parametrize(
    "key",
    [WireExpr(5, "/a"), WireExpr(0, ""), WireExpr(0, "a//b"), WireExpr(0, "a/" * 60 + "b")],
    ids=["unknown", "empty", "not canonical", "long"],
)
def test_a_key_that_cannot_be_read_is_never_allowed(key: WireExpr) -> None:
    gated = Gated(INGRESS, **denying("put"))
    for what in said(key).values():
        assert not gated.passes(what)
    sized = {"messages": ["put", "delete"], "key_exprs": ["x"], "size_limit": 5}
    small = Gated(INGRESS, low_pass_filter=[sized])
    assert small.passes(Push(key=key, body=Del()))
    assert not small.passes(Push(key=key, body=Put(payload=b"1")))
    rate = {"messages": ["put"], "rules": [{"key_expr": "**", "freq": 0}]}
    assert Gated(INGRESS, downsampling=[rate]).passes(Push(key=key, body=Put(payload=b"1")))


def test_an_interest_in_all_tokens_has_no_key_that_could_be_allowed() -> None:
    gated = Gated(EGRESS, **denying("put"))
    every = Interest(mode=InterestMode.CURRENT_FUTURE, id=3, tokens=True, subscribers=True)
    assert not gated.passes(every)
    assert len(gated.answers) == 1


def test_the_end_of_what_was_not_told_is_not_told() -> None:
    gated = Gated(EGRESS, **denying(*MESSAGES))
    empty = WireExpr(0, "", Mapping.RECEIVER)
    no, yes = WireExpr(0, "no/a"), WireExpr(0, "yes/a")
    ends: list[tuple[Any, Any]] = [
        (DeclareSubscriber, UndeclareSubscriber),
        (DeclareQueryable, UndeclareQueryable),
        (DeclareToken, UndeclareToken),
    ]
    for at, (declare, undeclare) in enumerate(ends):
        refused, told = 2 * at + 1, 2 * at + 2
        assert not gated.passes(Declare(body=declare(id=refused, key=no)))
        assert gated.passes(Declare(body=declare(id=told, key=yes)))
        assert not gated.passes(Declare(body=undeclare(id=refused, key=empty)))
        assert gated.passes(Declare(body=undeclare(id=told, key=empty)))
        # The number is free again.
        assert gated.passes(Declare(body=undeclare(id=refused, key=None)))
    interest = Interest(mode=InterestMode.FUTURE, id=20, tokens=True, key=no)
    assert not gated.passes(interest)
    assert not gated.passes(Interest(mode=InterestMode.FINAL, id=20))
    assert gated.passes(Interest(mode=InterestMode.FINAL, id=20))


def test_what_was_not_told_is_not_kept_for_ever() -> None:
    gated = Gated(EGRESS, **denying("declare_subscriber"))
    no = WireExpr(0, "no/a")
    most = gate._UNTOLD
    for at in range(1, most + 3):
        assert not gated.passes(Declare(body=DeclareSubscriber(id=at, key=no)))
    assert len(gated.gate._untold) == most
    assert gated.passes(Declare(body=UndeclareSubscriber(id=2)))
    assert not gated.passes(Declare(body=UndeclareSubscriber(id=3)))


def test_between_routers_an_end_is_known_by_its_key() -> None:
    gated = Gated(EGRESS, **denying("liveliness_token"))
    no, yes = WireExpr(0, "no/a"), WireExpr(0, "yes/a")
    assert not gated.passes(Declare(body=UndeclareToken(id=0, key=no)))
    assert gated.passes(Declare(body=UndeclareToken(id=0, key=yes)))


def rates(*rules: tuple[str, float], **more: Any) -> dict[str, Any]:
    made = [{"key_expr": key, "freq": freq} for key, freq in rules]
    return {"downsampling": [{"messages": ["put", "query"], "rules": made} | more]}


def test_rates() -> None:
    gated = Gated(INGRESS, **rates(("a/**", 2.0), ("b", 0), ("c", -1), ("a/x", 100)))
    times = (0.0, 0.4, 0.5, 0.99, 1.0, 7.0, 7.1)
    assert [gated.passes(put("a/x"), now) for now in times] == [
        *(True, False, True),
        *(False, True, True, False),
    ]
    # All keys of a rule, and all messages, share its time.
    assert not gated.passes(put("a/y"), 7.2)
    request = Request(request_id=1, key=WireExpr(0, "a/y"), body=Query())
    assert not gated.passes(request, 7.3)
    assert gated.answers == [ResponseFinal(request_id=1)]
    assert gated.passes(put("a/y"), 7.5)
    assert [gated.passes(put("b"), now) for now in (8.0, 1e9)] == [False, False]
    assert all(gated.passes(put("c"), 9.0) for _ in range(3))
    assert gated.passes(Push(key=WireExpr(0, "a/x"), body=Del()), 7.6)
    assert gated.filtered[Filtered(Cause.DOWNSAMPLING, INGRESS, AclMessage.PUT)] == 6


def test_each_session_has_its_own_time() -> None:
    settings = Config.from_dict(rates(("a", 1.0))).settings
    filters = Filters.of(settings)
    assert filters is not None
    first, second = (filters.steps(Party(), INGRESS)[0] for _ in range(2))
    assert first is not second


def test_a_later_rule_on_the_same_expression_is_in_place_of_the_earlier_one() -> None:
    gated = Gated(INGRESS, **rates(("a", 0), ("a", -1)))
    assert gated.passes(put("a"))


def limited(*limits: tuple[str, int]) -> dict[str, Any]:
    return {
        "low_pass_filter": [
            {"messages": ["put", "delete", "query", "reply"], "key_exprs": [key], "size_limit": n}
            for key, n in limits
        ]
    }


def test_sizes_are_of_payload_and_attachment() -> None:
    gated = Gated(EGRESS, **limited(("a/**", 4), ("a/b", 2)))
    key = WireExpr(0, "a/c")
    more = b"12"
    for size, passes in ((2, True), (3, False)):
        payload = bytes(size)
        asked = QueryBody(payload=payload, encoding=Encoding())
        messages: list[NetworkMessage] = [
            put("a/c", payload, attachment=more),
            Response(request_id=1, key=key, body=Reply(body=Put(payload=payload, attachment=more))),
            Response(request_id=1, key=key, body=Err(payload=payload + more)),
            Request(request_id=1, key=key, body=Query(body=asked, attachment=more)),
            Push(key=key, body=Del(attachment=payload + more)),
            Response(request_id=1, key=key, body=Reply(body=Del(attachment=payload + more))),
        ]
        assert [gated.passes(message) for message in messages] == [passes] * 6
    assert not gated.passes(put("a/b", b"123"))
    assert gated.passes(put("b", bytes(100)))
    assert gated.filtered.total() == 7


def overwriting(**more: Any) -> dict[str, Any]:
    item = {"messages": ["put"], "key_exprs": ["a/**"], "overwrite": {"priority": "real_time"}}
    return {"qos": {"network": [item | more]}}


def test_qos_is_overwritten_and_nothing_else() -> None:
    gated = Gated(INGRESS, **overwriting(overwrite={"congestion_control": "block_first"}))
    message = put("a/b", b"x", QoS.of(Priority.DATA_LOW, express=True), attachment=b"y")
    made = gated.gate(message, True, 0.0)
    assert isinstance(made, Push)
    first = CongestionControl.BLOCK_FIRST
    assert made.qos == QoS.of(Priority.DATA_LOW, first, express=True)
    assert (made.key, made.body) == (message.key, message.body)
    assert message.qos == QoS.of(Priority.DATA_LOW, express=True)
    other = put("b")
    assert gated.gate(other, True, 0.0) is other
    assert not gated.filtered


@pytest.mark.parametrize(
    ("step", "priority", "becomes"),
    [(1, 5, 6), (3, 5, 7), (7, 1, 7), (-3, 5, 5), (0, 2, 2)],
)
def test_steps_of_priority(step: int, priority: int, becomes: int) -> None:
    gated = Gated(INGRESS, **overwriting(overwrite={"priority": step}))
    made = gated.gate(put("a/b", qos=QoS.of(Priority(priority))), True, 0.0)
    assert isinstance(made, Push)
    assert made.qos.priority == becomes


@pytest.mark.parametrize(
    ("chosen", "qos", "reliable", "size", "is_so"),
    [
        ({"qos": {"priority": "data"}}, QoS(), True, 0, True),
        ({"qos": {"priority": "data"}}, QoS.of(Priority.DATA_LOW), True, 0, False),
        ({"qos": {"congestion_control": "drop", "express": False}}, QoS(), True, 0, True),
        ({"qos": {"express": True}}, QoS(), True, 0, False),
        ({"qos": {"reliability": "best_effort"}}, QoS(), True, 0, False),
        ({"qos": {"reliability": "best_effort"}}, QoS(), False, 0, True),
        ({"payload_size": "2.."}, QoS(), True, 2, True),
        ({"payload_size": "2.."}, QoS(), True, 1, False),
        ({"zids": ["a1"]}, QoS(), True, 0, True),
        ({"zids": ["b2"]}, QoS(), True, 0, False),
        ({"flows": ["egress"]}, QoS(), True, 0, False),
    ],
)
def test_which_messages_are_overwritten(
    chosen: dict[str, Any], qos: QoS, reliable: bool, size: int, is_so: bool
) -> None:
    gated = Gated(INGRESS, **overwriting(**chosen))
    message = put("a/b", bytes(size), qos)
    made = gated.gate(message, reliable, 0.0)
    assert isinstance(made, Push)
    assert (made.qos.priority is Priority.REAL_TIME) is is_so


@pytest.mark.parametrize(
    ("where", "is_so"),
    [
        ({}, True),
        ({"interfaces": ["lo", "x"]}, True),
        ({"interfaces": ["x"]}, False),
        ({"link_protocols": ["tls", "tcp"]}, True),
        ({"link_protocols": ["udp"], "interfaces": ["lo"]}, False),
        ({"flows": ["ingress"]}, True),
        ({"flows": ["egress"]}, False),
    ],
)
def test_whom_an_item_is_for(where: dict[str, Any], is_so: bool) -> None:
    settings = {
        "downsampling": rates(("a", 1.0), **where)["downsampling"],
        "low_pass_filter": [limited(("a", 1))["low_pass_filter"][0] | where],
        "qos": overwriting(**where)["qos"],
    }
    party = Party(interfaces=("lo", "eth0"), protocols=("tcp",))
    for name, value in settings.items():
        assert bool(Gated(INGRESS, party, **{name: value}).steps) is is_so


def test_they_are_passed_in_the_order_of_the_reference() -> None:
    settings = rates(("a", 1)) | denying("put") | overwriting() | limited(("a", 1))
    names = [type(step).__name__ for step in Gated(INGRESS, **settings).steps]
    assert names == ["RateStep", "AccessStep", "QosStep", "SizeStep"]


@given(st.sampled_from(Flow), st.lists(any_of("network"), max_size=6))
@given_settings(derandomize=True, database=None, deadline=None, max_examples=40)
def test_whatever_is_said_passes_or_does_not(flow: Flow, messages: list[NetworkMessage]) -> None:
    settings = rates(("**", 1.0)) | denying(*MESSAGES) | overwriting() | limited(("**", 10))
    gated = Gated(flow, **settings)
    gated.face.aliases.learn(1, "no")
    gated.face.aliases.declare("a")
    for message in messages:
        passed = gated.gate(message, True, 0.0)
        if passed is None:
            assert gated.filtered
        else:
            assert type(passed) is type(message)
            assert replace(passed, qos=message.qos) == message
