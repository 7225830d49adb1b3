"""What one face may cost this node, and the counters of what was refused.

A face that asks for more is refused, never believed: the declaration, request or interest is
dropped, counted, and answered where the protocol has an answer for a refusal.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Counters", "Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps for each face, and for the caches."""

    aliases: int = 65_535
    declarations: int = 65_536
    """Subscribers, queryables and tokens together."""
    sourced: int = 2**21
    """Those that all other routers have, together."""
    interests: int = 4_096
    chunks: int = 524_288
    """Chunks of all keys that are declared or asked for: each has a place in a tree."""
    pending_queries: int = 65_536
    """Requests of a face that have not had their final."""
    pending_bytes: int = 2**26
    """Memory that those requests take together, estimated. One alone may take more."""
    replies: int = 65_536
    """Keys of the replies to one query that are held back, or told apart."""
    key_length: int = 4_096
    """Characters of a whole key expression that a face may declare, put, ask or answer."""
    nodes: int = 4_096
    """Nodes that a face may tell of by link state; routers that there may be."""
    links: int = 1_024
    """Links kept of one router."""
    all_links: int = 65_536
    """Links kept of all routers: each costs time whenever the network changes."""
    locators: int = 32
    """Locators kept of one node."""
    routes: int = 65_536
    """Cached routes of a face. A full cache is emptied."""


@dataclass(slots=True)
class Counters:
    """What came in and was not used, by reason. Totals since the start."""

    unknown_scope: int = 0
    bad_key: int = 0
    """Empty, not canonical, or longer than the limit."""
    alias_conflict: int = 0
    unknown_undeclare: int = 0
    unknown_final: int = 0
    unknown_request: int = 0
    """RESPONSE or RESPONSE_FINAL for a request that is not pending."""
    duplicate_request: int = 0
    ignored_declaration: int = 0
    """Declarations from one who tells only what it is asked, and was not; or from a group."""
    ignored_interest: int = 0
    ignored_oam: int = 0
    unknown_node: int = 0
    """What came from a router that link state has not told of."""
    off_tree: int = 0
    """Data and queries of a router that came by another way than the one that leads here."""
    limit_aliases: int = 0
    limit_declarations: int = 0
    limit_interests: int = 0
    limit_pending_queries: int = 0
    """Queries that were answered with an error, by either limit of pending queries."""
    limit_replies: int = 0
    limit_nodes: int = 0
    limit_links: int = 0
    shared_memory: int = 0
    """Payloads that lie in shared memory, which this node does not have."""
    foreign_reply: int = 0
    """Replies on keys that do not intersect the query's, without `_anyke`."""
    over_budget: int = 0
    violations: dict[str, int] = field(default_factory=dict)
    """Why faces were closed."""
