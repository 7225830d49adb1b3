"""Arguments of a wrong type raise TypeError, and where there is something to await, that does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
