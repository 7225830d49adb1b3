"""QoS overwrite: what the QoS of a message becomes on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zenwire.keyexpr import KeyExprTree
from zenwire.node.config.interceptors import AclMessage, Flow, Reliability
from zenwire.node.filters.messages import payload_size
from zenwire.wire.values import CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from zenwire.node.config.interceptors import QosOverwrite
    from zenwire.node.filters.party import Party
    from zenwire.wire.network import NetworkMessage

__all__ = ["Overwriting"]


class Overwriting:
    """One item of the configuration."""

    def __init__(self, item: QosOverwrite) -> None:
        self.kinds = frozenset(AclMessage(message.value) for message in item.messages)
        self._sizes = item.payload_size
        self._filter = item.qos
        self._keys: KeyExprTree[None] | None = None
        if item.key_exprs is not None:
            self._keys = KeyExprTree()
            for key in item.key_exprs:
                self._keys.insert(key, None)
        to = item.overwrite
        self._step, self._priority = 0, None
        if isinstance(to.priority, int):
            self._step = to.priority
        elif to.priority is not None:
            self._priority = Priority[to.priority.name]
        self._congestion = (
            None if to.congestion_control is None else CongestionControl[to.congestion_control.name]
        )
        self._express = to.express
        self._known: dict[int, QoS] = {}
        """What a QoS becomes, by its byte."""

    @staticmethod
    def concerns(item: QosOverwrite, party: Party, flow: Flow) -> bool:
        """Whether it is for what goes this way."""
        if flow not in (item.flows or tuple(Flow)):
            return False
        if item.zids is not None and party.zid not in item.zids:
            return False
        return party.comes_by(item.interfaces, item.link_protocols)

    def about(self, key: str | None) -> bool:
        """Whether it is about a key. One that cannot be read is none of those that are named."""
        if self._keys is None:
            return True
        return key is not None and any(True for _ in self._keys.including(key))

    def means(self, message: NetworkMessage, reliable: bool) -> bool:
        """Whether a message with a key that it is about has the QoS and the size."""
        if self._sizes is not None and payload_size(message) not in self._sizes:
            return False
        wanted, qos = self._filter, message.qos
        if wanted is None:
            return True
        priority, congestion = wanted.priority, wanted.congestion_control
        return (
            (priority is None or qos.priority is Priority[priority.name])
            and (congestion is None or qos.congestion_control is CongestionControl[congestion.name])
            and (wanted.express is None or qos.express is wanted.express)
            and (wanted.reliability is None or reliable is _reliable(wanted.reliability))
        )

    def qos(self, qos: QoS) -> QoS:
        """What becomes of a QoS."""
        found = self._known.get(qos.raw)
        if found is None:
            found = self._known[qos.raw] = self._overwritten(qos)
        return found

    def _overwritten(self, qos: QoS) -> QoS:
        priority = qos.priority if self._priority is None else self._priority
        # The reference never raises a priority by a number, and stops at the lowest one.
        if self._step > 0:
            priority = Priority(min(priority + self._step, Priority.BACKGROUND))
        congestion = qos.congestion_control if self._congestion is None else self._congestion
        return QoS.of(priority, congestion, qos.express if self._express is None else self._express)


def _reliable(reliability: Reliability) -> bool:
    return reliability is Reliability.RELIABLE
