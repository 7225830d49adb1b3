"""The machine of one unicast link: its handshake, what it carries, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.errors import DecodeError
from zenwire.transport.bursts import Bursts, ReceivedRun
from zenwire.transport.codec import bare_message, decode_handshake
from zenwire.transport.events import Closed, Event, Opened, Peer, Received
from zenwire.transport.framing import Framing, Unwrap
from zenwire.transport.handshake import Acceptor, Connector, Outcome
from zenwire.transport.inbox import BatchReader, Few, Inbox, read_batch
from zenwire.transport.refused import RefusedError
from zenwire.transport.sending import Sending
from zenwire.transport.settings import LinkFacts, Role, Settings
from zenwire.transport.states import FIRST, MOVES, State
from zenwire.wire.transport import Close, InitAck, InitSyn, Join, KeepAlive, OpenAck, OpenSyn
from zenwire.wire.values import CloseReason, Priority

if TYPE_CHECKING:
    from zenwire.transport.sessions import Session, Sessions

__all__ = ["Unicast"]

_OPEN: Final = State.OPEN  # looked up once, as in `sending`
_ALL: Final = 2**63
"""More messages than any bytes hold."""


class Unicast(Sending):
    """One link to one peer. ``Sessions`` makes them.

    ``reader`` reads the batches of an open session, unless it is a low-latency one; set it when
    ``Opened`` comes, or before.
    """

    def __init__(
        self,
        sessions: Sessions,
        settings: Settings,
        link: LinkFacts,
        steps: Connector | Acceptor,
        now: float,
    ) -> None:
        self.role = Role.CONNECTOR if isinstance(steps, Connector) else Role.ACCEPTOR
        super().__init__(settings, Framing(link, settings.max_message_size), FIRST[self.role], now)
        self.link = link
        self.peer: Peer | None = None
        self.session: Session | None = None
        self.reader: BatchReader = read_batch
        self.bursts: Bursts | None = None
        """Reads what ``receive_many`` gets, if anything does."""
        self.unread = False
        """True if received batches are left: ``receive`` without bytes continues with them."""
        self._sessions = sessions
        self._steps = steps
        self._unwrap = Unwrap(self._framing)
        self._inbox: Inbox | None = None
        self._heard = now
        self.started = now
        timeout = settings.open_timeout if self.role is Role.CONNECTOR else settings.accept_timeout
        self.late = False
        """The handshake took too long."""
        self._ends = now + timeout
        if isinstance(steps, Connector):
            self._say(steps.init_syn())

    # What its owner asks.

    @property
    def heard(self) -> float:
        """When something came last."""
        return self._heard

    @property
    def closed(self) -> bool:
        """Nothing comes in any more. What is left to be pulled may still go out."""
        return self.state in (State.CLOSING, State.CLOSED)

    @property
    def expands(self) -> bool:
        """Whether what comes in a stream is compressed."""
        return self.link.stream and self._framing.compression

    @property
    def done(self) -> bool:
        """Closed, and nothing is left to be pulled."""
        return self.state is State.CLOSED and not self._ready

    @property
    def deadline(self) -> float | None:
        """When ``tick`` is due; None if nothing is."""
        self.steady = False
        if self._events:
            return float("-inf")
        if self.state is not _OPEN:
            return self._ends
        assert self.peer is not None
        due = self._heard + self.peer.lease
        blocked = self._congestion.deadline
        if blocked is not None:
            due = min(due, blocked)
        if not self._idle:
            return due
        self.steady = blocked is None
        return min(due, self.silent_until)

    @property
    def silent_until(self) -> float:
        """When something has to be sent, if it is nothing else a KEEP_ALIVE."""
        return self._sent + self._settings.lease / self._settings.keep_alive

    # Input: bytes.

    def receive_few(self, data: bytes, now: float) -> Few | None:
        """What came, if it is a few batches, mostly one, that are like others before.

        If it is not, None, and then it is for ``receive``.
        """
        inbox = self._inbox
        if (
            inbox is None
            or self.reader is not read_batch
            or self._events
            or self.state is not _OPEN
        ):
            return None
        batches = self._unwrap.few(data)
        few = inbox.few(data, batches)
        if few is not None:
            stats = self.stats
            stats.rx_bytes += len(data)
            stats.rx_batches += len(batches)
            self._heard = now
        return few

    def receive(self, data: bytes, now: float, most: int = _ALL) -> list[Event]:
        """Bytes came: a piece of a stream, cut anywhere, or one datagram.

        It stops behind the batch that has the message number ``most``, so that others need not
        wait for the rest, and is ``unread`` then.
        """
        stats, self.unread = self.stats, False
        stats.rx_bytes += len(data)
        most += stats.rx_messages
        events = self._take_events()
        if self.state is not _OPEN and self.closed:
            return events
        self._heard = now
        try:
            batches = self._unwrap.feed(data)
            for content in batches:
                if not self._batch(content, now, events):
                    break
                if stats.rx_messages >= most:
                    self.unread = self.link.stream
                    # Closing the generator keeps the remaining bytes.
                    batches.close()
                    break
        except DecodeError as e:
            # In an open session the reference ends the link without a word, so do we.
            refusal = None if self.state is _OPEN else CloseReason.INVALID
            self._end(events, str(e), refusal)
        except RefusedError as e:
            self._end(events, e.text, e.reason)
        return events

    def excuse(self, now: float) -> None:
        """Count the silence of the other side from now on: it was not read."""
        self._heard = now

    def receive_many(
        self,
        data: memoryview,
        now: float,
        fresh: int | None = None,
        most: int = _ALL,
    ) -> tuple[list[Event], int]:
        """Many bytes of a stream came. Gives the events, and how many bytes are done with.

        The others are to come again, before what follows them: ``fresh`` says then how many bytes
        are new. The data may be used again after the events, which refer to it. After ``most``
        messages that the bursts do not take it stops, and is ``unread``.
        """
        self.unread = False
        bursts, inbox, framing = self.bursts, self._inbox, self._framing
        many, fresh = len(data), len(data) if fresh is None else fresh
        self.stats.rx_bytes += fresh
        plain = self.reader is read_batch and not framing.compression
        if bursts is None or inbox is None or not plain or self.state is not _OPEN:
            self.stats.rx_bytes -= many
            return self.receive(bytes(data), now, most), many
        events = self._take_events()
        self._heard = now
        try:
            done = self._unwrap.lacks(data)
            if done:
                for content in self._unwrap.feed(bytes(data[:done])):
                    if not self._batch(content, now, events):
                        return events, many
                data = data[done:]
            rest = bursts.split(data, framing.limit)
            for part in bursts.parts(inbox):
                if not isinstance(part, tuple):
                    events.append(ReceivedRun(part))
                elif most <= 0:
                    self.unread = True
                    return events, done + part[0] - framing.prefix
                else:
                    before = self.stats.rx_messages
                    if not self._batch(bytes(data[slice(*part)]), now, events):
                        return events, many
                    most -= self.stats.rx_messages - before
            if not bursts.faulty:
                return events, done + rest
            for _ in self._unwrap.feed(bytes(data[rest:])):
                raise AssertionError("two readers of lengths differ")  # pragma: no cover
        except DecodeError as e:
            self._end(events, str(e), None)
        return events, many

    def _batch(self, content: bytes, now: float, events: list[Event]) -> bool:
        """Whether it goes on after this batch."""
        self.stats.rx_batches += 1
        if self.state is not _OPEN:
            self._handshake(content, now, events)
        elif not content:
            self.stats.rx_ignored += 1
        elif self._framing.lowlatency:
            self._bare(content, events)
        else:
            assert self._inbox is not None
            found, fault = self.reader(content, self._inbox)
            for item in found:
                if type(item) is Received:
                    events.append(item)
                    continue
                if isinstance(item, Close):
                    self._closed_by_peer(item, events)
                    return False
                if isinstance(item, Join):
                    self.stats.rx_ignored += 1
                else:
                    events.append(item)
            if fault is not None:
                self._end(events, fault, None)
        return self.state is _OPEN or not self.closed

    def _bare(self, content: bytes, events: list[Event]) -> None:
        message = bare_message(content)
        if isinstance(message, Close):
            self._closed_by_peer(message, events)
        elif message is not None and not isinstance(message, KeepAlive):
            events.append(Received([message], Priority.DATA, True))  # type: ignore[list-item] # no other is there
            self.stats.rx_messages += 1

    # The handshake.

    def _handshake(self, content: bytes, now: float, events: list[Event]) -> None:
        if not content:
            self._end(events, "an empty batch during the handshake", None)
            return
        message = decode_handshake(content)
        if isinstance(message, Close):
            self._closed_by_peer(message, events)
            return
        after = MOVES[self.state].get(type(message))
        if after is None:
            name = type(message).__name__
            raise RefusedError(CloseReason.INVALID, f"{name} while {self.state.value}")
        steps = self._steps
        if isinstance(steps, Connector):
            if isinstance(message, InitAck):
                self._sessions.check(self, message.zid, message.whatami)
                self._say(steps.open_syn(message))
            elif isinstance(message, OpenAck):
                self._open(steps.outcome(message), events)
        elif isinstance(message, InitSyn):
            self._say(steps.init_ack(message, now))
        elif isinstance(message, OpenSyn):
            ack, outcome = steps.open_ack(message, now)
            self._open(outcome, events, ack)
        self.state = after

    def _open(self, outcome: Outcome, events: list[Event], ack: OpenAck | None = None) -> None:
        peer = outcome.peer
        session = self._sessions.admit(self, outcome)
        if ack is not None:
            self._say(ack)
        self.peer, self.session = peer, session
        framing = self._framing
        framing.agree(peer.batch_size, compression=peer.compression, lowlatency=peer.lowlatency)
        self._begin(peer, session.counters)
        if not peer.lowlatency:
            self._inbox = Inbox(session.lanes, self.stats)
        elif framing.stream:
            self._unwrap.charge(session.share, self.stats)
        self._ends = None
        events.append(Opened(peer, session))

    def release(self) -> None:
        """Drop an unfinished low-latency message: its link is over."""
        self._unwrap.release()

    # Time.

    def tick(self, now: float) -> list[Event]:
        """What time has brought, and what ``pull`` and ``send`` had to tell."""
        events = self._take_events()
        if self._ends is not None and now >= self._ends:
            if self.state is State.CLOSING:
                self.state, self._ends = State.CLOSED, None
                self._lose_queued()
            elif self.state is not State.CLOSED:
                self.late = True
                self._end(events, "the handshake took too long", None)
        elif self.state is _OPEN:
            assert self.peer is not None
            blocked = self._congestion.deadline
            if now >= self._heard + self.peer.lease:
                text = f"nothing was heard for {self.peer.lease:g} s"
                if self.peer.asked is not None:
                    text += f"; its lease of {self.peer.asked:g} s is above max_lease"
                self._end(events, text, CloseReason.EXPIRED)
            elif blocked is not None and now >= blocked:
                wait = self._settings.wait_before_close
                self._end(events, f"no room for {wait:g} s", CloseReason.UNRESPONSIVE)
            elif self._idle and now >= self.silent_until:
                self._say(KeepAlive())
        return events

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    # The end.

    def close(self, now: float, reason: CloseReason = CloseReason.GENERIC) -> None:
        """End it from here: what is queued goes out, then a CLOSE. No event tells of it."""
        if self.closed:
            return
        self._sessions.forget(self)
        self._close_reason = reason
        self.steady = False
        if self._outbox is not None:
            self._outbox.shut()
        self.state = State.CLOSING
        self._ends = now + self._settings.wait_before_close

    def lost(self, now: float, text: str = "the link was lost") -> list[Event]:
        """The link is gone: the other side has closed it, or it broke."""
        events = self._take_events()
        if self.state is State.CLOSING:
            self._lose_queued()
        elif self.state is not State.CLOSED:
            self._end(events, text, None, by_peer=True)
        self.state, self._ends, self.steady = State.CLOSED, None, False
        self._ready.clear()
        return events

    def _closed_by_peer(self, close: Close, events: list[Event]) -> None:
        session = self.session
        text = f"closed by the peer, reason {_reason(close.reason)}"
        self._end(events, text, None, by_peer=True, reason=close.reason)
        if close.session and session is not None:
            session.end(text, close.reason)

    def end_with_session(self, text: str, reason: int) -> None:
        """Another link of the session was told that all of it ends."""
        if not self.closed:
            self._end(self._events, text, None, by_peer=True, reason=reason)

    def _end(
        self,
        events: list[Event],
        text: str,
        tell: CloseReason | None,
        *,
        by_peer: bool = False,
        reason: int | None = None,
    ) -> None:
        """It is over; ``tell`` goes out as a CLOSE, after which nothing does."""
        self.steady = False
        self._lose_queued()
        if tell is not None:
            self._say(Close(reason=tell))
            reason = tell
        self.state, self._ends = State.CLOSED, None
        over = self._sessions.forget(self)
        events.append(Closed(reason, by_peer, text, over))


def _reason(value: int) -> str:
    try:
        return CloseReason(value).name
    except ValueError:
        return str(value)
