"""Which rows are of keys that are wanted. Each key is looked at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from zenwire.keyexpr import intersects

__all__ = ["Keys"]

_KNOWN_MAX: Final = 1 << 17
"""Keys that are remembered."""


class Keys:
    """Those that intersect one of ``wanted``, or any if there are none, and none of ``excluded``."""

    def __init__(self, wanted: Sequence[str], excluded: Sequence[str]) -> None:
        self._wanted = wanted
        self._excluded = excluded
        self._known: dict[str, bool] = {}

    def __call__(self, keys: pa.Array) -> pa.Array | None:
        """For each, whether it is one of them; None if all are, whatever they are."""
        if not self._wanted and not self._excluded:
            return None
        found = keys.dictionary_encode()
        answers = pa.array([self._of(key) for key in found.dictionary.to_pylist()], pa.bool_())
        return answers.take(found.indices)

    def _of(self, key: str) -> bool:
        known = self._known.get(key)
        if known is None:
            wanted = not self._wanted or any(intersects(w, key) for w in self._wanted)
            known = wanted and not any(intersects(x, key) for x in self._excluded)
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[key] = known
        return known
