"""One peer, sans-IO: handshake, lanes, batches, fragments, keep-alive, closing, multicast.

Bytes and ``now`` go in; bytes, events and the next deadline come out. ``now`` is any clock that
does not go back, in seconds; randomness is a function from a number to that many bytes.

- ``Settings``: what this node offers. ``LinkFacts``: what a link is.
- ``Sessions``: all unicast sessions of a node. It holds the cookie key, and refuses whom it must:
  ``connect(link, now)`` and ``accept(link, now)`` make the machine of one link,
- ``Unicast``: the machine of one link. Its owner calls

  - ``receive(data, now)`` with what came (a stream cut anywhere, or one datagram), and handles
    the events it returns;
  - ``pull(now)`` until it gives ``b""``, after each of the other calls, and writes each result
    (one datagram each, if the link is not a stream);
  - ``tick(now)`` at ``deadline`` or later, and handles the events; ``deadline`` is in the past when
    events wait (Writable after a ``pull``), None when nothing does;
  - ``send(message, now)``, which answers Accepted, Full or Dropped;
  - ``close(now)`` to end it, ``lost(now)`` when the link broke. Once ``closed`` is set and
    ``pull`` gives nothing more, the link can go.

- ``Session``: the links to one peer. ``send`` chooses the link.
- ``ReassemblyBudget``: the memory of unfinished messages, which several nodes of a process may share.
  Its owner calls ``sweep(now)`` every second or so while there are any.
- ``Multicast``: a group of nodes on one link; the same calls, but ``receive`` is told the source.

The pieces can be used without the machines: ``framing.Unwrap`` (stream to batches), ``inbox.Inbox``
(which FRAME is new, fragments to messages), ``outbox.Outbox`` (messages to batches). A reader that
scans whole batches takes the place of ``inbox.read_batch`` (``Unicast.reader``), and one that
scans many of them at once is asked by ``Unicast.receive_many`` (``Unicast.bursts``).
"""

from zenwire.transport.budget import ReassemblyBudget
from zenwire.transport.bursts import Bursts
from zenwire.transport.events import (
    ACCEPTED,
    Accepted,
    Closed,
    Dropped,
    Event,
    Full,
    Joined,
    Left,
    Opened,
    Peer,
    Received,
    ReceivedRun,
    Result,
    Then,
    Writable,
)
from zenwire.transport.inbox import BatchReader, Inbox, read_batch
from zenwire.transport.multicast import Multicast
from zenwire.transport.packed import Packed, count_of
from zenwire.transport.pem import read_private_key, read_public_keys
from zenwire.transport.rsa import PrivateKey, PublicKey
from zenwire.transport.sessions import Session, Sessions
from zenwire.transport.settings import Credentials, LinkFacts, Role, Settings
from zenwire.transport.stats import Cause, Stats
from zenwire.transport.straight import Straight
from zenwire.transport.unicast import Unicast

__all__ = [
    "ACCEPTED",
    "Accepted",
    "BatchReader",
    "Bursts",
    "Cause",
    "Closed",
    "Credentials",
    "Dropped",
    "Event",
    "Full",
    "Inbox",
    "Joined",
    "Left",
    "LinkFacts",
    "Multicast",
    "Opened",
    "Packed",
    "Peer",
    "PrivateKey",
    "PublicKey",
    "ReassemblyBudget",
    "Received",
    "ReceivedRun",
    "Result",
    "Role",
    "Session",
    "Sessions",
    "Settings",
    "Stats",
    "Straight",
    "Then",
    "Unicast",
    "Writable",
    "count_of",
    "read_batch",
    "read_private_key",
    "read_public_keys",
]
