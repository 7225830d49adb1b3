"""Queries: whom to ask, and bringing all answers back to the one who asked.

A request that came, or that a session made, is `Pending` until each `Branch` it was sent along
is done: finished, dead, or out of time. Then its origin gets one final.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from zenwire.errors import ZError
from zenwire.keyexpr import intersects, validate
from zenwire.routing.consolidation import Consolidation, parameter_names
from zenwire.routing.faces import Face, Locality
from zenwire.routing.outputs import QueryReceived, ReplyReceived, finished_of, query_of, reply_of
from zenwire.routing.pending import Branch, Pending
from zenwire.routing.prepared import QUERY_TIMEOUT, Prepared
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.encoding import Encoding
from zenwire.wire.network import Request, Response, ResponseFinal
from zenwire.wire.repeat import request_of, with_reply
from zenwire.wire.structs import ResponderId

if TYPE_CHECKING:
    from zenwire.routing.prepared import Question
    from zenwire.routing.routers import Routers
    from zenwire.routing.state import State
    from zenwire.routing.targets import Plan, Targets
    from zenwire.wire.structs import QueryBody, SourceInfo, TimestampStack
    from zenwire.wire.values import QoS

__all__ = ["Queries", "timeout_error"]

_TIMEOUT: Final = b"Timeout"
_PLAIN: Final = Reply(body=Put(payload=b""))
_REMOTE: Final = Locality.REMOTE
_STRING: Final = Encoding.parse("zenoh/string")
_QUERY_BYTES: Final = 768
"""Memory that a pending query takes besides its key and the bytes it carries, as measured."""
_BRANCH_BYTES: Final = 128
"""Memory that each of its branches takes, as measured."""
_SWEEP: Final = 64
"""After so many queries it is looked for those that are done before their time."""


def timeout_error(query: int, qos: QoS) -> ReplyReceived:
    """What a session gets for a query that was not answered in time."""
    body = Err(encoding=_STRING, payload=_TIMEOUT)
    return ReplyReceived(query, "", body, None, qos)


class Queries:
    """All queries that are not finished."""

    __slots__ = (
        "_deadlines",
        "_live",
        "_prepared",
        "_routers",
        "_serial",
        "_state",
        "_too_large",
        "_too_many",
        "targets",
    )

    def __init__(self, state: State, targets: Targets, routers: Routers) -> None:
        self._state = state
        self._routers = routers
        self.targets = targets
        self._prepared = Prepared(state.zid)
        most = state.limits
        self._too_many = _refusal(f"{most.pending_queries} pending queries", "pending_queries")
        self._too_large = _refusal(
            f"{most.pending_bytes} bytes of pending queries", "pending_bytes"
        )
        self._deadlines: list[tuple[float, int, Pending]] = []
        self._serial = 0
        self._live = 0

    @property
    def deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][2].done:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def ask(
        self,
        session: Face,
        question: Question,
        now: float,
        *,
        value: QueryBody | None = None,
        attachment: bytes | None = None,
        source_info: SourceInfo | None = None,
        timestamp_stack: TimestampStack | None = None,
    ) -> int:
        """A session asks."""
        state = self._state
        id = state.next_entity_id()
        key, message = question.key, question.message
        if value or attachment is not None or source_info or timestamp_stack:
            body = replace(message.body, source_info=source_info, body=value, attachment=attachment)
            message = replace(message, timestamp_stack=timestamp_stack, body=body)
        accept = None if question.anyke else key
        consolidation = Consolidation(
            question.mode, accept, message.budget, state.counters, state.limits.replies
        )
        deadline = now + question.timeout
        pending = Pending(
            session, id, key, message, deadline, question.anyke, consolidation=consolidation
        )
        plan = self.targets.plan(session, key, message.target, question.destination)
        self._start(pending, plan)
        return id

    def request(self, face: Face, message: Request, now: float) -> None:
        """A face asks. Whatever is wrong with it, it gets its final."""
        state, asked, number, body = self._state, face.asked, message.request_id, message.body
        counters = state.counters
        if number in asked:
            # Its final is the one of the query that has this id.
            counters.duplicate_request += 1
            return
        key = state.key_of(face, message.key)
        size = _QUERY_BYTES + len(key or "") + _size(body)
        if key is not None and asked and (why := self._excess(face, size)) is not None:
            counters.limit_pending_queries += 1
            responder = self._prepared.responder(0)
            state.send(face, self._prepared.response(number, "", message.qos, responder, why))
            key = None
        if body.shm:
            counters.shared_memory += 1
            key = None
        src, node_id = face, 0
        if face.routes and key is not None:
            far = self._routers.source(face, message.node_id)
            if far is None:
                key = None
            else:
                src, node_id = far, self._routers.number(far)
        if key is None:
            self._send_final(face, message)
            return
        if message.timestamp is not None or message.node_id:
            # They are of the way that it has behind it.
            message = replace(message, timestamp=None, node_id=0)
        timeout, parameters = message.timeout, body.parameters
        deadline = now + (QUERY_TIMEOUT if timeout is None else timeout / 1000)
        anyke = "_anyke" in parameters and "_anyke" in parameter_names(parameters)
        plan = self.targets.plan(src, key, message.target, _REMOTE)
        size += _BRANCH_BYTES * (len(plan.serve) + len(plan.forward))
        pending = Pending(face, number, key, message, deadline, anyke, size, node_id)
        face.asking += size
        self._start(pending, plan)

    def _excess(self, face: Face, size: int) -> Err | None:
        """Return the error reply to a query of this size if it is too much for its face."""
        limits = self._state.limits
        if len(face.asked) >= limits.pending_queries:
            return self._too_many
        return self._too_large if face.asking + size > limits.pending_bytes else None

    def response(self, face: Face, message: Response) -> None:
        """A face answers."""
        branch = face.branches.get(message.request_id)
        if branch is None:
            self._state.counters.unknown_request += 1
            return
        body = message.body
        inner = body.body if isinstance(body, Reply) else body
        if not isinstance(inner, Del) and inner.shm:
            self._state.counters.shared_memory += 1
            return
        key: str | None = ""
        if inner is not body:
            key = self._state.key_of(face, message.key)
            if key is None:
                return
        else:
            # An error may have an empty key; none is needed.
            key = face.aliases.resolve(message.key) or ""
        self._answer(branch.pending, key, body, message.responder, message.timestamp_stack)

    def response_final(self, face: Face, message: ResponseFinal) -> None:
        """A face has answered."""
        branch = face.branches.get(message.request_id)
        if branch is None:
            self._state.counters.unknown_request += 1
        else:
            self._end(branch)

    def reply(
        self,
        session: Face,
        query: int,
        queryable: int,
        key: str,
        body: Put | Del | Err,
        *,
        timestamp_stack: TimestampStack | None,
    ) -> bool:
        """A queryable answers; False if it is too late. ZError for a key nobody asked for.

        KeyExprError for one that is not canonical.
        """
        branch = session.branches.get(query)
        if branch is None or queryable not in branch.open:
            return False
        pending = branch.pending
        responder = self._prepared.responder(queryable)
        if isinstance(body, Err):
            self._answer(pending, pending.key, body, responder, timestamp_stack)
            return True
        if key != pending.key:
            validate(key)
            if not pending.anyke and not intersects(pending.key, key):
                raise ZError(
                    f"a reply on {key!r} does not answer a query on {pending.key!r}; "
                    "the asker must say `_anyke` to get replies on other keys"
                )
        self._answer(pending, key, with_reply(_PLAIN, body), responder, timestamp_stack)
        return True

    def asker(self, session: Face, query: int) -> Face | None:
        """From where a query came that a session is to answer; None if it is over."""
        branch = session.branches.get(query)
        return None if branch is None else branch.pending.origin

    def finish(self, session: Face, query: int, queryable: int) -> None:
        """A queryable has answered. Once more, or too late, is no matter."""
        branch = session.branches.get(query)
        if branch is None:
            return
        branch.open = tuple([one for one in branch.open if one != queryable])
        if not branch.open:
            self._end(branch)

    def cancel(self, session: Face, query: int) -> bool:
        """A session does not want the answers any more: no event comes for it."""
        pending = session.asked.get(query)
        if pending is None:
            return False
        self._abandon(pending)
        return True

    def drop(self, face: Face) -> None:
        """A face went: it asks no more, and what it was asked counts as answered."""
        for pending in list(face.asked.values()):
            self._abandon(pending)
        for branch in list(face.branches.values()):
            self._end(branch)

    def tick(self, now: float) -> None:
        """End what is out of time."""
        while (deadline := self.deadline) is not None and deadline <= now:
            self._expire(heapq.heappop(self._deadlines)[2])

    def _start(self, pending: Pending, plan: Plan) -> None:
        """Send it along all branches; without any it is finished at once."""
        pending.origin.asked[pending.request_id] = pending
        for session, ids in plan.serve:
            self._state.events.append(self._serve(pending, session, ids))
        for face in plan.forward:
            self._forward(pending, face)
        self._live += 1
        if pending.branches:
            self._schedule(pending)
        else:
            self._finish(pending)

    def _schedule(self, pending: Pending) -> None:
        deadlines, state = self._deadlines, self._state
        self._serial = serial = self._serial + 1
        if not serial % _SWEEP and len(deadlines) > 2 * self._live:
            # Most of them are done long before their time.
            self._deadlines = deadlines = [entry for entry in deadlines if not entry[2].done]
            heapq.heapify(deadlines)
        deadline = pending.deadline
        heapq.heappush(deadlines, (deadline, serial, pending))
        state.sooner = min(state.sooner, deadline)

    def _serve(self, pending: Pending, session: Face, queryables: tuple[int, ...]) -> QueryReceived:
        query = self._state.next_entity_id()
        Branch(pending, session, query, queryables)
        message = pending.message
        return query_of(
            query,
            queryables,
            pending.key,
            message.body,
            message.qos,
            message.timeout,
            session is pending.origin,
            message.budget,
            message.timestamp_stack,
        )

    def _forward(self, pending: Pending, face: Face) -> None:
        id = face.next_request_id()
        while id in face.branches:
            id = face.next_request_id()
        Branch(pending, face, id)
        request = request_of(pending.message, id, face.aliases.shortest(pending.key))
        if pending.node_id and face.routes:
            request = replace(request, node_id=pending.node_id)
        self._state.send(face, request)

    def _answer(
        self,
        pending: Pending,
        key: str,
        body: Reply | Err,
        responder: ResponderId | None,
        timestamp_stack: TimestampStack | None,
    ) -> None:
        qos = pending.message.qos
        if pending.consolidation is None:
            number = pending.request_id
            response = self._prepared.response(number, key, qos, responder, body)
            if timestamp_stack is not None:
                response = replace(response, timestamp_stack=timestamp_stack)
            self._state.send(pending.origin, response)
            pending.answers += 1
            if pending.answers == pending.message.budget:
                # The asker wants no more; what still comes is nobody's.
                for branch in list(pending.branches):
                    branch.leave()
                self._finish(pending)
            return
        inner = body.body if isinstance(body, Reply) else body
        reply = reply_of(pending.request_id, key, inner, responder, qos, timestamp_stack)
        self._state.events += pending.consolidation.receive(reply)

    def _end(self, branch: Branch) -> None:
        """One branch is done; the last one ends the query."""
        pending = branch.leave()
        if not pending.branches and not pending.done:
            self._finish(pending)

    def _expire(self, pending: Pending) -> None:
        silent = list(pending.branches)
        for branch in silent:
            branch.leave()
        if pending.consolidation is None:
            for branch in silent:
                if not pending.done:
                    responder = ResponderId(zid=branch.face.zid, eid=0)
                    self._answer(pending, "", Err(payload=_TIMEOUT), responder, None)
            if not pending.done:
                self._finish(pending)
        else:
            self._finish(pending, timed_out=True)

    def _finish(self, pending: Pending, *, timed_out: bool = False) -> None:
        self._settle(pending)
        if pending.consolidation is None:
            self._send_final(pending.origin, pending.message)
            return
        self._state.events += pending.consolidation.end()
        if timed_out:
            self._state.emit(timeout_error(pending.request_id, pending.message.qos))
        self._state.emit(finished_of(pending.request_id))

    def _abandon(self, pending: Pending) -> None:
        self._settle(pending)
        for branch in list(pending.branches):
            branch.leave()

    def _settle(self, pending: Pending) -> None:
        origin = pending.origin
        pending.done = True
        origin.asking -= pending.size
        self._live -= 1
        origin.asked.pop(pending.request_id, None)

    def _send_final(self, face: Face, message: Request) -> None:
        self._state.send(face, self._prepared.final(message.request_id, message.qos))


def _refusal(most: str, limit: str) -> Err:
    text = f"Refused: this node holds at most {most} of a session (limit {limit})"
    return Err(encoding=_STRING, payload=text.encode())


def _size(query: Query) -> int:
    """The bytes that a query carries."""
    size = len(query.parameters) + len(query.attachment or b"")
    if query.body is not None:
        size += len(query.body.payload)
    if query.unknown:
        size += sum(len(each.body) for each in query.unknown if isinstance(each.body, bytes))
    return size
