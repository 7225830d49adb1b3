"""Which keys are recorded: what to subscribe to, and which rows of that are kept.

A sample that several subscribers of a session want is delivered to each of them. So expressions
that others include are left out, and where two of them only meet, the second one leaves the keys
of both to the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from zenwire.keyexpr import KeyExpr, includes, intersects

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Chosen", "choose"]

_KNOWN_MAX: Final = 1 << 20
"""Keys that are remembered."""


class Chosen:
    """One expression, and which of its keys are not for it."""

    def __init__(self, key: str, unwanted: tuple[str, ...] = ()) -> None:
        self.key = key
        self.unwanted = unwanted
        self._known: dict[str, bool] = {}

    def keep(self, samples: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are wanted."""
        if not self.unwanted:
            return samples
        encoded = samples.column("key").dictionary_encode()
        wanted = pa.array([self.wants(key) for key in encoded.dictionary.to_pylist()], pa.bool_())
        if pc.all(wanted).as_py():
            return samples
        return samples.filter(wanted.take(encoded.indices))

    def wants(self, key: str) -> bool:
        """Whether a key is kept."""
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            known = not any(intersects(unwanted, key) for unwanted in self.unwanted)
            self._known[key] = known
        return known


def choose(include: Iterable[str], exclude: Iterable[str] = ()) -> list[Chosen]:
    """What to subscribe to. Raises KeyExprError for what is no key expression.

    What is excluded as a whole is not subscribed to.
    """
    without = [str(KeyExpr.autocanonize(one)) for one in exclude]
    wanted: list[str] = []
    for one in dict.fromkeys(str(KeyExpr.autocanonize(one)) for one in include):
        if not any(includes(other, one) for other in (*wanted, *without)):
            # Those that it includes came first.
            wanted = [other for other in wanted if not includes(one, other)]
            wanted.append(one)
    chosen = []
    for at, one in enumerate(wanted):
        unwanted = [other for other in (*wanted[:at], *without) if intersects(other, one)]
        chosen.append(Chosen(one, tuple(unwanted)))
    return chosen
