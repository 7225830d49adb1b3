"""Arguments of a wrong type raise TypeError, and where there is something to await, that does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import zenwire
from tests.unit.api.nodes import config, run
from zenwire import aio
from zenwire.api.checks import check

CALLS: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda s: s.put("a", None),
    "attachment": lambda s: s.put("a", "x", attachment=3),
    "encoding": lambda s: s.put("a", "x", encoding=3),
    "priority": lambda s: s.put("a", "x", priority=3),
    "congestion_control": lambda s: s.put("a", "x", congestion_control="drop"),
    "express": lambda s: s.put("a", "x", express=3),
    "timestamp": lambda s: s.put("a", "x", timestamp=3),
    "source_info": lambda s: s.put("a", "x", source_info=3),
    "instrumentation": lambda s: s.put("a", "x", timestamp_instrumentation=3),
    "allowed_destination": lambda s: s.put("a", "x", allowed_destination=3),
    "reliability": lambda s: s.put("a", "x", reliability=3),
    "delete": lambda s: s.delete("a", timestamp=3),
    "publisher": lambda s: s.declare_publisher("a", reliability=3),
    "publisher allowed_destination": lambda s: s.declare_publisher("a", allowed_destination=3),
    "subscriber": lambda s: s.declare_subscriber("a", allowed_origin="remote"),
    "queryable": lambda s: s.declare_queryable("a", allowed_origin=3),
    "complete": lambda s: s.declare_queryable("a", complete=3),
    "target": lambda s: s.get("a", target=3),
    "consolidation": lambda s: s.get("a", consolidation=3),
    "accept_replies": lambda s: s.get("a", accept_replies=3),
    "token": lambda s: s.get("a", cancellation_token=3),
    "querier": lambda s: s.declare_querier("a", target=3),
    "history": lambda s: s.liveliness().declare_subscriber("a", history=3),
    "undeclare": lambda s: s.undeclare(3),
    "advanced": lambda s: aio.ext.declare_advanced_publisher(3, "a"),  # type: ignore[arg-type]
    "cache": lambda s: aio.ext.declare_advanced_publisher(s, "a", cache=3),  # type: ignore[arg-type]
    "recovery": lambda s: aio.ext.declare_advanced_subscriber(s, "a", recovery=3),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type(name: str) -> None:
    async def main() -> None:
        async with aio.open(config()) as session:
            with pytest.raises(TypeError):
                await CALLS[name](session)

    run(main())


def test_a_payload_of_nothing() -> None:
    async def main() -> None:
        async with aio.open(config()) as session, session.declare_publisher("a") as publisher:
            with pytest.raises(TypeError, match="b'' is an empty one"):
                await publisher.put(None)  # type: ignore[arg-type]

    run(main())


def test_none_is_of_any_kind() -> None:
    check(priority=None, timestamp=None)
    with pytest.raises(TypeError, match="priority is a Priority, not int"):
        check(priority=5)


class Wrong:
    """An argument of no kind that anything takes."""


class Unhashable(Wrong):
    __hash__ = None  # type: ignore[assignment]


_QOS = ("congestion_control", "priority", "express")
_BODY = ("attachment", "timestamp", "timestamp_instrumentation", "source_info")
_ASK = ("target", "consolidation", "accept_replies", "timeout", "allowed_destination", *_QOS)
_VALUE = ("payload", "encoding", "attachment", "source_info", "cancellation_token")

KEYWORDS: dict[str, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    "session.put": (
        ("a", "x"),
        ("encoding", "allowed_destination", "reliability", *_QOS, *_BODY),
    ),
    "session.delete": (("a",), ("allowed_destination", "reliability", *_QOS, *_BODY)),
    "session.get": (("a",), ("handler", "budget", "timestamp_instrumentation", *_ASK, *_VALUE)),
    "session.declare_querier": (("a",), _ASK),
    "session.declare_publisher": (
        ("a",),
        ("encoding", "reliability", "allowed_destination", *_QOS),
    ),
    "session.declare_subscriber": (("a",), ("handler", "allowed_origin")),
    "session.declare_queryable": (("a",), ("handler", "complete", "allowed_origin")),
    "publisher.put": (("x",), ("encoding", *_BODY)),
    "publisher.delete": ((), _BODY),
    "publisher.declare_matching_listener": ((), ("handler",)),
    "querier.get": ((), ("handler", "parameters", "timestamp_instrumentation", *_VALUE)),
    "liveliness.declare_subscriber": (("a",), ("handler", "history")),
    "liveliness.get": (("a",), ("handler", "timeout", "cancellation_token")),
    "info.declare_transport_events_listener": ((), ("handler", "history")),
    "info.declare_link_events_listener": ((), ("handler", "history")),
    "query.reply": (("a", "x"), ("encoding", "attachment", "timestamp", *_QOS)),
    "query.reply_del": (("a",), ("attachment", "timestamp", *_QOS)),
    "query.reply_err": (("x",), ("encoding",)),
    "module.open": ((), ("config",)),
    "module.scout": ((), ("handler", "what", "config")),
}
"""Calls, what they need, and arguments that are checked."""

POSITIONAL: dict[str, tuple[str, tuple[Any, ...]]] = {
    "session.put": ("key_expr", ("x",)),
    "session.delete": ("key_expr", ()),
    "session.get": ("selector", ()),
    "session.declare_keyexpr": ("key_expr", ()),
    "session.declare_publisher": ("key_expr", ()),
    "session.declare_subscriber": ("key_expr", ()),
    "session.declare_queryable": ("key_expr", ()),
    "session.declare_querier": ("key_expr", ()),
    "session.undeclare": ("obj", ()),
    "publisher.put": ("payload", ()),
    "liveliness.declare_token": ("key_expr", ()),
    "liveliness.declare_subscriber": ("key_expr", ()),
    "liveliness.get": ("key_expr", ()),
    "query.reply": ("key_expr", ("x",)),
    "query.reply_del": ("key_expr", ()),
    "query.reply_err": ("payload", ()),
}
"""Calls, the name of their first argument, and what follows it."""


def wrong_calls(objects: dict[str, Any]) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Each call of ``objects`` with one argument of a wrong type, and its name."""
    for wrong in (Wrong(), Unhashable()):
        for call, (given, names) in KEYWORDS.items():
            owner, method = call.split(".")
            for name in names:
                function = getattr(objects[owner], method)
                yield call, name, partial(function, *given, **{name: wrong})
        for call, (name, rest) in POSITIONAL.items():
            owner, method = call.split(".")
            yield call, name, partial(getattr(objects[owner], method), wrong, *rest)
        yield "session.put", "payload", partial(objects["session"].put, "a", wrong)
        yield "query.reply", "payload", partial(objects["query"].reply, "a", wrong)


def complaint(call: str, name: str, error: BaseException | None) -> str | None:
    """What is wrong with an error, or None: it names the argument, and the type that it got."""
    words = set(str(error).split()) if isinstance(error, TypeError) else set()
    if {name, "not"} <= words and any(kind in str(error) for kind in ("Wrong", "Unhashable")):
        return None
    return f"{call}({name}=): {error!r}"


def test_errors_of_asyncio_name_the_argument() -> None:
    async def main() -> list[str]:
        found: list[str | None] = []
        async with (
            aio.open(config()) as session,
            session.declare_publisher("p") as publisher,
            session.declare_querier("q") as querier,
            session.declare_queryable("a") as queryable,
        ):
            _replies = await session.get("a")
            query = await queryable.recv()
            objects = {
                "session": session,
                "publisher": publisher,
                "querier": querier,
                "query": query,
                "liveliness": session.liveliness(),
                "info": session.info,
                "module": aio,
            }
            for call, name, make in wrong_calls(objects):
                error: BaseException | None = None
                try:
                    made = make()
                    if inspect.isawaitable(made):
                        await made
                except Exception as e:  # noqa: BLE001 # which one is the test
                    error = e
                found.append(complaint(call, name, error))
            query.drop()
        return [one for one in found if one is not None]

    assert run(main()) == []


def test_errors_of_threads_name_the_argument() -> None:
    found: list[str | None] = []
    with zenwire.open(config()) as session:
        queryable = session.declare_queryable("a")
        _replies = session.get("a")
        query = queryable.recv()
        objects = {
            "session": session,
            "publisher": session.declare_publisher("p"),
            "querier": session.declare_querier("q"),
            "query": query,
            "liveliness": session.liveliness(),
            "info": session.info,
            "module": zenwire,
        }
        for call, name, make in wrong_calls(objects):
            error: BaseException | None = None
            try:
                make()
            except Exception as e:  # noqa: BLE001 # which one is the test
                error = e
            found.append(complaint(call, name, error))
        query.drop()
    assert [one for one in found if one is not None] == []
