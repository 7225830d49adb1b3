"""Batches that were captured together, in order of time, and where each of them stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.capture.conversation.entry import Entry
from zenwire.capture.conversation.gaps import Numbered
from zenwire.capture.conversation.link import End, Link, Loss

__all__ = ["Event", "Links", "Said", "Where", "Window", "bools"]

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_LAST = 2**62


class Where(NamedTuple):
    """The columns of ``batches`` that name a connection and its ends."""

    capture: str
    flow: int | None
    connection: int | None
    link: str | None
    source: str | None
    source_port: int | None
    target: str | None
    target_port: int | None


class Event(NamedTuple):
    """A message that is told, or that changes what later ones mean: where its bytes are."""

    row: int
    offset: int
    length: int
    layer: str
    batch: int
    data: pa.Array


class Said(NamedTuple):
    """What an entry says beside when, where and between whom."""

    message: object = None
    length: int = 0
    key: str | None = None
    key_fault: str | None = None
    latency: float | None = None
    loss: Loss | None = None
    fault: str | None = None
    data: bytes = b""


class Links:
    """Every connection there is, by number."""

    def __init__(self) -> None:
        self.all: list[Link] = []
        self._numbers: dict[tuple[str, int | None, int | None], int] = {}

    def of(self, where: Where) -> tuple[int, int]:
        """(number, side) of a row."""
        source = End(where.source or "", where.source_port or 0)
        target = End(where.target or "", where.target_port or 0)
        side = int((source.address, source.port) > (target.address, target.port))
        of = where.capture, where.flow, where.connection
        number = self._numbers.setdefault(of, len(self.all))
        if number == len(self.all):
            ends = (target, source) if side else (source, target)
            self.all.append(Link(*of, where.link, ends))
        return number, side


class Window:
    """The rows of the ``batches`` table, and what is found in them on the way."""

    def __init__(self, table: pa.Table, links: Links) -> None:
        sequence = pc.fill_null(table["sequence"], _LAST).to_numpy()
        order = np.lexsort((sequence, table["time"].to_numpy()))
        # One chunk in each column.
        (self._rows,) = pa.Table.to_batches(table.take(pa.array(order)).combine_chunks())
        self.times: list[int] = self._rows.column("time").to_pylist()
        self.sequences: list[int | None] = self._rows.column("sequence").to_pylist()
        self.link, self.side = self._places(links)
        self.events: list[Event] = []
        self.sources: list[Numbered] = []
        """Samples that have a number of their publisher."""
        self.bases: dict[tuple[int, int, int], set[str]] = {}
        """(connection, side, id) -> what an id that is declared here may stand for."""
        self.lanes: list[tuple[npt.NDArray[np.generic], ...]] = []
        self._links = links
        self._entries: list[tuple[int, int, int, Entry]] = []

    def _places(self, links: Links) -> tuple[Int64, Int64]:
        columns = [self._rows.column(name) for name in Where._fields]
        coded = np.zeros(len(self.times), np.int64)
        for column in columns:
            codes = pc.dictionary_encode(column, null_encoding="encode").indices.to_numpy()
            coded = coded * (int(codes.max(initial=0)) + 1) + codes
            coded = np.unique(coded, return_inverse=True)[1]
        _, firsts, which = np.unique(coded, return_index=True, return_inverse=True)
        places = [links.of(Where(*(c[i].as_py() for c in columns))) for i in firsts.tolist()]
        found = np.array(places, np.int64).reshape(-1, 2)[which]
        return found[:, 0], found[:, 1]

    def column(self, name: str) -> pa.Array:
        """A column of the rows in order."""
        return self._rows.column(name)

    def flags(self, name: str) -> Bools:
        """A column of booleans; what is not known is false."""
        return bools(self._rows.column(name))

    def ends(self, row: int) -> tuple[Link, int]:
        """The connection of a row, and the side that sent it."""
        return self._links.all[int(self.link[row])], int(self.side[row])

    def add(self, row: int, offset: int, kind: str, layer: str, said: Said) -> None:
        """An entry; offset -1 if it is not of one message."""
        link, side = self.ends(row)
        at = None if offset < 0 else offset
        entry = Entry(self.times[row], kind, link, side, self.sequences[row], at, layer, *said)
        # A loss shows before the message that makes it known.
        self._entries.append((row, offset, int(said.loss is None), entry))

    def entries(self) -> list[Entry]:
        """All of them, in order."""
        return [entry for *_, entry in sorted(self._entries, key=lambda found: found[:3])]


def bools(column: pa.Array) -> Bools:
    """A column of booleans; what is null is false."""
    found: Bools = pc.fill_null(column, fill_value=False).to_numpy(zero_copy_only=False)
    return found
