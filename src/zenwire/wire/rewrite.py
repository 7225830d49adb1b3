"""Writing messages that repeat others: see `zenwire.wire.repeat`."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from zenwire.wire.data import Put, Reply
from zenwire.wire.define import spec_of
from zenwire.wire.network import NetworkMessage, Push, Request, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.repeat import LEARN_MAX, Counted, Known, sized

__all__ = ["KnownWriter"]


_Of = tuple[object, ...]


def _fields(cls: type, *others: str) -> Callable[[Any], _Of]:
    """A function that gives what a message has in all fields but some."""
    names = [f.name for f in spec_of(cls).fields if f.name not in others]
    return attrgetter(*names)


_of_push: Final = _fields(Push, "body")
_of_put: Final = _fields(Put, "payload")
_of_request: Final = _fields(Request, "request_id")
_of_response: Final = _fields(Response, "request_id", "body")
_of_reply: Final = _fields(Reply, "body")


class KnownWriter:
    """Writes messages whose fields, but for number and payload, are those of one before."""

    __slots__ = ("_finals", "_known", "_left", "_requests", "_responses")

    def __init__(self) -> None:
        # By what is slow to compare; it is kept, so that nothing else has this id.
        self._known: dict[int, tuple[_Of, _Of, bytes]] = {}
        self._requests: dict[int, tuple[_Of, Counted]] = {}
        self._responses: dict[int, tuple[_Of, _Of, _Of, Counted]] = {}
        self._finals: dict[int, Counted] = {}
        self._left = LEARN_MAX

    def write(self, message: NetworkMessage) -> bytes:
        """The whole message. Raises EncodeError."""
        write = self._WRITES.get(type(message))
        return encode(message) if write is None else write(self, message)

    def _write_push(self, push: Push) -> bytes:
        body = push.body
        if type(body) is not Put:
            return encode(push)
        known = self._known.get(id(push.key))
        if known is not None and _of_push(push) == known[0] and _of_put(body) == known[1]:
            return known[2] + sized(body.payload)
        data = encode(push)
        if known is None and push.timestamp_stack is None and not _varies(body):
            found = self._learn(data, push)
            if found is not None:
                self._known[id(push.key)] = _of_push(push), _of_put(body), found.head
        return data

    def _write_request(self, request: Request) -> bytes:
        known = self._requests.get(id(request.key))
        if known is not None and _of_request(request) == known[0]:
            return known[1].head(request.request_id)
        data = encode(request)
        body = request.body
        varies = body.body or body.attachment or body.source_info or request.timestamp_stack
        if known is None and varies is None:
            found = self._learn(data, request)
            if found is not None:
                kept = Counted(found.before, found.head)
                self._requests[id(request.key)] = _of_request(request), kept
        return data

    def _write_response(self, response: Response) -> bytes:
        reply = response.body
        put = reply.body if type(reply) is Reply else None
        if type(put) is not Put:
            return encode(response)
        known = self._responses.get(id(response.key))
        if (
            known is not None
            and _of_response(response) == known[0]
            and _of_reply(reply) == known[1]
            and _of_put(put) == known[2]
        ):
            return known[3].head(response.request_id) + sized(put.payload)
        data = encode(response)
        if known is None and response.timestamp_stack is None and not _varies(put):
            found = self._learn(data, response)
            if found is not None:
                kept = Counted(found.before, found.head)
                of = _of_response(response), _of_reply(reply), _of_put(put)
                self._responses[id(response.key)] = *of, kept
        return data

    def _write_final(self, final: ResponseFinal) -> bytes:
        if final.timestamp is not None:
            return encode(final)
        known = self._finals.get(final.qos.raw)
        if known is not None:
            return known.head(final.request_id)
        data = encode(final)
        found = self._learn(data, final)
        if found is not None:
            self._finals[final.qos.raw] = Counted(found.before, found.head)
        return data

    def _learn(self, data: bytes, message: NetworkMessage) -> Known | None:
        if not self._left:
            return None
        self._left -= 1
        return Known.of(data, message)

    _WRITES: Final[dict[type, Callable[[KnownWriter, Any], bytes]]] = {
        Push: _write_push,
        Request: _write_request,
        Response: _write_response,
        ResponseFinal: _write_final,
    }


def _varies(put: Put) -> bool:
    """What differs from one to the next is not worth it."""
    return bool(put.timestamp or put.attachment or put.source_info)
