"""Arguments of a wrong type raise TypeError where they are given, here as in the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import zenoh as reference
import zenoh.ext

import zenwire
import zenwire.ext
from tests.interop.exchange import node_settings

pytestmark = pytest.mark.interop

Call = Callable[[Any, Any], Any]

CALLS: dict[str, Call] = {
    "Encoding": lambda z, s: z.Encoding(3),
    "with_schema": lambda z, s: z.Encoding("text/plain").with_schema(3),
    "KeyExpr": lambda z, s: z.KeyExpr(3),
    "autocanonize": lambda z, s: z.KeyExpr.autocanonize(3),
    "intersects": lambda z, s: z.KeyExpr("a").intersects(3),
    "join": lambda z, s: z.KeyExpr("a").join(3),
    "concat": lambda z, s: z.KeyExpr("a").concat(3),
    "Selector": lambda z, s: z.Selector(3),
    "Parameters": lambda z, s: z.Parameters(3),
    "ZBytes": lambda z, s: z.ZBytes(3),
    "Timestamp": lambda z, s: z.Timestamp(3, b"1"),
    "SourceInfo": lambda z, s: z.SourceInfo(3, 4),
    "QueryConsolidation": lambda z, s: z.QueryConsolidation(3),
    "WhatAmIMatcher": lambda z, s: z.WhatAmIMatcher(3),
    "put nothing": lambda z, s: s.put("a", None),
    "put a number": lambda z, s: s.put("a", 3),
    "put somewhere": lambda z, s: s.put(3, "x"),
    "put encoding": lambda z, s: s.put("a", "x", encoding=3),
    "put priority": lambda z, s: s.put("a", "x", priority=3),
    "put congestion_control": lambda z, s: s.put("a", "x", congestion_control=3),
    "put express": lambda z, s: s.put("a", "x", express=3),
    "put attachment": lambda z, s: s.put("a", "x", attachment=3),
    "put timestamp": lambda z, s: s.put("a", "x", timestamp=3),
    "put allowed_destination": lambda z, s: s.put("a", "x", allowed_destination=3),
    "put source_info": lambda z, s: s.put("a", "x", source_info=3),
    "put more": lambda z, s: s.put("a", "x", more=3),
    "delete": lambda z, s: s.delete("a", priority="x"),
    "publisher priority": lambda z, s: s.declare_publisher("a", priority=3),
    "publisher reliability": lambda z, s: s.declare_publisher("a", reliability=3),
    "publisher encoding": lambda z, s: s.declare_publisher("a", encoding=3),
    "publisher put": lambda z, s: s.declare_publisher("a").put(None),
    "subscriber": lambda z, s: s.declare_subscriber("a", allowed_origin=3),
    "queryable complete": lambda z, s: s.declare_queryable("a", complete=3),
    "queryable allowed_origin": lambda z, s: s.declare_queryable("a", allowed_origin="x"),
    "get": lambda z, s: s.get(3),
    "get target": lambda z, s: s.get("a", target=3),
    "get consolidation": lambda z, s: s.get("a", consolidation=3),
    "get timeout": lambda z, s: s.get("a", timeout="x"),
    "get accept_replies": lambda z, s: s.get("a", accept_replies=3),
    "get payload": lambda z, s: s.get("a", payload=3),
    "get encoding": lambda z, s: s.get("a", encoding=3),
    "get cancellation_token": lambda z, s: s.get("a", cancellation_token=3),
    "querier target": lambda z, s: s.declare_querier("a", target=3),
    "querier consolidation": lambda z, s: s.declare_querier("a", consolidation=3),
    "token": lambda z, s: s.liveliness().declare_token(3),
    "liveliness history": lambda z, s: s.liveliness().declare_subscriber("a", history=3),
    "liveliness timeout": lambda z, s: s.liveliness().get("a", timeout="x"),
    "declare_keyexpr": lambda z, s: s.declare_keyexpr(3),
    "scout what": lambda z, s: z.scout(what=3),
    "scout config": lambda z, s: z.scout(config=3),
    "FifoChannel": lambda z, s: z.handlers.FifoChannel("x"),
    "CacheConfig": lambda z, s: z.ext.CacheConfig("x"),
    "CacheConfig replies": lambda z, s: z.ext.CacheConfig(1, replies_config=3),
    "RepliesConfig": lambda z, s: z.ext.RepliesConfig(priority=3),
    "HistoryConfig": lambda z, s: z.ext.HistoryConfig(detect_late_publishers=1),
    "advanced publisher": lambda z, s: z.ext.declare_advanced_publisher(s, 3),
    "advanced publisher of": lambda z, s: z.ext.declare_advanced_publisher("s", "a"),
    "advanced publisher cache": lambda z, s: z.ext.declare_advanced_publisher(s, "a", cache=3),
    "advanced subscriber": lambda z, s: z.ext.declare_advanced_subscriber(s, "a", history=3),
    "advanced subscriber of": lambda z, s: z.ext.declare_advanced_subscriber(3, "a"),
}
"""Each gets the module and a session."""


@pytest.fixture(scope="module")
def sessions() -> Iterator[list[tuple[Any, Any]]]:
    settings = json.dumps(node_settings("peer"))
    modules: list[Any] = [reference, zenwire]
    found = [(one, one.open(one.Config.from_json5(settings))) for one in modules]
    yield found
    for _, session in found:
        session.close()


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_type(name: str, sessions: list[tuple[Any, Any]]) -> None:
    for module, session in sessions:
        with pytest.raises(TypeError):
            CALLS[name](module, session)
