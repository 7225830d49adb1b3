"""A passive view of conversations: batches in, what was said out, in order of time.

One sequential pass with bounded memory, without Spark: key-expression ids of both sides are
resolved, pieces are put together, replies are matched with their requests, and what was lost or
does not decode is told. Messages are looked at as columns; an object is made only of those that
are told or change what later ones mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.capture.conversation.entry import (
    Entry,
    Scan,
    Scanned,
    Tally,
    Want,
)
from zenwire.capture.conversation.gaps import Gap, Lanes, Numbered, Sources
from zenwire.capture.conversation.kinds import TRANSPORT_KINDS, kind_of
from zenwire.capture.conversation.link import Asked, Broken, Link, Loss, Pieces, Whole
from zenwire.capture.conversation.rows import Rows
from zenwire.capture.conversation.subscriptions import NOT_SENT
from zenwire.capture.conversation.window import Event, Links, Said, Window
from zenwire.errors import DecodeError, Fault
from zenwire.keyexpr import canonize, intersects
from zenwire.wire import decode, expand_batch
from zenwire.wire.declare import (
    DeclareKeyExpr,
    DeclareSubscriber,
    UndeclareKeyExpr,
    UndeclareSubscriber,
)
from zenwire.wire.define import spec_of
from zenwire.wire.network import Declare, Push, Request, Response, ResponseFinal
from zenwire.wire.transport import Fragment
from zenwire.wire.values import WireExpr

__all__ = ["Conversation"]

HELD: Final = 512 << 20
"""Bytes of pieces that wait for the rest, of all connections together."""
MATCHES: Final = 65_536
"""Keys of which it is remembered whether they match."""

_NO_LOSS: Final = frozenset(
    {"overhead", "repeated", "not_zenoh", "packet_other_network", "packet_other_transport"}
)
"""Bytes that are in no batch, and that nobody misses: headers, repetitions, other traffic."""

Int64 = npt.NDArray[np.int64]


class Conversation:
    """Feed it the ``batches`` table of a capture, window by window."""

    def __init__(self, scan: Scan, want: Want | None = None) -> None:
        self.tally = Tally()
        self._scan = scan
        self._want = want or Want()
        self._links = Links()
        self._rows = Rows(self._want, self._matches, self._is_other)
        self._lanes = Lanes()
        self._sources = Sources()
        self._held = 0
        self._known: dict[str, bool] = {}

    @property
    def links(self) -> list[Link]:
        """Every connection so far."""
        return self._links.all

    def feed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Entry]:
        """What these batches say. They come together if they were captured together."""
        table = [batch for batch in batches if batch.num_rows]
        if not table:
            return
        window = Window(pa.Table.from_batches(table), self._links)
        self._count(window)
        self._faults(window)
        for rows, data, low_latency in self._contents(window):
            for found in self._scan(data, low_latency):
                self._read(window, found, rows, data)
        self.tally.kinds.update(self._rows.kinds)
        self._rows.kinds.clear()
        window.events.sort(key=lambda e: (e.row, e.offset))
        for event in window.events:
            self._event(window, event)
        self._gaps(window)
        for entry in window.entries():
            if self._is_wanted(entry):
                yield entry

    def finish(self) -> Iterator[Entry]:
        """Pieces whose rest never came."""
        time = self.tally.last_time or 0
        for link in self.links:
            for (side, *_), pieces in link.pieces.items():
                for broken in pieces.give_up():
                    assert isinstance(broken, Broken)
                    self.tally.losses["fragments"] += 1
                    loss = broken.loss
                    entry = Entry(time, "loss", link, side, None, None, "transport", loss=loss)
                    if self._want.kind("loss") and self._is_wanted(entry):
                        yield entry

    # From batches to events.

    def _count(self, window: Window) -> None:
        tally, data = self.tally, window.column("bytes")
        first = window.times[0]
        tally.first_time = first if tally.first_time is None else min(tally.first_time, first)
        tally.last_time = max(tally.last_time or 0, window.times[-1])
        tally.batches += len(data) - data.null_count
        tally.batch_bytes += int(pc.sum(pc.binary_length(data)).as_py() or 0)

    def _faults(self, window: Window) -> None:
        """What the capture itself lacks."""
        faults = window.column("fault")
        if faults.null_count == len(faults):
            return
        for row in np.flatnonzero(faults.is_valid().to_numpy(zero_copy_only=False)).tolist():
            skipped, missing = (window.column(c)[row].as_py() for c in ("skipped", "missing"))
            reason = faults[row].as_py()
            self.tally.accounts[reason] += skipped
            if reason in _NO_LOSS:
                continue
            self.tally.missing += missing
            loss = Loss("capture", reason, skipped=skipped, missing=missing)
            self._lost(window, row, -1, loss)

    def _contents(self, window: Window) -> Iterator[tuple[Int64, pa.Array, bool]]:
        """(rows, their bytes, whether of low latency) by how batches are wrapped."""
        data = window.column("bytes")
        there = data.is_valid().to_numpy(zero_copy_only=False)
        scouting = window.flags("scouting") & there
        for row in np.flatnonzero(scouting).tolist():
            self._scouting(window, row, data[row].as_py())
        there = there & ~scouting
        for i in np.unique(window.link[there]).tolist():
            self.links[i].talked = True
        low_latency = window.flags("lowlatency") & there
        compressed = window.flags("compression") & there & ~low_latency
        plain = there & ~low_latency & ~compressed
        for mask, is_low in ((plain, False), (low_latency, True)):
            rows = np.flatnonzero(mask)
            if len(rows):
                yield rows, data if mask.all() else data.take(pa.array(rows)), is_low
        rows = np.flatnonzero(compressed)
        if len(rows):
            yield rows, self._expanded(window, rows, data), False

    def _expanded(self, window: Window, rows: Int64, data: pa.Array) -> pa.Array:
        contents = []
        for row in rows.tolist():
            block = data[row].as_py()
            try:
                contents.append(expand_batch(block))
            except DecodeError as e:
                contents.append(b"")
                self._bad(window, (row, 0), "transport", e.fault, block)
        return pa.array(contents, pa.binary())

    def _read(self, window: Window, found: Scanned, rows: Int64, data: pa.Array) -> None:
        if found.network.num_rows:
            at = rows[found.network.column("batch").to_numpy()]
            self._rows.network(window, found.network, at, data, self._links)
        if found.transport.num_rows:
            at = rows[found.transport.column("batch").to_numpy()]
            self._rows.transport(window, found.transport, at, data)
        for bad in found.malformed.to_pylist():
            offset = bad["message_offset"]
            rest = data[bad["batch"]].as_py()[offset:]
            place = int(rows[bad["batch"]]), offset
            self._bad(window, place, "transport", Fault(bad["fault"]), rest)

    # From events to entries.

    def _scouting(self, window: Window, row: int, data: bytes) -> None:
        try:
            message = decode(data, "scouting")
        except DecodeError as e:
            self._bad(window, (row, 0), "scouting", e.fault, data)
            return
        kind = spec_of(type(message)).name.lower()
        self.tally.kinds[kind] += 1
        self._tell(window, (row, 0), kind, "scouting", Said(message, len(data)))

    def _event(self, window: Window, event: Event) -> None:
        content = event.data[event.batch].as_buffer()
        # A copy: what is told may be kept.
        data = content.slice(event.offset, event.length).to_pybytes()
        message = decode(data, event.layer)
        place = event.row, event.offset
        if event.layer == "network":
            self._said(window, place, message, event.length)
            return
        link, side = window.ends(event.row)
        link.greet(message, side)
        kind = TRANSPORT_KINDS[spec_of(type(message)).id << 5]
        self._tell(window, place, kind, "transport", Said(message, event.length))
        if isinstance(message, Fragment):
            self._piece(window, place, message)

    def _piece(self, window: Window, place: tuple[int, int], piece: Fragment) -> None:
        link, side = window.ends(place[0])
        lane = link.pieces.setdefault((side, piece.reliable, int(piece.priority)), Pieces())
        before = lane.size
        found = lane.add(piece, link.modulus)
        if self._held + lane.size - before > HELD:
            found += lane.give_up("too many pieces wait for the rest")
        self._held += lane.size - before
        for made in found:
            if isinstance(made, Broken):
                self._lost(window, *place, made.loss)
            else:
                self._whole(window, place, made)

    def _whole(self, window: Window, place: tuple[int, int], whole: Whole) -> None:
        try:
            message = decode(whole.data, "network")
        except DecodeError as e:
            if whole.sure:
                self._bad(window, place, "network", e.fault, whole.data)
                return
            # Nobody said that a message begins here, and none does.
            to_sn = whole.from_sn + whole.count - 1
            loss = Loss("fragments", "pieces are missing", whole.from_sn, to_sn, whole.count)
            self._lost(window, *place, loss)
            return
        self.tally.kinds[kind_of(message)] += 1
        if isinstance(message, Push) and message.body.source_info is not None:
            source, row = message.body.source_info, place[0]
            of = int(window.link[row]), int(window.side[row]), source.zid.raw, source.eid
            key = message.key.scope, message.key.suffix, message.key.mapping
            window.sources.append(Numbered(*place, of, source.sn, key))
        self._said(window, place, message, len(whole.data))

    def _said(self, window: Window, place: tuple[int, int], message: object, length: int) -> None:
        row, offset = place
        link, side = window.ends(row)
        key, key_fault, latency = None, None, None
        said = message.body if isinstance(message, Declare) else message
        wire_key = getattr(said, "key", None)
        if isinstance(wire_key, WireExpr):
            key, key_fault = link.resolve(wire_key, side)
        match said:
            case DeclareKeyExpr():
                key, key_fault = link.declare(said, side)
            case UndeclareKeyExpr():
                key = link.undeclare(said, side)
            case DeclareSubscriber() | UndeclareSubscriber():
                assert isinstance(message, Declare)
                link.subscribe(message, side, key, window.times[row])
            case Request():
                sequence = window.sequences[row] or 0
                link.ask(said.request_id, side, Asked(window.times[row], sequence, offset, key))
            case Response() | ResponseFinal():
                asked = link.asked_by(said.request_id, side)
                if asked is not None:
                    latency = (window.times[row] - asked.time) / 1e9
                    key = asked.key if isinstance(said, ResponseFinal) else key
        told = Said(message, length, key, key_fault, latency)
        self._tell(window, place, kind_of(message), "network", told)

    def _gaps(self, window: Window) -> None:
        found: list[Gap] = []
        if window.lanes:
            columns = [np.concatenate(parts) for parts in zip(*window.lanes, strict=True)]
            found += self._lanes.find(columns, self._of_lane)
        window.sources.sort(key=lambda s: s[:2])
        found += self._sources.find(window.sources, window.times, self.links)
        for gap in found:
            self._lost(window, gap.row, gap.offset, gap.loss)

    def _of_lane(self, lane: int) -> tuple[Link, int]:
        return self.links[lane >> 5], lane >> 4 & 1

    def _lost(self, window: Window, row: int, offset: int, loss: Loss) -> None:
        kind = "loss"
        if loss.kind == NOT_SENT[0]:
            kind = "not_sent"
            self.tally.not_sent += 1
        else:
            self.tally.losses[loss.kind] += 1
        self._tell(window, (row, offset), kind, "transport", Said(loss=loss))

    def _bad(
        self, window: Window, place: tuple[int, int], layer: str, fault: Fault, data: bytes
    ) -> None:
        self.tally.malformed += 1
        said = Said(length=len(data), fault=fault.name.lower(), data=data)
        self._tell(window, place, "malformed", layer, said)

    def _tell(
        self, window: Window, place: tuple[int, int], kind: str, layer: str, said: Said
    ) -> None:
        if self._want.kind(kind):
            window.add(*place, kind, layer, said)

    # What is wanted.

    def _is_wanted(self, entry: Entry) -> bool:
        if self._want.zid is not None and not self._is_of(entry.link):
            return False
        if self._want.key is None:
            return True
        return entry.key is not None and self._matches(entry.key)

    def _is_of(self, link: Link) -> bool:
        zid = self._want.zid or ""
        return any(end.zid is not None and end.zid.startswith(zid) for end in link.ends)

    def _is_other(self, link: Link) -> bool:
        """Certainly not of the ZenohID that is wanted."""
        return all(end.zid is not None for end in link.ends) and not self._is_of(link)

    def _matches(self, key: str) -> bool:
        known = self._known.get(key)
        if known is None:
            try:
                known = intersects(self._want.key or "", canonize(key))
            except ValueError:
                known = False
            if len(self._known) >= MATCHES:
                self._known.clear()
            self._known[key] = known
        return known
