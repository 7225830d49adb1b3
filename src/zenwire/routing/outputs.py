"""What routing gives back: messages for faces, and events for sessions and for the node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from zenwire.routing.faces import Face
    from zenwire.wire.data import Del, Err, Put, Query
    from zenwire.wire.locator import Locator
    from zenwire.wire.network import NetworkMessage
    from zenwire.wire.structs import ResponderId, TimestampStack
    from zenwire.wire.values import CloseReason, QoS, WhatAmI, ZenohId

__all__ = [
    "CloseFace",
    "Event",
    "LivelinessChanged",
    "MatchingChanged",
    "NodeKnown",
    "Output",
    "QueryFinished",
    "QueryReceived",
    "ReplyReceived",
    "SampleReceived",
    "Send",
    "finished_of",
    "query_of",
    "reply_of",
    "sample_of",
    "send_of",
]


class Send(NamedTuple):
    """Send the message to the face.

    Declarations, interests and OAM must go reliably and in order: their QoS says so.
    Equal messages for several faces are the same object.
    """

    face: Face
    message: NetworkMessage
    reliable: bool = True


def send_of(face: Face, message: NetworkMessage, reliable: bool) -> Send:
    """A Send, in half the time: there is one for each message."""
    return tuple.__new__(Send, (face, message, reliable))


class CloseFace(NamedTuple):
    """The face broke the protocol: close its session, then call ``remove_face``."""

    face: Face
    reason: CloseReason
    why: str


class SampleReceived(NamedTuple):
    """A PUT or DEL for these subscribers; each is named once, whichever of its keys match."""

    subscribers: tuple[int, ...]
    key: str
    body: Put | Del
    qos: QoS
    timestamp_stack: TimestampStack | None = None
    reliable: bool = True
    """It came in a lane that loses nothing."""


def sample_of(  # noqa: PLR0917 # as the fields of the tuple
    subscribers: tuple[int, ...],
    key: str,
    body: Put | Del,
    qos: QoS,
    timestamp_stack: TimestampStack | None,
    reliable: bool,
) -> SampleReceived:
    """A SampleReceived, in half the time: there is one for each message."""
    values = subscribers, key, body, qos, timestamp_stack, reliable
    return tuple.__new__(SampleReceived, values)


class QueryReceived(NamedTuple):
    """A query for these queryables of one session.

    Each of them answers with ``Session.reply…(query, …)`` as often as it likes, then once with
    ``Session.finish(query, queryable)``.
    """

    query: int
    queryables: tuple[int, ...]
    key: str
    body: Query
    qos: QoS
    timeout: int | None
    """Milliseconds that the asker gave; this node enforces it."""
    local: bool
    """Asked by the same session."""
    budget: int | None = None
    timestamp_stack: TimestampStack | None = None


def query_of(  # noqa: PLR0917 # as the fields of the tuple
    query: int,
    queryables: tuple[int, ...],
    key: str,
    body: Query,
    qos: QoS,
    timeout: int | None,
    local: bool,
    budget: int | None,
    timestamp_stack: TimestampStack | None,
) -> QueryReceived:
    """A QueryReceived, in half the time."""
    values = query, queryables, key, body, qos, timeout, local, budget, timestamp_stack
    return tuple.__new__(QueryReceived, values)


class ReplyReceived(NamedTuple):
    """One answer to a query, or to a liveliness query, of a session.

    For an Err the key is empty or the queryable's choice, and means nothing.
    """

    query: int
    key: str
    body: Put | Del | Err
    responder: ResponderId | None
    qos: QoS
    timestamp_stack: TimestampStack | None = None


def reply_of(  # noqa: PLR0917 # as the fields of the tuple
    query: int,
    key: str,
    body: Put | Del | Err,
    responder: ResponderId | None,
    qos: QoS,
    timestamp_stack: TimestampStack | None,
) -> ReplyReceived:
    """A ReplyReceived, in half the time."""
    return tuple.__new__(ReplyReceived, (query, key, body, responder, qos, timestamp_stack))


class QueryFinished(NamedTuple):
    """No more replies: all sides are done, or the time is over. The id is void from here on."""

    query: int


def finished_of(query: int) -> QueryFinished:
    """A QueryFinished, in half the time."""
    return tuple.__new__(QueryFinished, (query,))


@dataclass(frozen=True, slots=True)
class LivelinessChanged:
    """A key became alive, or its last token is gone, for these liveliness subscribers."""

    subscribers: tuple[int, ...]
    key: str
    alive: bool


@dataclass(frozen=True, slots=True)
class MatchingChanged:
    """A publisher or querier has somebody on the other side now, or nobody any more."""

    id: int
    matching: bool


@dataclass(frozen=True, slots=True)
class NodeKnown:
    """Gossip told of a node that is no neighbour. Whether to connect is the node's decision."""

    zid: ZenohId
    whatami: WhatAmI
    locators: tuple[Locator, ...]
    told_by: Face


Event = (
    SampleReceived
    | QueryReceived
    | ReplyReceived
    | QueryFinished
    | LivelinessChanged
    | MatchingChanged
    | NodeKnown
)
"""For a session, or for the node itself."""

Output = Send | CloseFace | Event
