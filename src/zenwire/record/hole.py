"""Where a hole begins that was not filled yet, written down beside the rows of a spool.

A recorder that is killed before it has asked for what was missed, or while it does, leaves that to
the next one: by then rows of after the hole are in the spool, and nothing else tells where it is.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Final

from zenwire.spool.errors import SpoolError
from zenwire.spool.files import place_of
from zenwire.spool.reader import MANIFEST

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["NAME", "Hole"]

_log = logging.getLogger("zenwire.record")

NAME: Final = "hole.json"


class Hole:
    """That of a spool. ``first`` is the offset of the first row after what was missed, or None."""

    def __init__(self, spool: str | Path, settled: int) -> None:
        """``settled``: up to there nothing is missing, as the writer of the spool says."""
        self._place = place_of(spool)
        self._kept = self._found()
        self.first: int | None = settled if self._kept is None else min(self._kept, settled)

    def _found(self) -> int | None:
        try:
            first = json.loads(self._place.read(NAME))["from"]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as e:
            _log.warning("%s: %s cannot be read: %s", self._place, NAME, e)
            return None
        return first if type(first) is int and first >= 0 else None

    def begin(self, offset: int) -> bool:
        """What comes from that offset on comes after a hole. Whether there was none."""
        begun = self.first is None
        if begun:
            self.first = offset
        self.keep()
        return begun

    def take(self, *, again: bool) -> int:
        """To fill it, from where on. Unless that is to be done ``again``, another one may begin now.

        It is kept until ``keep`` is told that it was filled.
        """
        assert self.first is not None
        first = self.first
        if not again:
            self.first = None
        return first

    def keep(self, *, filled: bool = False) -> None:
        """On disk, for whoever comes next: the first one that was not filled."""
        wanted = self.first if filled or self._kept is None else self._kept
        if wanted == self._kept and not filled:
            return
        try:
            if wanted is None:
                self._place.delete(NAME)
            elif self._place.size(MANIFEST):
                # A directory that was taken away is not to come back by this.
                self._place.replace(NAME, json.dumps({"from": wanted}).encode() + b"\n")
        except (OSError, SpoolError) as e:
            # A full disk. What is missed is then known only if this recorder lives on.
            _log.warning("%s: %s cannot be written: %s", self._place, NAME, e)
        else:
            self._kept = wanted
