"""zenwire: a Zenoh 1.x node in Python, and a pipeline from Zenoh traffic to tables and back.

    import zenwire

    with zenwire.open() as session:
        session.put("demo/greeting", "hello")

The names are those of eclipse-zenoh: ``import zenwire as zenoh`` runs its programs, docs/api.md says
what is different. ``zenwire.aio`` is the same for asyncio. The layers are packages, and imports go
down only; docs/architecture.md has the map. Names are imported when they are asked for, so that
``import zenwire.wire`` loads nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zenwire import aio, ext, handlers
    from zenwire.api.columnar import columnar
    from zenwire.api.handlers import on_callback_error
    from zenwire.api.values import (
        NTP64,
        CongestionControl,
        ConsolidationMode,
        Encoding,
        EntityGlobalId,
        Hello,
        InterceptionPoint,
        KeyExpr,
        Link,
        LinkEvent,
        Locality,
        MatchingStatus,
        Parameters,
        Priority,
        QueryConsolidation,
        QueryTarget,
        Reliability,
        Reply,
        ReplyError,
        ReplyKeyExpr,
        Sample,
        SampleKind,
        Selector,
        SetIntersectionLevel,
        SourceInfo,
        Timestamp,
        TimestampContext,
        TimestampId,
        TimestampInstrumentation,
        TimestampInstrumentationBuilder,
        TimestampStack,
        TimestampStackRecord,
        Transport,
        TransportEvent,
        WhatAmI,
        WhatAmIMatcher,
        ZBytes,
        ZenohId,
    )
    from zenwire.errors import (
        ChannelClosed,
        ConfigError,
        EncodeError,
        ForkedSession,
        KeyExprError,
        SessionClosed,
        Timeout,
        Undeclared,
        ZError,
    )
    from zenwire.links import LinkError
    from zenwire.node.config import Config
    from zenwire.sync import (
        CancellationToken,
        Handler,
        LinkEventsListener,
        Liveliness,
        LivelinessToken,
        MatchingListener,
        Publisher,
        Querier,
        Query,
        Queryable,
        Scout,
        Session,
        SessionInfo,
        Subscriber,
        TransportEventsListener,
        init_log_from_env_or,
        open,  # noqa: A004 # eclipse-zenoh's name
        scout,
        try_init_log_from_env,
    )

__all__ = [
    "NTP64",
    "CancellationToken",
    "ChannelClosed",
    "Config",
    "ConfigError",
    "CongestionControl",
    "ConsolidationMode",
    "EncodeError",
    "Encoding",
    "EntityGlobalId",
    "ForkedSession",
    "Handler",
    "Hello",
    "InterceptionPoint",
    "KeyExpr",
    "KeyExprError",
    "Link",
    "LinkError",
    "LinkEvent",
    "LinkEventsListener",
    "Liveliness",
    "LivelinessToken",
    "Locality",
    "MatchingListener",
    "MatchingStatus",
    "Parameters",
    "Priority",
    "Publisher",
    "Querier",
    "Query",
    "QueryConsolidation",
    "QueryTarget",
    "Queryable",
    "Reliability",
    "Reply",
    "ReplyError",
    "ReplyKeyExpr",
    "Sample",
    "SampleKind",
    "Scout",
    "Selector",
    "Session",
    "SessionClosed",
    "SessionInfo",
    "SetIntersectionLevel",
    "SourceInfo",
    "Subscriber",
    "Timeout",
    "Timestamp",
    "TimestampContext",
    "TimestampId",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
    "Transport",
    "TransportEvent",
    "TransportEventsListener",
    "Undeclared",
    "WhatAmI",
    "WhatAmIMatcher",
    "ZBytes",
    "ZError",
    "ZenohId",
    "__version__",
    "aio",
    "columnar",
    "ext",
    "handlers",
    "init_log_from_env_or",
    "on_callback_error",
    "open",
    "scout",
    "try_init_log_from_env",
]

__version__ = "0.1.0.dev0"

_MODULES = ("aio", "ext", "handlers")

_HOMES = (
    "zenwire.errors",
    "zenwire.api.values",
    "zenwire.node.config",
    "zenwire.links",
    "zenwire.sync",
    "zenwire.api.handlers",
    "zenwire.api.columnar",
)
"""Where the names are, looked for in this order: zenwire.sync has a Handler of its own."""


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"zenwire.{name}")
    if name == "shm":
        raise AttributeError("zenwire has no shared memory: payloads travel over links", name=name)
    if name in __all__:
        for home in map(import_module, _HOMES):
            if name in home.__all__:
                globals()[name] = found = getattr(home, name)
                return found
    raise AttributeError(f"module 'zenwire' has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
