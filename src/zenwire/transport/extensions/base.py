"""The interface of an extension, and what its steps share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from zenwire.transport.rsa import PrivateKey, PublicKey, Random
from zenwire.transport.settings import LinkFacts, Settings
from zenwire.wire.transport import InitAck, InitSyn, OpenAck, OpenSyn
from zenwire.wire.values import Priority

__all__ = ["Agreed", "Extension", "Fields", "Negotiation", "Unit"]

Fields = dict[str, Any]
"""Fields of the message that goes out, of their definitions' types; ``auth`` is a dict again."""

_NONE: Fields = {}


@dataclass(slots=True)
class Agreed:
    """What the extensions have come to."""

    qos: bool = False
    lowlatency: bool = False
    compression: bool = False
    patch: int = 0
    multilink: PublicKey | None = None
    """The other side's key, if several links are possible."""
    region_name: str | None = None
    remote_bound: int | None = None
    user: bytes | None = None
    priorities: tuple[Priority, Priority] | None = None
    only: bool | None = None


@dataclass(slots=True)
class Negotiation:
    """What one handshake knows. An acceptor forgets it after InitAck, but for the ``notes``.

    The notes travel in the cookie, which the other side can read but not change: a secret goes
    there as its ``seal`` only.
    """

    settings: Settings
    link: LinkFacts
    random: Random
    multilink_key: PrivateKey | None = None
    seal: Callable[[bytes], bytes] = bytes
    agreed: Agreed = field(default_factory=Agreed)
    notes: dict[str, bytes] = field(default_factory=dict)


class Extension:
    """What one extension says in each of the four messages, and what it makes of the answer.

    Each step reads the message that came and gives fields of the one that goes. A step that is
    not satisfied raises RefusedError. Only ``admit`` and the connector's steps may set what is agreed.
    """

    name = ""

    def offer(self, n: Negotiation) -> Fields:
        """Connector: what goes into InitSyn."""
        return _NONE

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        """Acceptor: the answer that goes into InitAck; what must be known later, into the notes."""
        return _NONE

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        """Connector: the answer is examined; what goes into OpenSyn."""
        return _NONE

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        """Acceptor: notes and proof are examined; what goes into OpenAck."""
        return _NONE

    def conclude(self, n: Negotiation, ack: OpenAck) -> None:
        """Connector: the end."""


class Unit(Extension):
    """An extension without content: it holds if both sides have said it."""

    def wanted(self, n: Negotiation) -> bool:
        """Whether this side can."""
        return bool(getattr(n.settings, self.name))

    def offer(self, n: Negotiation) -> Fields:
        return {self.name: True} if self.wanted(n) else {}

    def accept(self, n: Negotiation, syn: InitSyn) -> Fields:
        if not (self.wanted(n) and getattr(syn, self.name)):
            return {}
        n.notes[self.name] = b"\1"
        return {self.name: True}

    def confirm(self, n: Negotiation, ack: InitAck) -> Fields:
        if self.wanted(n) and getattr(ack, self.name):
            setattr(n.agreed, self.name, True)
        return {}

    def admit(self, n: Negotiation, syn: OpenSyn) -> Fields:
        if n.notes.get(self.name):
            setattr(n.agreed, self.name, True)
        return {}
