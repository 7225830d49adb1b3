"""Messages as rules speak of them: what kind they are, on which key, and how large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire.node.config.interceptors import AclMessage
from zenwire.wire.data import Del, Err, Put, Reply
from zenwire.wire.declare import (
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.network import Declare, Interest, Push, Request, Response
from zenwire.wire.values import InterestMode

if TYPE_CHECKING:
    from zenwire.wire.network import NetworkMessage
    from zenwire.wire.values import WireExpr

__all__ = ["Told", "payload_size", "size", "told"]

_DECLARED: Final = {
    DeclareSubscriber: AclMessage.DECLARE_SUBSCRIBER,
    DeclareQueryable: AclMessage.DECLARE_QUERYABLE,
    DeclareToken: AclMessage.LIVELINESS_TOKEN,
}
_UNDECLARED: Final = {
    UndeclareSubscriber: AclMessage.DECLARE_SUBSCRIBER,
    UndeclareQueryable: AclMessage.DECLARE_QUERYABLE,
    UndeclareToken: AclMessage.LIVELINESS_TOKEN,
}


_PUT: Final = AclMessage.PUT
_DELETE: Final = AclMessage.DELETE


class Told(NamedTuple):
    """What a message is. ``id`` is that of a declaration or an interest; ``ends`` that of an end.

    An end of something is of its kind, and need not have a key.
    """

    kind: AclMessage
    key: WireExpr | None
    id: int = 0
    ends: int | None = None


def told(message: NetworkMessage) -> Told | None:
    """None for what no rule speaks of."""
    if isinstance(message, Push):
        # As Told(kind, message.key), in half the time: there are many of these.
        kind = _PUT if type(message.body) is Put else _DELETE
        return tuple.__new__(Told, (kind, message.key, 0, None))
    if isinstance(message, Request):
        return Told(AclMessage.QUERY, message.key)
    if isinstance(message, Response):
        return Told(AclMessage.REPLY, message.key)
    if isinstance(message, Declare):
        body = message.body
        declared = _DECLARED.get(type(body))
        if declared is not None:
            return Told(declared, body.key, body.id)  # type: ignore[union-attr] # those have both
        undeclared = _UNDECLARED.get(type(body))
        if undeclared is not None:
            return Told(undeclared, body.key, ends=body.id)  # type: ignore[union-attr]
    elif isinstance(message, Interest):
        if message.mode is InterestMode.FINAL:
            return Told(AclMessage.DECLARE_LIVELINESS_SUBSCRIBER, None, ends=message.id)
        if message.tokens:
            now = message.mode is InterestMode.CURRENT
            kind = AclMessage.LIVELINESS_QUERY if now else AclMessage.DECLARE_LIVELINESS_SUBSCRIBER
            return Told(kind, message.key, message.id)
    return None


def payload_size(message: NetworkMessage) -> int:
    """Bytes of the payload of what has one, otherwise 0."""
    if isinstance(message, Request):
        asked = message.body.body
        return 0 if asked is None else len(asked.payload)
    body = _content(message)
    return 0 if body is None or isinstance(body, Del) else len(body.payload)


def size(message: NetworkMessage) -> int:
    """Bytes of payload and attachment."""
    body = message.body if isinstance(message, Request) else _content(message)
    attached = None if body is None or isinstance(body, Err) else body.attachment
    return payload_size(message) + (0 if attached is None else len(attached))


def _content(message: NetworkMessage) -> Put | Del | Err | None:
    """What is published, or replied."""
    if isinstance(message, Push):
        return message.body
    if isinstance(message, Response):
        body = message.body
        return body.body if isinstance(body, Reply) else body
    return None
