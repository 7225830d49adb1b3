"""What a session can try on keys, and what comes of it: one function for each kind of message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import zenoh

from tests.interop.filtering import Heard, Pair

__all__ = ["TRIES", "Outcome"]

Outcome = dict[str, list[str]]
"""By a word, what somebody got to see."""

_ASKED = 3
"""Now and then the reference ends a query for tokens before its replies."""
_TIMEOUT = 30


def _plain(key: str) -> str:
    """A key that an expression includes."""
    return key.replace("**", "a/b").replace("*", "a")


@contextmanager
def _kept(declared: Sequence[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        for one in declared:
            one.undeclare()


def _shown(sample: Any) -> str:
    sign = "-" if str(sample.kind) == "SampleKind.DELETE" else ""
    return f"{sign}{sample.key_expr}"


def _replies(session: Any, key: str, **how: Any) -> list[str]:
    return [
        f"!{reply.err.payload.to_string()}" if reply.ok is None else _shown(reply.ok)
        for reply in session.get(key, **how)
    ]


def _matching(one: Any) -> str:
    return str(one.matching_status.matching)


def puts(pair: Pair, keys: Sequence[str]) -> Outcome:
    heard = pair.heard()
    with _kept([pair.observer.declare_subscriber("m/**", heard.handler)]):
        pair.told("observer")
        for key in keys:
            pair.actor.put(key, "x")
        pair.said("actor")
    return {"seen": sorted(map(_shown, heard.all()))}


def deletes(pair: Pair, keys: Sequence[str]) -> Outcome:
    heard = pair.heard()
    with _kept([pair.observer.declare_subscriber("m/**", heard.handler)]):
        pair.told("observer")
        for key in keys:
            pair.actor.delete(key)
        pair.said("actor")
    return {"seen": sorted(map(_shown, heard.all()))}


def subscribes(pair: Pair, keys: Sequence[str]) -> Outcome:
    """What is put, and deleted, for them after they subscribed, and after they ended that."""
    takers = {key: Heard() for key in keys}
    seen: Outcome = {}
    with _kept(
        [pair.actor.declare_subscriber(key, heard.handler) for key, heard in takers.items()]
    ):
        pair.told("actor")
        for key in keys:
            pair.observer.put(_plain(key), "x")
            pair.observer.delete(_plain(key))
        pair.said("observer")
        for key, heard in takers.items():
            seen[key] = sorted(map(_shown, heard.all()))
    pair.told("actor")
    with pair.observer.declare_publisher(_plain(keys[0])) as publisher:
        pair.told("observer")
        pair.told("actor")
        seen["left"] = [_matching(publisher)]
    return seen


def asks(pair: Pair, keys: Sequence[str]) -> Outcome:
    """Queries, those who see them, and their replies."""
    asked: list[str] = []

    def answer(query: zenoh.Query) -> None:
        with query:
            asked.append(str(query.key_expr))
            query.reply(_plain(str(query.key_expr)), "x")
            query.reply_err("no")

    seen: Outcome = {}
    with _kept([pair.observer.declare_queryable("m/**", answer)]):
        pair.told("observer")
        for key in keys:
            seen[key] = sorted(_replies(pair.actor, key, timeout=_TIMEOUT))
    return seen | {"asked": sorted(asked)}


def answers(pair: Pair, keys: Sequence[str]) -> Outcome:
    """Queryables, the queries they see, and who gets their replies."""
    asked: list[str] = []

    def answer(query: zenoh.Query) -> None:
        with query:
            asked.append(str(query.key_expr))
            query.reply(query.key_expr, "x")
            query.reply_del(query.key_expr)
            query.reply_err("no")

    seen: Outcome = {}
    with _kept([pair.actor.declare_queryable(key, answer) for key in keys]):
        pair.told("actor")
        for key in keys:
            how = {
                "target": pair.api.QueryTarget.ALL,
                "consolidation": pair.api.ConsolidationMode.NONE,
            }
            replies = _replies(pair.observer, _plain(key), timeout=_TIMEOUT, **how)
            seen[key] = sorted(replies)
    return seen | {"asked": sorted(asked)}


def lives(pair: Pair, keys: Sequence[str]) -> Outcome:
    """Tokens, and who sees them come and go."""
    heard = pair.heard()
    seen: Outcome = {}
    with _kept([pair.observer.liveliness().declare_subscriber("m/**", heard.handler)]):
        pair.told("observer")
        with _kept([pair.actor.liveliness().declare_token(key) for key in keys]):
            pair.told("actor")
            seen["came"] = sorted(map(_shown, heard.all()))
        pair.told("actor")
        seen["went"] = sorted(map(_shown, heard.all()))
    return seen


def watches(pair: Pair, keys: Sequence[str], *, history: bool) -> Outcome:
    """Subscribers of tokens, and what they see."""
    takers = {key: Heard() for key in keys}
    tokens: list[Any] = []

    def declare() -> None:
        live = pair.observer.liveliness()
        tokens.extend(live.declare_token(_plain(key)) for key in keys)
        pair.told("observer")

    if history:
        declare()
    watcher = pair.actor.liveliness()
    with _kept(
        [
            watcher.declare_subscriber(key, heard.handler, history=history)
            for key, heard in takers.items()
        ]
    ):
        pair.told("actor")
        if not history:
            declare()
        for token in tokens:
            token.undeclare()
        pair.told("observer")
    pair.told("actor")
    # What came too late for a query, the reference gives to subscribers once more.
    return {key: sorted(set(map(_shown, heard.all()))) for key, heard in takers.items()}


def sees(pair: Pair, keys: Sequence[str]) -> Outcome:
    """Queries for tokens."""
    seen: Outcome = {}
    with _kept([pair.observer.liveliness().declare_token(_plain(key)) for key in keys]):
        pair.told("observer")
        for key in keys:
            found: set[str] = set()
            for _ in range(_ASKED):
                found |= set(_replies(pair.actor.liveliness(), key, timeout=_TIMEOUT))
                if found:
                    break
            seen[key] = sorted(found)
    pair.told("observer")
    return seen


def matches(pair: Pair, keys: Sequence[str]) -> Outcome:
    """Publishers and queriers, and whether they learn that there is somebody."""
    seen: Outcome = {}
    subscribers = [
        pair.observer.declare_subscriber(_plain(key), pair.heard().handler) for key in keys
    ]
    queryables = [
        pair.observer.declare_queryable(_plain(key), pair.heard().handler) for key in keys
    ]
    with _kept([*subscribers, *queryables]):
        pair.told("observer")
        publishers = [pair.actor.declare_publisher(key) for key in keys]
        queriers = [pair.actor.declare_querier(key) for key in keys]
        with _kept([*publishers, *queriers]):
            pair.told("actor")
            pair.told("observer")
            for one in publishers:
                seen[f"p {one.key_expr}"] = [_matching(one)]
            for other in queriers:
                seen[f"q {other.key_expr}"] = [_matching(other)]
    pair.told("observer")
    return seen


TRIES: dict[str, Callable[[Pair, Sequence[str]], Outcome]] = {
    "put": puts,
    "delete": deletes,
    "declare_subscriber": subscribes,
    "query": asks,
    "declare_queryable": answers,
    "liveliness_token": lives,
    "declare_liveliness_subscriber": lambda pair, keys: watches(pair, keys, history=False),
    "liveliness history": lambda pair, keys: watches(pair, keys, history=True),
    "liveliness_query": sees,
    "matching": matches,
}
