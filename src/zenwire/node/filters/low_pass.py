"""The low-pass filter: messages above a size do not pass."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from zenwire.keyexpr import KeyExprTree
from zenwire.node.config.interceptors import AclMessage, Flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zenwire.node.config.interceptors import LowPassFilter
    from zenwire.node.filters.party import Party

__all__ = ["Sizes"]

_From = tuple[str | None, str | None]
"""An interface and a protocol; None is any."""


class Sizes:
    """All items of the configuration, for one session and direction.

    Of several limits the smallest holds. A later one on just the same interface, protocol and
    expression is in place of the earlier one, as in the reference.
    """

    def __init__(self, settings: Sequence[LowPassFilter], party: Party, flow: Flow) -> None:
        limits: dict[AclMessage, dict[_From, KeyExprTree[int]]] = {}
        for item in settings:
            if flow not in (item.flows or tuple(Flow)):
                continue
            interfaces: Sequence[str | None] = item.interfaces or (None,)
            protocols: Sequence[str | None] = (None,)
            if item.link_protocols is not None:
                protocols = [protocol.value for protocol in item.link_protocols]
            for interface, protocol in product(interfaces, protocols):
                if interface is not None and interface not in party.interfaces:
                    continue
                if protocol is not None and protocol not in party.protocols:
                    continue
                for message, key in product(item.messages, item.key_exprs):
                    trees = limits.setdefault(AclMessage(message.value), {})
                    tree = trees.setdefault((interface, protocol), KeyExprTree())
                    tree.insert(key, item.size_limit)
        self._limits = limits

    def __bool__(self) -> bool:
        return bool(self._limits)

    @property
    def kinds(self) -> frozenset[AclMessage]:
        """Messages that have a limit."""
        return frozenset(self._limits)

    def limit(self, message: AclMessage, key: str) -> int | None:
        """Bytes of payload and attachment that may pass; None if all may."""
        trees = self._limits.get(message, {}).values()
        return min((limit for tree in trees for _, limit in tree.including(key)), default=None)
