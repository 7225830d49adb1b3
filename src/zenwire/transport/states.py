"""The states of a link, and which message takes it from one to the next. All moves are here.

A message without an entry is refused during the handshake (CLOSE 2) and ignored in an open
session. CLOSE ends every state.
"""

from __future__ import annotations

from enum import Enum, unique
from typing import Final

from zenwire.transport.settings import Role
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn

__all__ = ["FIRST", "MOVES", "State"]


@unique
class State(Enum):
    """Where a link is. CLOSING: what is queued, then a CLOSE, still have to be pulled."""

    INIT_SENT = "init_sent"
    OPEN_SENT = "open_sent"
    LISTENING = "listening"
    INIT_ANSWERED = "init_answered"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


FIRST: Final = {Role.CONNECTOR: State.INIT_SENT, Role.ACCEPTOR: State.LISTENING}

MOVES: Final[dict[State, dict[type, State]]] = {
    State.INIT_SENT: {InitAck: State.OPEN_SENT},
    State.OPEN_SENT: {OpenAck: State.OPEN},
    State.LISTENING: {InitSyn: State.INIT_ANSWERED},
    State.INIT_ANSWERED: {OpenSyn: State.OPEN},
    State.OPEN: {},
    State.CLOSING: {},
    State.CLOSED: {},
}
