"""How it goes with a router, in a line: who is there, what comes and goes, what was lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from zenwire.cli.running import many

if TYPE_CHECKING:
    from zenwire.node.node import Node
    from zenwire.node.stats import NodeStats

__all__ = ["Report", "losses_of"]

_TRAFFIC: Final = ("rx_messages", "rx_bytes", "tx_messages", "tx_bytes")
_HARMLESS: Final = frozenset(
    {
        *("unknown_final", "unknown_undeclare", "off_tree", "over_budget"),
        *("ignored_declaration", "ignored_interest", "ignored_oam"),
    }
)
"""What is counted, and comes with a network that is well: it is in the admin space alone."""


def losses_of(node: Node, stats: NodeStats) -> Counter[str]:
    """Everything that was lost, refused or filtered so far, by a word each."""
    found: Counter[str] = Counter()
    found.update({cause.value: count for cause, count in stats.dropped.items()})
    found.update({str(filtered): count for filtered, count in stats.filtered.items()})
    for field in fields(stats.routing):
        count = getattr(stats.routing, field.name)
        if isinstance(count, int) and field.name not in _HARMLESS:
            found[field.name] += count
    found.update({f"closed: {why}": count for why, count in stats.routing.violations.items()})
    found["future timestamps"] += stats.late
    found["handshakes"] += sum(stats.failures.values())
    found["handshakes evicted"] += stats.handshakes_evicted
    for word in ("unresponsive", "invalid", "expired", "evicted"):
        found[f"sessions ended: {word}"] += stats.endings.get(word, 0)
    if node.tap is not None:
        found["tap"] += node.tap.counted.lost_packets
    if node.admin is not None:
        found.update({f"admin space: {why}": n for why, n in node.admin.refused.items()})
    return found


class Report:
    """Remembers what was told before: rates and losses are since then."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._time = node.now
        self._traffic = self._sums(node.stats())
        self._losses = losses_of(node, node.stats())

    @staticmethod
    def _sums(stats: NodeStats) -> dict[str, int]:
        parts = [one.transport for one in stats.neighbours] + [stats.ended]
        return {name: sum(getattr(part, name) for part in parts) for name in _TRAFFIC}

    def status(self, now: float) -> str:
        """One line."""
        stats = self._node.stats()
        kinds = Counter(one.whatami.name.lower() for one in stats.neighbours)
        who = ", ".join(many(count, kind) for kind, count in sorted(kinds.items())) or "nobody"
        sums, seconds = self._sums(stats), max(now - self._time, 1e-3)
        rates = {name: (sums[name] - self._traffic[name]) / seconds for name in _TRAFFIC}
        self._time, self._traffic = now, sums
        waiting = sum(one.waiting for one in stats.neighbours)
        lost = losses_of(self._node, stats).total()
        return (
            f"{who}; in {_rate(rates, 'rx')}, out {_rate(rates, 'tx')}; "
            f"{many(waiting, 'message')} waiting; {lost:,} lost or refused"
        )

    def losses(self) -> str:
        """What was lost since the last time, if anything was."""
        now = losses_of(self._node, self._node.stats())
        new, self._losses = now - self._losses, now
        if not new:
            return ""
        told = ", ".join(f"{count:,} {word}" for word, count in new.most_common())
        return f"lost or refused: {told}"


def _rate(rates: dict[str, float], way: str) -> str:
    return f"{rates[f'{way}_messages']:,.0f} messages/s {rates[f'{way}_bytes'] / 1e6:,.2f} MB/s"
