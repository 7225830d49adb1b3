"""Downsampling: at most so many messages each second on the keys of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from zenwire.keyexpr import intersects
from zenwire.node.config.interceptors import AclMessage, Flow

if TYPE_CHECKING:
    from zenwire.node.config.interceptors import Downsampling
    from zenwire.node.filters.party import Party

__all__ = ["Rate", "Rates"]

_NEVER: Final = float("inf")


class Rate:
    """One rule, for all keys that it is about together. ``period`` is seconds between messages."""

    __slots__ = ("_last", "period")

    def __init__(self, freq: float) -> None:
        # 0 lets nothing pass; below that there is no limit, as in the reference.
        self.period = _NEVER if freq == 0 else max(1 / freq, 0.0)
        self._last = -_NEVER

    def passes(self, now: float) -> bool:
        """Whether it is time for another one, which then counts."""
        if self.period == _NEVER or now - self._last < self.period:
            return False
        self._last = now
        return True


class Rates:
    """The rules of one item of the configuration, for one session and direction."""

    def __init__(self, settings: Downsampling) -> None:
        self.kinds = frozenset(AclMessage(message.value) for message in settings.messages)
        # A later rule on just the same expression is in place of the earlier one.
        self._rates = {str(rule.key_expr): Rate(rule.freq) for rule in settings.rules}

    @staticmethod
    def concerns(settings: Downsampling, party: Party, flow: Flow) -> bool:
        """Whether they are for what goes this way."""
        flows = settings.flows or tuple(Flow)
        return flow in flows and party.comes_by(settings.interfaces, settings.link_protocols)

    def rate(self, key: str) -> Rate | None:
        """The first rule that is about a key."""
        for expr, rate in self._rates.items():
            if intersects(expr, key):
                return rate
        return None
