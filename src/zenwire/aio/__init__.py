"""Zenoh for asyncio, with the vocabulary of eclipse-zenoh.

    async with zenwire.aio.open() as session:
        async with session.declare_subscriber("demo/**") as subscriber:
            async for sample in subscriber:
                ...

What waits is awaited, what is declared can be awaited or entered with ``async with``, what comes
is read with ``async for`` or given to a callback, plain or ``async``. Both run in the event loop:
what takes long belongs into ``asyncio.to_thread``. Nothing that is slow delays the others, but what
it does not take in time is dropped, by a policy that can be chosen, and counted in ``dropped``.
``zenwire.aio.ext`` is `zenwire.ext` for these sessions.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from zenwire.api.awaited import Awaited
from zenwire.api.columnar import columnar
from zenwire.api.handlers import (
    Callback,
    Channel,
    DefaultHandler,
    FifoChannel,
    IntoHandler,
    RingChannel,
    on_callback_error,
)
from zenwire.api.info import LinkEventsListener, SessionInfo, TransportEventsListener
from zenwire.api.liveliness import Liveliness, LivelinessToken
from zenwire.api.matching import MatchingListener
from zenwire.api.opening import Scout, open, scout  # noqa: A004 # eclipse-zenoh's name
from zenwire.api.publisher import Publisher
from zenwire.api.querier import Querier
from zenwire.api.query import Query
from zenwire.api.queryable import Queryable
from zenwire.api.replies import CancellationToken, Replies, ReplyChannel
from zenwire.api.session import Session
from zenwire.api.subscriber import Subscriber
from zenwire.api.values import (
    NTP64,
    CongestionControl,
    ConsolidationMode,
    Encoding,
    EntityGlobalId,
    Hello,
    InterceptionPoint,
    IntoKeyExpr,
    IntoParameters,
    IntoSelector,
    IntoZBytes,
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
    WrongLoop,
    ZError,
)
from zenwire.links import LinkError
from zenwire.node.config import Config

if TYPE_CHECKING:
    from zenwire.aio import ext

__all__ = [
    "NTP64",
    "Awaited",
    "Callback",
    "CancellationToken",
    "Channel",
    "ChannelClosed",
    "Config",
    "ConfigError",
    "CongestionControl",
    "ConsolidationMode",
    "DefaultHandler",
    "EncodeError",
    "Encoding",
    "EntityGlobalId",
    "FifoChannel",
    "ForkedSession",
    "Hello",
    "InterceptionPoint",
    "IntoHandler",
    "IntoKeyExpr",
    "IntoParameters",
    "IntoSelector",
    "IntoZBytes",
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
    "Replies",
    "Reply",
    "ReplyChannel",
    "ReplyError",
    "ReplyKeyExpr",
    "RingChannel",
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
    "WrongLoop",
    "ZBytes",
    "ZError",
    "ZenohId",
    "columnar",
    "ext",
    "on_callback_error",
    "open",
    "scout",
]


def __getattr__(name: str) -> object:
    # Not all programs need it.
    if name == "ext":
        globals()[name] = found = import_module("zenwire.aio.ext")
        return found
    raise AttributeError(f"module 'zenwire.aio' has no attribute {name!r}", name=name)
