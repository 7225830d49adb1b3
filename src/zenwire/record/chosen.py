"""Which keys are recorded: what to subscribe to, and which rows of that are kept.

A sample that several subscribers of a session want is delivered to each of them. So expressions
that others include are left out, and where two of them only meet, the second one leaves the keys
of both to the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns.keys import Keys
from zenwire.keyexpr import KeyExpr, includes, intersects

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Chosen", "choose"]


class Chosen:
    """One expression, and which of its keys are not for it."""

    def __init__(self, key: str, unwanted: tuple[str, ...] = ()) -> None:
        self.key = key
        self.unwanted = unwanted
        self._keys = Keys((), unwanted)

    def keep(self, samples: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are wanted."""
        wanted = self._keys(samples.column("key"))
        if wanted is None or pc.all(wanted).as_py():
            return samples
        return samples.filter(wanted)


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
