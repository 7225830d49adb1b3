"""What a report says: bounded aggregates, as they come from Spark and go to the page and to JSON.

Times are nanoseconds since 1970, latencies seconds. A list that may be cut is a ``Top``, which says
how many there are. Keys are cut to ``KEY_LENGTH`` characters, with their full length beside them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final, Generic, TypeVar

__all__ = [
    "KEY_LENGTH",
    "KINDS",
    "LATENCY_BINS",
    "RECORDED",
    "Account",
    "Capture",
    "Category",
    "Declaration",
    "Edge",
    "Key",
    "Keys",
    "Latency",
    "Loss",
    "LossGroup",
    "Losses",
    "Malformed",
    "MalformedGroup",
    "Malformeds",
    "MessageCount",
    "Queries",
    "Session",
    "Sessions",
    "Summary",
    "Timeline",
    "Token",
    "Tokens",
    "Top",
    "Verdict",
    "to_json",
]

KEY_LENGTH: Final = 200
KINDS: Final = (
    "samples",
    "queries",
    "replies",
    "declarations",
    "routing",
    "transport",
    "scouting",
)
"""What messages are about, in the order in which they are stacked."""
RECORDED: Final = ("lake", "spools")
"""Kinds of sources that recorders filled."""
LATENCY_BINS: Final = 24
"""Three for each power of ten, from a microsecond on."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Top(Generic[T]):
    """The first of ``total``."""

    rows: list[T]
    total: int

    @property
    def cut(self) -> int:
        return max(self.total - len(self.rows), 0)


@dataclass(frozen=True, slots=True)
class Capture:
    """A file."""

    name: str
    messages: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MessageCount:
    """How many messages of a name there are, and their size with headers."""

    layer: str
    message: str
    body: str | None
    kind: str
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """Sums of equal spans of time. ``messages`` and ``bytes`` have a list for each of ``kinds``."""

    start: int
    width: int
    bins: int
    kinds: list[str]
    messages: list[list[int]]
    bytes: list[list[int]]


@dataclass(frozen=True, slots=True)
class Session:
    """A connection. Nodes are named by their id or, where INIT was not captured, by address."""

    capture: str
    flow: str
    connection: int
    link: str
    connector: str
    connector_address: str
    connector_mode: str | None
    acceptor: str
    acceptor_address: str
    acceptor_mode: str | None
    bytes_to_acceptor: int
    bytes_to_connector: int
    agreed: list[str]
    batch_size: int | None
    lease: int | None
    first_seen: int
    opened: int | None
    closed: int | None
    closed_by: str | None
    close_reason: str | None
    last_seen: int


@dataclass(frozen=True, slots=True)
class Edge:
    """All sessions of two nodes over one kind of link."""

    connector: str
    connector_mode: str | None
    acceptor: str
    acceptor_mode: str | None
    link: str
    sessions: int
    bytes_to_acceptor: int
    bytes_to_connector: int
    agreed: list[str]
    closed: int
    addresses: list[str]


@dataclass(frozen=True, slots=True)
class Sessions:
    """Who was connected with whom."""

    bytes: int
    nodes: int
    edges: Top[Edge]
    rows: Top[Session]


@dataclass(frozen=True, slots=True)
class Key:
    """The samples of a key; None is what could not be known. ``spark`` are messages over time."""

    key: str | None
    length: int
    samples: int
    deletes: int
    bytes: int
    first: int
    last: int
    spark: list[int]


@dataclass(frozen=True, slots=True)
class Keys:
    """Samples by key, counted on each link that they crossed."""

    samples: int
    bytes: int
    rows: Top[Key]


@dataclass(frozen=True, slots=True)
class Latency:
    """From the request to its end, of the ``finished`` queries of a key; None is all of them."""

    key: str | None
    length: int
    queries: int
    finished: int
    replies: int
    p50: float | None
    p90: float | None
    p99: float | None
    longest: float | None
    bins: list[int]


@dataclass(frozen=True, slots=True)
class Queries:
    """Requests and how they ended."""

    outcomes: dict[str, int]
    overall: Latency
    rows: Top[Latency]


@dataclass(frozen=True, slots=True)
class LossGroup:
    """Losses of a kind and reason on one session; ``first`` is the number of its first row."""

    kind: str
    reason: str
    sender: str
    receiver: str
    gaps: int
    count: int
    missing: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Loss:
    """A row of ``losses``."""

    capture: str
    flow: str | None
    connection: int | None
    direction: str | None
    sequence: int | None
    offset: int | None
    time: int
    sender: str
    receiver: str
    kind: str
    reason: str
    lane: str
    from_sn: int | None
    to_sn: int | None
    count: int | None
    missing: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Losses:
    """What should be there and is not.

    ``not_sent`` and ``not_sent_samples`` count gaps in the numbers of publishers, and numbers in
    them, that are no losses: no matching subscription was on that link. They are in nothing else.
    """

    by_kind: dict[str, dict[str, int]]
    groups: Top[LossGroup]
    rows: Top[Loss]
    not_sent: int = 0
    not_sent_samples: int = 0


@dataclass(frozen=True, slots=True)
class MalformedGroup:
    """Malformed input by layer and fault."""

    layer: str
    fault: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Malformed:
    """A row of ``malformed``, with the bytes around the one that is wrong.

    ``window`` is where those begin, ``offset`` which one it is, both counted in the batch.
    """

    capture: str
    flow: str
    connection: int
    direction: str | None
    sequence: int
    time: int
    sender: str
    receiver: str
    layer: str
    fault: str
    offset: int
    message_offset: int
    length: int
    window: int
    bytes: str


@dataclass(frozen=True, slots=True)
class Malformeds:
    """What did not decode."""

    groups: list[MalformedGroup]
    rows: Top[Malformed]


@dataclass(frozen=True, slots=True)
class Token:
    """The life of a liveliness token on one session; None where it goes beyond the capture."""

    key: str | None
    length: int
    sender: str
    receiver: str
    declared: int | None
    undeclared: int | None
    ended_by: str | None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Liveliness tokens. ``snapshots`` are answers about tokens, which have no life of their own."""

    snapshots: int
    rows: Top[Token]


@dataclass(frozen=True, slots=True)
class Declaration:
    """Who declared a key. ``nodes`` are the first of ``node_count``; ``alive`` lives on."""

    kind: str
    key: str | None
    length: int
    declared: int
    alive: int
    nodes: list[str]
    node_count: int


@dataclass(frozen=True, slots=True)
class Account:
    """A line of the books. ``part_of`` is the line that this one is a part of."""

    name: str
    bytes: int
    count: int | None = None
    part_of: str = ""


@dataclass(frozen=True, slots=True)
class Category:
    """What became of bytes of the files; ``missing`` were sent, but are not in them."""

    name: str
    bytes: int
    rows: int
    missing: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """In plain words. ``level``: good, note or bad; ``points`` are (text, section)."""

    level: str
    headline: str
    points: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything on the page. None is a part whose table is not there."""

    source: str
    paths: list[str]
    start: int | None
    end: int | None
    message_total: int
    verdict: Verdict
    captures: Top[Capture] | None
    messages: list[MessageCount] | None
    timeline: Timeline | None
    sessions: Sessions | None
    keys: Keys | None
    queries: Queries | None
    losses: Losses | None
    malformed: Malformeds | None
    tokens: Tokens | None
    declarations: Top[Declaration] | None
    declared: dict[str, int] | None
    accounts: list[Account]

    @property
    def is_recorded(self) -> bool:
        """True for what a recorder wrote, where there is no wire to report on."""
        return self.source in RECORDED


def to_json(summary: Summary, *, indent: int | None = None) -> str:
    """One JSON object; flows are text, since they have more bits than JSON readers keep."""
    return json.dumps(asdict(summary), indent=indent, ensure_ascii=True)
