"""Very many declarations: they are told, and taken back, in portions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulation.network import live
from tests.unit.routing.scene import zid
from zenwire.routing import PEER, ROUTER, Face, Limits, Role, Send, Tables
from zenwire.routing.core import PORTION
from zenwire.routing.declarations import Kind
from zenwire.wire.data import Put, Query
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import Declaration, Declare, Interest, Push, Request
from zenwire.wire.values import InterestMode, WhatAmI, WireExpr

MANY = 4 * PORTION
BOTH = InterestMode.CURRENT_FUTURE


class Network:
    """A node with clients."""

    def __init__(self, role: Role = ROUTER) -> None:
        self.tables = Tables(zid("aa"), role, limits=Limits())
        self._last = 0

    def client(self) -> Face:
        self._last += 1
        return self.tables.add_face(zid(f"c{self._last}"), WhatAmI.CLIENT, 0.0)

    def say(self, face: Face, *bodies: Declaration) -> None:
        for body in bodies:
            self.tables.receive(face, Declare(body=body), 0.0)

    def declare(self, face: Face, many: int = MANY, start: int = 0) -> None:
        keys = (f"k/{n:06}" for n in range(start, start + many))
        self.say(face, *(DeclareSubscriber(id=n, key=WireExpr(0, k)) for n, k in enumerate(keys)))
        self.tables.outputs()

    def ask(self, face: Face, id: int = 1, mode: InterestMode = BOTH, key: str = "k/**") -> None:
        interest = Interest(mode=mode, id=id, subscribers=True, key=WireExpr(0, key))
        self.tables.receive(face, interest, 0.0)

    def told(self, face: Face) -> list[Declaration]:
        """What was said to a face since the last time."""
        return [
            out.message.body
            for out in self.tables.outputs()
            if isinstance(out, Send) and out.face is face and isinstance(out.message, Declare)
        ]

    def portions(self, face: Face) -> Iterator[list[Declaration]]:
        """What is said to a face, one turn after the other."""
        yield self.told(face)
        while self.tables.deadline is not None and self.tables.deadline <= 0.0:
            self.tables.tick(0.0)
            yield self.told(face)


def count(told: list[Declaration], kind: type[object]) -> int:
    return sum(isinstance(body, kind) for body in told)


def test_what_one_had_that_is_gone_ends_in_portions() -> None:
    net = Network()
    much, other = net.client(), net.client()
    net.declare(much)
    net.ask(other)
    list(net.portions(other))
    net.tables.remove_face(much)
    ends = [count(told, UndeclareSubscriber) for told in net.portions(other)]
    assert sum(ends) == MANY
    assert max(ends) <= PORTION
    assert not list(net.tables.declared())


def test_meanwhile_nothing_is_sent_to_it_and_others_are() -> None:
    net = Network()
    much, other, sender = net.client(), net.client(), net.client()
    net.declare(much)
    net.declare(other, 1)
    queryable = DeclareQueryable(id=1_000_000, key=WireExpr(0, "q"))
    net.say(much, queryable)
    net.tables.outputs()
    net.tables.remove_face(much)
    assert list(net.tables.declared())
    net.tables.outputs()
    push = Push(key=WireExpr(0, "k/000000"), body=Put(payload=b"x"))
    net.tables.receive(sender, push, 0.0)
    sends = [out for out in net.tables.outputs() if isinstance(out, Send)]
    assert [out.face for out in sends] == [other]
    net.tables.receive(sender, Request(request_id=1, key=WireExpr(0, "q"), body=Query()), 0.0)
    faces = {out.face for out in net.tables.outputs() if isinstance(out, Send)}
    assert faces == {sender}


def test_one_that_returns_meanwhile_keeps_what_it_declares_again() -> None:
    net = Network()
    much, other = net.client(), net.client()
    net.declare(much)
    net.ask(other)
    list(net.portions(other))
    net.tables.remove_face(much)
    again = net.tables.add_face(much.zid, WhatAmI.CLIENT, 0.0)
    net.declare(again)
    list(net.portions(other))
    assert sum(1 for _, _, face in net.tables.declared() if face is again) == MANY
    assert {face for _, _, face in net.tables.declared()} == {again}


@pytest.mark.parametrize("ends", [False, True])
def test_an_interest_in_much_is_answered_in_portions_and_then_final(ends: bool) -> None:
    net = Network()
    much, other = net.client(), net.client()
    net.declare(much)
    net.ask(other)
    turns = net.portions(other)
    first = next(turns)
    assert 0 < count(first, DeclareSubscriber) <= PORTION
    assert not count(first, DeclareFinal)
    if ends:
        net.ask(other, mode=InterestMode.FINAL)
        assert not [one for told in turns for one in told]
        return
    rest = [one for told in turns for one in told]
    assert count(first + rest, DeclareSubscriber) == MANY
    assert isinstance(rest[-1], DeclareFinal)
    keys = {body.key for body in first + rest if isinstance(body, DeclareSubscriber)}
    assert len(keys) == MANY


def test_what_changes_meanwhile_is_told_too() -> None:
    net = Network()
    much, other = net.client(), net.client()
    net.declare(much)
    net.ask(other)
    turns = net.portions(other)
    known = {body.id for body in next(turns) if isinstance(body, DeclareSubscriber)}
    net.say(much, DeclareSubscriber(id=MANY, key=WireExpr(0, "k/new")))
    net.say(much, UndeclareSubscriber(id=0), UndeclareSubscriber(id=MANY - 1))
    for told in turns:
        known |= {body.id for body in told if isinstance(body, DeclareSubscriber)}
        known -= {body.id for body in told if isinstance(body, UndeclareSubscriber)}
    # One more, and two less.
    assert len(known) == MANY - 1


def test_nobody_waits_for_what_another_asks() -> None:
    net = Network()
    much, greedy, modest = net.client(), net.client(), net.client()
    net.declare(much, 20 * PORTION)
    for id_ in range(1, 20):
        net.ask(greedy, id_)
    net.tables.outputs()
    net.ask(modest, key="k/000000")
    # What is little is told at once, whatever others wait for.
    told = net.told(modest)
    assert [type(body) for body in told] == [DeclareSubscriber, DeclareFinal]
    net.ask(modest, 2)
    turns = 0
    for told in net.portions(modest):
        turns += 1
        if count(told, DeclareFinal):
            break
    # It gets every other turn.
    assert turns <= 2 * 20 + 3


def test_a_face_that_goes_takes_along_what_was_to_be_told() -> None:
    net = Network()
    much, other = net.client(), net.client()
    net.declare(much)
    net.ask(other)
    net.tables.remove_face(other)
    net.tables.outputs()
    net.tables.tick(0.0)
    assert net.tables.deadline is None
    assert not net.tables.outputs()


def test_the_overview_does_not_tell_of_those_that_are_gone() -> None:
    net = Network()
    much, other = net.client(), net.client()
    net.declare(much)
    net.declare(other, 1)
    net.tables.remove_face(much)
    found = [one for one in net.tables.overview.declared(Kind.SUBSCRIBER) if one is not None]
    assert [(key, sources.clients) for key, sources in found] == [("k/000000", [other.zid])]


def test_a_peer_is_told_much_at_the_start_in_portions_and_then_that_it_was_all() -> None:
    net = Network(PEER)
    much = net.client()
    net.declare(much)
    peer = net.tables.add_face(zid("bb"), WhatAmI.PEER, 0.0)
    turns = list(net.portions(peer))
    assert max(map(len, turns)) <= 2 * PORTION
    told = [one for part in turns for one in part]
    assert count(told, DeclareSubscriber) == MANY
    assert isinstance(told[-1], DeclareFinal)
    assert count(told, DeclareFinal) == 1


def test_what_changes_while_a_peer_is_told_is_told_once() -> None:
    net = Network(PEER)
    much = net.client()
    net.declare(much)
    peer = net.tables.add_face(zid("bb"), WhatAmI.PEER, 0.0)
    net.say(much, DeclareSubscriber(id=MANY, key=WireExpr(0, "k/new")))
    net.say(much, UndeclareSubscriber(id=0), UndeclareSubscriber(id=MANY - 1))
    told = [one for part in net.portions(peer) for one in part]
    ids = [body.id for body in told if isinstance(body, DeclareSubscriber)]
    ends = [body.id for body in told if isinstance(body, UndeclareSubscriber)]
    assert len(ids) == len(set(ids))
    assert len(ids) - len(ends) == MANY - 1


def test_a_token_that_ends_before_it_was_told_is_not_told() -> None:
    net = Network()
    much, other, third = net.client(), net.client(), net.client()
    keys = [f"k/{n:06}" for n in range(MANY)]
    net.say(much, *(DeclareToken(id=n, key=WireExpr(0, key)) for n, key in enumerate(keys)))
    net.tables.outputs()

    def ask(face: Face, mode: InterestMode) -> None:
        net.tables.receive(face, Interest(mode=mode, id=1, tokens=True, key=WireExpr(0, "k/**")), 0)

    ask(other, BOTH)
    # It asks for what is to come alone, and so hears of the end of what was there before.
    ask(third, InterestMode.FUTURE)
    first = net.told(other)
    assert 0 < count(first, DeclareToken) < MANY
    net.say(much, UndeclareToken(id=MANY - 1))
    ends = [out for out in net.tables.outputs() if isinstance(out, Send)]
    assert [out.face for out in ends] == [third]
    told = first + [one for part in net.portions(other) for one in part]
    assert count(told, DeclareToken) == MANY - 1
    assert count(told, UndeclareToken) == 0
    assert count(told, DeclareFinal) == 1


@pytest.mark.parametrize("seed", range(6))
def test_networks_live_as_they_should_in_the_smallest_portions(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zenwire.routing.core.PORTION", 1)
    live(seed)
