"""QoS of publications by key, as ``qos/publication`` of the configuration says."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from zenwire.keyexpr import includes
from zenwire.routing import Locality
from zenwire.wire.values import CongestionControl, Priority, QoS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from zenwire.node.config.interceptors import PublicationQos, PublisherQos

__all__ = ["Overwrite", "Overwrites"]

_log = logging.getLogger("zenwire.api")

_KEYS_MAX: Final = 4096
"""Keys whose overwrite is remembered."""


@dataclass(frozen=True, slots=True)
class Overwrite:
    """QoS that replaces the QoS of the program. None keeps a value."""

    priority: Priority | None = None
    congestion_control: CongestionControl | None = None
    express: bool | None = None
    reliable: bool | None = None
    destination: Locality | None = None

    @classmethod
    def of(cls, config: PublisherQos) -> Self:
        """Read the ``config`` of one entry."""
        priority, control = config.priority, config.congestion_control
        reliability, where = config.reliability, config.allowed_destination
        return cls(
            None if priority is None else Priority[priority.name],
            None if control is None else CongestionControl[control.name],
            config.express,
            None if reliability is None else reliability.value == "reliable",
            None if where is None else Locality[where.name],
        )

    def qos(self, asked: QoS) -> QoS:
        """Return the QoS byte of a publication for which a program asked for another."""
        control = self.congestion_control
        return QoS.of(
            asked.priority if self.priority is None else self.priority,
            asked.congestion_control if control is None else control,
            asked.express if self.express is None else self.express,
        )


NO_OVERWRITE: Final = Overwrite()


class Overwrites:
    """The entries of ``qos/publication``. Keys are those of the program, without a namespace.

    Of several entries whose key expressions include a key, the last one holds.
    """

    __slots__ = ("_known", "_rules")

    def __init__(self, entries: Iterable[PublicationQos]) -> None:
        # The same expression again replaces the first, as in the reference.
        self._rules = {
            str(key): Overwrite.of(entry.config) for entry in entries for key in entry.key_exprs
        }
        self._known: dict[str, Overwrite] = {}

    def find(self, key: str) -> Overwrite:
        """Return what holds for publications on a key."""
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _KEYS_MAX:
                self._known.clear()
            found = self._known[key] = self._find(key)
        return found

    def _find(self, key: str) -> Overwrite:
        including = [rule for rule in self._rules if includes(rule, key)]
        if not including:
            return NO_OVERWRITE
        if len(including) > 1:
            _log.warning(
                "qos/publication: %s is included by %s; the last one holds",
                key,
                ", ".join(including),
            )
        return self._rules[including[-1]]

    def apply(
        self, key: str, qos: QoS, reliable: bool, destination: Locality
    ) -> tuple[QoS, bool, Locality]:
        """Return QoS, reliability and destination of a publication, overwritten for its key."""
        found = self.find(key)
        return (
            found.qos(qos),
            reliable if found.reliable is None else found.reliable,
            destination if found.destination is None else found.destination,
        )

    def raw_qos(self, key: str, raw: int) -> int:
        """Return the QoS byte of a publication, overwritten for its key."""
        return self.find(key).qos(QoS(raw)).raw

    def reliable(self, key: str, asked: bool) -> bool:
        """Return the reliability of a publication, overwritten for its key."""
        found = self.find(key).reliable
        return asked if found is None else found
