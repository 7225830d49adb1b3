"""Values of the API, with the names, signatures and texts of eclipse-zenoh.

Each stands on the value of the wire it comes from (``from_wire``, ``wire``), and is made when it
is asked for. They are equal by what they say, and can be hashed unless they can change.
"""

from zenwire.api.values.encoding import Encoding
from zenwire.api.values.enums import (
    CongestionControl,
    ConsolidationMode,
    Locality,
    Priority,
    QueryTarget,
    Reliability,
    ReplyKeyExpr,
    SampleKind,
    WhatAmI,
    WhatAmIMatcher,
)
from zenwire.api.values.ids import EntityGlobalId, SourceInfo, TimestampId, ZenohId
from zenwire.api.values.network import (
    Hello,
    Link,
    LinkEvent,
    MatchingStatus,
    Transport,
    TransportEvent,
)
from zenwire.api.values.query import QueryConsolidation, Reply, ReplyError
from zenwire.api.values.sample import Sample
from zenwire.api.values.selector import (
    IntoKeyExpr,
    IntoParameters,
    IntoSelector,
    Parameters,
    Selector,
    key_expr_of,
)
from zenwire.api.values.stack import (
    InterceptionPoint,
    TimestampContext,
    TimestampInstrumentation,
    TimestampInstrumentationBuilder,
    TimestampStack,
    TimestampStackRecord,
)
from zenwire.api.values.time import NTP64, Timestamp
from zenwire.api.values.zbytes import IntoZBytes, ZBytes
from zenwire.keyexpr import KeyExpr, SetIntersectionLevel

__all__ = [
    "NTP64",
    "CongestionControl",
    "ConsolidationMode",
    "Encoding",
    "EntityGlobalId",
    "Hello",
    "InterceptionPoint",
    "IntoKeyExpr",
    "IntoParameters",
    "IntoSelector",
    "IntoZBytes",
    "KeyExpr",
    "Link",
    "LinkEvent",
    "Locality",
    "MatchingStatus",
    "Parameters",
    "Priority",
    "QueryConsolidation",
    "QueryTarget",
    "Reliability",
    "Reply",
    "ReplyError",
    "ReplyKeyExpr",
    "Sample",
    "SampleKind",
    "Selector",
    "SetIntersectionLevel",
    "SourceInfo",
    "Timestamp",
    "TimestampContext",
    "TimestampId",
    "TimestampInstrumentation",
    "TimestampInstrumentationBuilder",
    "TimestampStack",
    "TimestampStackRecord",
    "Transport",
    "TransportEvent",
    "WhatAmI",
    "WhatAmIMatcher",
    "ZBytes",
    "ZenohId",
    "key_expr_of",
]
