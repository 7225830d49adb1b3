"""Whether nodes on the way refuse what should come: they count that in their admin spaces.

A node of zenwire tells, under ``@/<zid>/<mode>/stats/session/<zid>``, how many messages its filters
(access control, downsampling, low-pass) refused of each session and for it. eclipse-zenoh does not.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from zenwire import aio
from zenwire.cli.doctor_reach import Check

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from zenwire.node.config import Config

__all__ = [
    "Refusals",
    "Refused",
    "counted",
    "findings",
    "silent_nodes",
    "subscription_refused",
    "to_us_alone",
]

_SESSIONS: Final = "@/*/*/stats/session/*"
_ASKED: Final = 5.0
"""Seconds for nodes to answer; they do so at once, if they do."""
_DATA: Final = frozenset({"put", "delete"})
_SUBSCRIPTION: Final = "declare_subscriber"
_HINT: Final = "see access_control, downsampling and low_pass_filter there; zenwire acl explain"


class _Refusal(NamedTuple):
    """What a node counts: whose session, by which filter, in which direction, which messages."""

    node: str
    session: str
    cause: str
    flow: str
    message: str


Refused = dict[_Refusal, int]


@dataclass
class Refusals:
    """Messages that were refused so far, and the nodes that tell."""

    nodes: set[str] = field(default_factory=set)
    counts: Refused = field(default_factory=dict)

    def since(self, before: Refusals) -> Refused:
        """Refusals counted since ``before``."""
        new = {one: n - before.counts.get(one, 0) for one, n in self.counts.items()}
        return {one: n for one, n in new.items() if n > 0}


async def counted(session: aio.Session) -> Refusals:
    """Ask all nodes. Replies that cannot be read say nothing."""
    found = Refusals()
    async for reply in session.get(_SESSIONS, timeout=_ASKED, target=aio.QueryTarget.ALL):
        if reply.ok is None:
            continue
        chunks = str(reply.ok.key_expr).split("/")
        node, who = chunks[1], chunks[-1]
        try:
            filtered = dict(json.loads(reply.ok.payload.to_bytes())["filtered"])
            for name, n in filtered.items():
                cause, flow, message = name.split("/")
                found.counts[_Refusal(node, who, cause, flow, message)] = int(n)
        except (ValueError, KeyError, TypeError):
            continue
        found.nodes.add(node)
    return found


def silent_nodes(session: aio.Session, told: Refusals) -> list[str]:
    """Neighbours without refusal counters."""
    return [
        f"{one.whatami} {str(one.zid)[:8]}"
        for one in session.info.transports()
        if str(one.zid) not in told.nodes
    ]


def subscription_refused(new: Refused, own: str) -> bool:
    """Whether a node refused a subscription of this session."""
    return any(
        (one.session, one.flow, one.message) == (own, "ingress", _SUBSCRIPTION) for one in new
    )


def findings(
    new: Refused, own: str, publishers: Mapping[str, set[str]], *, exact: bool
) -> tuple[list[Check], bool]:
    """What refusals explain that nothing comes; ``publishers`` are the nodes that would publish it.

    Without ``exact``, this session has subscribed to other keys too: the second value then tells
    that something was refused to it, and that it is not known whether this was wanted.
    """
    found: list[Check] = []
    to_us = False
    for one, n in new.items():
        where, by = f"node {one.node[:8]}", f"({one.cause})"
        if one.session == own:
            if one.flow == "egress" and one.message in _DATA:
                text = f"{where} refuses to send us what comes: {n:,} {one.message} {by}"
            elif one.flow == "ingress" and one.message == _SUBSCRIPTION:
                text = f"{where} refuses our subscription {by}"
            else:
                continue
            to_us = True
            if exact:
                found.append(Check("filter", "bad", text, _HINT))
        elif one.flow == "ingress" and one.message in _DATA:
            keys = publishers.get(one.session)
            what = f", a publisher on {', '.join(sorted(keys)[:5])}" if keys else ""
            text = (
                f"{where} refuses what {one.session[:8]} publishes{what}: {n:,} {one.message} {by}"
            )
            found.append(Check("filter", "bad" if keys else "warn", text, _HINT))
        elif one.flow == "egress" and one.message == _SUBSCRIPTION and one.session in publishers:
            text = f"{where} does not tell {one.session[:8]}, a publisher, of subscriptions {by}"
            found.append(Check("filter", "bad", text, _HINT))
    return found, to_us and not exact


async def to_us_alone(config: Config, wanted: Sequence[str], limit: float) -> list[Check]:
    """Subscribe to nothing but the wanted keys: what is then refused to us is one of them."""
    own = config.copy()
    own.insert_json5("listen/endpoints", "[]")
    own.insert_json5("id", "null")
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aio.open(own))
        for key in wanted:
            await stack.enter_async_context(session.declare_subscriber(key, lambda _: None))
        await asyncio.sleep(limit)
        told = await counted(session)
        found, _ = findings(told.counts, str(session.zid()), {}, exact=True)
    return [check for check in found if check.mark == "bad"]
