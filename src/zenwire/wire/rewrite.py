"""Writing messages that repeat others: see `zenwire.wire.repeat`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from zenwire.wire.data import Put, Reply
from zenwire.wire.define import spec_of
from zenwire.wire.network import NetworkMessage, Push, Request, Response, ResponseFinal
from zenwire.wire.objects import encode
from zenwire.wire.repeat import LEARN_MAX, Counted, Known, put_in, sized

__all__ = ["KnownWriter"]


def _comparer(cls: type, *others: str) -> Callable[[Any, Any], bool]:
    """A function that says whether two messages have the same in all fields but some."""
    # Mostly they are the same objects, which is seen at once.
    names = [f.name for f in spec_of(cls).fields if f.name not in others]
    same = [f"(a.{name} is b.{name} or a.{name} == b.{name})" for name in names]
    made: Callable[[Any, Any], bool] = eval(f"lambda a, b: {' and '.join(same)}")  # noqa: S307
    return made


_same_push: Final = _comparer(Push, "body")
_same_put: Final = _comparer(Put, "payload")
_same_request: Final = _comparer(Request, "request_id")
_same_response: Final = _comparer(Response, "request_id", "body")
_same_reply: Final = _comparer(Reply, "body")
_same_final: Final = _comparer(ResponseFinal, "request_id")


class KnownWriter:
    """Writes messages whose fields, but for number and payload, are those of one before."""

    __slots__ = ("_finals", "_known", "_left", "_requests", "_responses")

    def __init__(self) -> None:
        # By what is slow to compare; it is kept, so that nothing else has this id.
        self._known: dict[int, tuple[Push, Put, bytes]] = {}
        self._requests: dict[int, tuple[Request, Counted]] = {}
        self._responses: dict[int, tuple[Response, Put, Counted]] = {}
        self._finals: dict[int, tuple[ResponseFinal, Counted]] = {}
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
        if known is not None and _same_push(known[0], push) and _same_put(known[1], body):
            return known[2] + sized(body.payload)
        data = encode(push)
        if known is None and push.timestamp_stack is None and not _varies(body):
            found = self._learn(data, push)
            if found is not None:
                self._known[id(push.key)] = found.like, found.like.body, found.head
        return data

    def _write_request(self, request: Request) -> bytes:
        known = self._requests.get(id(request.key))
        if known is not None and _same_request(known[0], request):
            return known[1].head(request.request_id)
        data = encode(request)
        body = request.body
        varies = body.body or body.attachment or body.source_info or request.timestamp_stack
        if known is None and varies is None:
            found = self._learn(data, request)
            if found is not None:
                kept = Counted(found.before, found.head)
                self._requests[id(request.key)] = request, kept
        return data

    def _write_response(self, response: Response) -> bytes:
        put = put_in(response)
        if put is None:
            return encode(response)
        known = self._responses.get(id(response.key))
        if (
            known is not None
            and _same_response(known[0], response)
            and _same_reply(known[0].body, response.body)
            and _same_put(known[1], put)
        ):
            return known[2].head(response.request_id) + sized(put.payload)
        data = encode(response)
        if known is None and response.timestamp_stack is None and not _varies(put):
            found = self._learn(data, response)
            if found is not None and found.put is not None:
                kept = Counted(found.before, found.head)
                self._responses[id(response.key)] = found.like, found.put, kept
        return data

    def _write_final(self, final: ResponseFinal) -> bytes:
        known = self._finals.get(final.qos.raw)
        if known is not None and _same_final(known[0], final):
            return known[1].head(final.request_id)
        data = encode(final)
        if known is None:
            found = self._learn(data, final)
            if found is not None:
                self._finals[final.qos.raw] = final, Counted(found.before, found.head)
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
