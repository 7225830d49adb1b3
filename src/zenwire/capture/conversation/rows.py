"""Messages as columns to those that an object is made of: filters exclude the rest here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.capture.conversation.entry import Want
from zenwire.capture.conversation.gaps import Numbered
from zenwire.capture.conversation.kinds import DATA_KINDS, NETWORK_KINDS, TRANSPORT_KINDS
from zenwire.capture.conversation.link import Link
from zenwire.capture.conversation.window import Event, Links, Window, bools
from zenwire.wire.declare import (
    DeclareKeyExpr,
    DeclareSubscriber,
    UndeclareKeyExpr,
    UndeclareSubscriber,
)
from zenwire.wire.define import spec_of
from zenwire.wire.network import Declare, Push
from zenwire.wire.transport import Fragment, Frame, InitSyn, Join, OpenSyn

__all__ = ["Rows"]

Int64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_PUSH: Final = spec_of(Push).id
_FRAGMENT: Final = spec_of(Fragment).id
_NUMBERED: Final = (spec_of(Frame).id, _FRAGMENT)
_DECLARES: Final = tuple(
    spec_of(Declare).id << 5 | spec_of(cls).id
    for cls in (DeclareKeyExpr, UndeclareKeyExpr, DeclareSubscriber, UndeclareSubscriber)
)
# What later messages depend on is looked at whether it is told or not.
_ALWAYS: Final = frozenset(spec_of(cls).id << 5 for cls in (InitSyn, OpenSyn, Join, Fragment))


class Rows:
    """Counts messages, and takes those that are wanted or needed.

    ``matches`` says whether a key is wanted, ``is_other`` whether a connection is certainly not.
    """

    def __init__(
        self, want: Want, matches: Callable[[str], bool], is_other: Callable[[Link], bool]
    ) -> None:
        self.kinds: Counter[str] = Counter()
        self._want = want
        self._matches = matches
        self._is_other = is_other
        self._network = _Chooser(NETWORK_KINDS, want, _always(want))
        self._transport = _Chooser(TRANSPORT_KINDS, want, _ALWAYS)

    def network(
        self, window: Window, found: pa.RecordBatch, at: Int64, data: pa.Array, links: Links
    ) -> None:
        """Network messages; ``at`` is the row of each, ``data`` the batches that were read."""
        body = pc.fill_null(found.column("body"), 0).to_numpy()
        codes = found.column("message").to_numpy().astype(np.int64) << 5 | body
        self.kinds += self._network.count(codes)
        chosen = self._network.choose(codes)
        if self._want.zid is not None:
            which = np.unique(window.link[at])
            others = [i for i in which.tolist() if self._is_other(links.all[i])]
            chosen &= ~(np.isin(window.link[at], others) & np.isin(codes, DATA_KINDS))
        if self._want.key is not None:
            chosen &= self._may_match(window, found, at, codes, links)
        _take(window, found, at, np.flatnonzero(chosen), ("network", data))
        self._sources(window, found, at, codes)

    def _may_match(
        self, window: Window, found: pa.RecordBatch, at: Int64, codes: Int64, links: Links
    ) -> Bools:
        """False for data of another key; each key is looked at once.

        An id that is declared in this window may mean what it did before, or any of that.
        """
        self._declared(window, found, at, codes, links)
        may: Bools = np.ones(len(at), np.bool_)
        which = np.flatnonzero(np.isin(codes, DATA_KINDS))
        some = found.take(pa.array(which))
        suffixes = pc.dictionary_encode(some.column("key_suffix"), null_encoding="encode")
        names = suffixes.dictionary.to_pylist()
        scope = some.column("key_scope").to_numpy().astype(np.int64)
        by_sender = bools(some.column("key_mapping")).astype(np.int64)
        place = window.link[at[which]] << 1 | window.side[at[which]]
        coded = ((place << 16 | scope) << 1 | by_sender) * len(names) + suffixes.indices.to_numpy()
        _, firsts, inverse = np.unique(coded, return_index=True, return_inverse=True)
        matches = np.zeros(len(firsts), np.bool_)
        for n, i in enumerate(firsts.tolist()):
            suffix = names[suffixes.indices[i].as_py()] or ""
            number, side = int(place[i] >> 1), int(place[i] & 1)
            declarer = side if by_sender[i] else 1 - side
            bases = _bases(window, links, (number, declarer, int(scope[i])))
            matches[n] = any(self._matches(base + suffix) for base in bases)
        may[which] = matches[inverse]
        return may

    def _declared(
        self, window: Window, found: pa.RecordBatch, at: Int64, codes: Int64, links: Links
    ) -> None:
        which = np.flatnonzero(codes == _DECLARES[0])
        some = found.take(pa.array(which))
        columns = [some.column(c).to_pylist() for c in ("expr_id", "key_scope", "key_suffix")]
        for row, number, scope, suffix in zip(at[which].tolist(), *columns, strict=True):
            link, side = int(window.link[row]), int(window.side[row])
            bases = _bases(window, links, (link, 1 - side, scope or 0))
            mine = _bases(window, links, (link, side, number))
            mine |= {base + (suffix or "") for base in bases}
            window.bases[link, side, number] = mine

    def _sources(self, window: Window, found: pa.RecordBatch, at: Int64, codes: Int64) -> None:
        numbered = found.column("source_sn")
        if numbered.null_count == len(numbered):
            return
        valid = numbered.is_valid().to_numpy(zero_copy_only=False)
        which = np.flatnonzero(valid & (codes >> 5 == _PUSH))
        some = found.take(pa.array(which))
        rows = at[which]
        sources = zip(
            window.link[rows].tolist(),
            window.side[rows].tolist(),
            some.column("source_zid").to_pylist(),
            some.column("source_eid").to_pylist(),
            strict=True,
        )
        offsets, numbers = (some.column(c).to_pylist() for c in ("offset", "source_sn"))
        keys = zip(
            some.column("key_scope").to_pylist(),
            some.column("key_suffix").to_pylist(),
            bools(some.column("key_mapping")).tolist(),
            strict=True,
        )
        window.sources += map(
            Numbered._make, zip(rows.tolist(), offsets, sources, numbers, keys, strict=True)
        )

    def transport(self, window: Window, found: pa.RecordBatch, at: Int64, data: pa.Array) -> None:
        """Transport messages, the same way; sequence numbers are set aside."""
        codes = found.column("message").to_numpy().astype(np.int64) << 5
        self.kinds += self._transport.count(codes)
        chosen = np.flatnonzero(self._transport.choose(codes))
        _take(window, found, at, chosen, ("transport", data))
        which = np.flatnonzero(np.isin(codes >> 5, _NUMBERED))
        if not len(which):
            return
        some = found.take(pa.array(which))
        rows = at[which]
        lane = (window.link[rows] << 1 | window.side[rows]) << 1 | bools(some.column("reliable"))
        priority = pc.fill_null(some.column("priority"), 0).to_numpy().astype(np.int64) & 7
        last_piece = (codes[which] >> 5 == _FRAGMENT) & ~bools(some.column("more"))
        offsets = some.column("offset").to_numpy().astype(np.int64)
        window.lanes.append(
            (rows, offsets, lane << 3 | priority, some.column("sn").to_numpy(), last_piece)
        )


def _bases(window: Window, links: Links, of: tuple[int, int, int]) -> set[str]:
    """What a scope (connection, declaring side, id) may stand for in this window."""
    number, side, scope = of
    if not scope:
        return {""}
    if of in window.bases:
        return window.bases[of]
    known = links.all[number].aliases.get((side, scope))
    return set() if known is None else {known}


def _take(
    window: Window, found: pa.RecordBatch, at: Int64, chosen: Int64, of: tuple[str, pa.Array]
) -> None:
    if not len(chosen):
        return
    layer, data = of
    some = found.select(["offset", "length", "batch"]).take(pa.array(chosen))
    columns = [column.to_pylist() for column in some.columns]
    window.events += [
        Event(row, offset, length, layer, batch, data)
        for row, offset, length, batch in zip(at[chosen].tolist(), *columns, strict=True)
    ]


def _always(want: Want) -> frozenset[int]:
    needed = {*_DECLARES}
    if any(map(want.kind, ("reply", "error", "final"))):
        needed |= {code for code, kind in NETWORK_KINDS.items() if kind == "query"}
    return frozenset(needed)


class _Chooser:
    """Which messages become objects, by message and body."""

    def __init__(self, kinds: dict[int, str], want: Want, always: frozenset[int]) -> None:
        self._names = [kinds.get(code, "") for code in range(1024)]
        self._chosen: Bools = np.array(
            [code in always or want.kind(name) for code, name in enumerate(self._names)]
        )

    def choose(self, codes: Int64) -> Bools:
        chosen: Bools = self._chosen[codes]
        return chosen

    def count(self, codes: Int64) -> Counter[str]:
        counts = np.bincount(codes, minlength=1024)
        found: Counter[str] = Counter()
        for code in np.flatnonzero(counts).tolist():
            found[self._names[code]] += int(counts[code])
        return found
