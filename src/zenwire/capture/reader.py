"""From packets to the ``batches`` table: all steps behind one another, and the books."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.capture import kernels as k
from zenwire.capture.datagrams import Datagrams, Held
from zenwire.capture.flows import Flows, Limits, Pieces, Reassembly
from zenwire.capture.framing import Framer
from zenwire.capture.packets import PacketFault, PacketReader, Packets
from zenwire.capture.records import FileFault, Records
from zenwire.capture.runs import Framed, Saved
from zenwire.capture.summary import Summary
from zenwire.capture.table import FaultRow, Rows, fault_rows, record_batch

__all__ = ["BatchReader"]

SWEEP: Final = 1024
"""Connections from which on those that are over are looked for."""

Int64 = npt.NDArray[np.int64]


class BatchReader:
    """Records in order of capture to rows of the ``batches`` table.

    ``capture`` is what the column of that name says. Without ``rows`` it goes through the same
    states, and gives nothing. ``summary`` is about what came since it was made or loaded.
    """

    def __init__(self, capture: str, *, rows: bool = True, limits: Limits | None = None) -> None:
        self.capture = capture
        self.summary = Summary()
        self.flows = Flows()
        self._rows = rows
        self._packets = PacketReader()
        self._reassembly = Reassembly(limits)
        self._framer = Framer()
        self._datagrams = Datagrams()
        self._bad_blocks = 0
        self._sweep_at = SWEEP
        self._time = 0

    def feed(self, records: Records) -> Iterator[pa.RecordBatch]:
        """The batches that these records complete."""
        packets = self._packets.read(records)
        if self._rows:
            yield from self._count(packets)
        if packets.count:
            self._time = int(packets.table[k.P_TIME, packets.count - 1])
        known = len(self.flows)
        flow, side = self.flows.assign(packets)
        self._reassembly.continue_flows(self.flows.connections_before(known))
        for pieces in self._reassembly.feed(packets, flow, side):
            yield from self._framed(pieces)
        for held in self._datagrams.feed(packets, flow, side):
            yield from self._udp(held)
        if len(self._reassembly.connections) >= self._sweep_at:
            yield from self.sweep()

    def finish(self) -> Iterator[pa.RecordBatch]:
        """What waited and what was not decided. Nothing more comes."""
        for pieces in self._reassembly.finish():
            yield from self._framed(pieces)
        for framed in self._framer.finish():
            yield from self._tcp(framed)
        yield from self._udp(self._datagrams.finish())
        fragments = self._packets.fragments
        fragments.dropped, fragments.waiting = fragments.held, 0

    # Connections that are over.

    def sweep(self) -> Iterator[pa.RecordBatch]:
        """Ends connections that were closed and of which nothing more comes, and forgets them.

        When that happens does not show in the rows: a packet that comes later is of another
        connection either way.
        """
        for pieces in self._reassembly.finish(over_alone=True):
            yield from self._framed(pieces)
        gone = self._reassembly.gone()
        streams = np.repeat(gone, 2)
        for framed in self._framer.abandon(streams):
            yield from self._tcp(framed)
        had, alive = self._reassembly.had(len(self.flows))
        flows = alive | ~self.flows.is_tcp
        self._reassembly.drop(gone, flows)
        self._framer.drop(~streams)
        self._datagrams.drop(flows)
        self.flows.drop(flows, had)
        self._sweep_at = max(SWEEP, 2 * len(self._reassembly.connections))

    def save(self) -> Saved:
        """The state of all steps, to be pickled before anything else is fed. After a sweep."""
        flows, streams = len(self.flows), 2 * len(self._reassembly.connections)
        return (
            self._packets.fragments.save(),
            self.flows.save(),
            self._reassembly.save(flows),
            self._framer.save(streams),
            self._datagrams.save(flows),
            (self._sweep_at, self._time),
        )

    def load(self, saved: Saved) -> None:
        """Goes on where another one was."""
        fragments, flows, reassembly, framer, datagrams, rest = saved
        self._packets.fragments.load(fragments)
        self.flows.load(flows)
        self._reassembly.load(reassembly)
        self._framer.load(framer)
        self._datagrams.load(datagrams)
        self._sweep_at, self._time = rest

    # The books.

    def _count(self, packets: Packets) -> Iterator[pa.RecordBatch]:
        summary, n = self.summary, packets.count
        if packets.faults:
            yield from self._fault_rows([self._note(fault, packets) for fault in packets.faults])
        self._bad_blocks += packets.bad
        summary.overhead += packets.overhead
        summary.packets += n
        summary.captured += packets.captured
        length = packets.table[k.P_LENGTH, :n]
        codes = packets.table[k.P_FAULT, :n]
        summary.payload += int(length[codes == 0].sum())
        for code in np.unique(codes[codes > 0]).tolist():
            name = PacketFault(code).name
            count, size = summary.others.get(name, (0, 0))
            chosen = codes == code
            summary.others[name] = (count + int(chosen.sum()), size + int(length[chosen].sum()))

    def _note(self, fault: FileFault, packets: Packets) -> FaultRow:
        before = np.flatnonzero(packets.table[k.P_AT, : packets.count] < fault.offset)
        time = int(packets.table[k.P_TIME, before[-1]]) if len(before) else self._time
        name = f"file_{fault.fault}"
        return FaultRow(-1, 0, 0, -1, name, fault.offset, fault.skipped, fault.missing, time)

    def books(self) -> Iterator[pa.RecordBatch]:
        """A row for each reason for which bytes of the file are in no other row. The last ones."""
        summary = self.summary
        summary.repeated = self._reassembly.repeated
        summary.stray = self._reassembly.stray
        sizes = {
            "overhead": summary.overhead + summary.prefix_bytes,
            "repeated": summary.repeated,
            "stray": summary.stray,
            "file_fragments": self._packets.fragments.dropped,
            "file_blocks": self._bad_blocks,
        }
        for name, (_, size) in summary.others.items():
            if name != PacketFault.FRAGMENT.name:
                sizes[f"packet_{name.lower()}"] = size
        yield from self._fault_rows(
            [
                FaultRow(-1, 0, 0, -1, name, 0, size, 0, self._time)
                for name, size in sizes.items()
                if size
            ]
        )

    # TCP.

    def _framed(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        for framed in self._framer.feed(pieces):
            yield from self._tcp(framed)

    def _tcp(self, framed: Framed) -> Iterator[pa.RecordBatch]:
        if not self._rows:
            return
        connections = self._reassembly.connections
        if framed.count:
            table = framed.table[:, : framed.count]
            stream = table[k.B_STREAM]
            connection, side = stream >> 1, stream & 1
            rows = Rows(
                framed.work,
                connections[connection, k.C_FLOW],
                side,
                connections[connection, k.C_NUMBER],
                self._openers(connection),
                table[k.B_SEQUENCE],
                table[k.B_OFFSET],
                table[k.B_START],
                table[k.B_END],
                table[k.B_FIRST],
                table[k.B_TIME],
                table[k.B_MODE],
            )
            size = int((rows.end - rows.start).sum())
            prefixes = int((rows.mode == k.LOW_LATENCY).sum()) * 2 + 2 * framed.count
            self.summary.prefix_bytes += prefixes
            yield self._batches(rows, size)
        yield from self._fault_rows(
            [
                FaultRow(
                    int(connections[f.stream // 2, k.C_FLOW]),
                    f.stream % 2,
                    int(connections[f.stream // 2, k.C_NUMBER]),
                    int(self._openers(np.array([f.stream // 2]))[0]),
                    f.fault,
                    f.offset,
                    f.skipped,
                    f.missing,
                    f.time,
                )
                for f in framed.faults
                if f.skipped or f.missing
            ]
        )

    def _openers(self, connection: Int64) -> Int64:
        """Who sent InitSyn or, where that is not known, SYN."""
        which, inverse = np.unique(connection, return_inverse=True)
        known: Int64 = self._reassembly.connections[which, k.C_OPENER]
        for i, number in enumerate(which.tolist()):
            said = self._framer.phases.opener(number)
            if said >= 0:
                known[i] = said
        openers: Int64 = known[inverse]
        return openers

    # UDP.

    def _udp(self, held: Held) -> Iterator[pa.RecordBatch]:
        if not self._rows:
            return
        table = held.table
        n = table.shape[1]
        if n:
            nothing: Int64 = np.zeros(n, np.int64)
            opener = np.array([self._datagrams.opener(f) for f in table[0].tolist()], np.int64)
            rows = Rows(
                held.work,
                table[0],
                table[1],
                nothing,
                opener,
                table[2],
                nothing,
                table[3],
                table[4],
                table[5],
                table[5],
                table[6],
            )
            yield self._batches(rows, int((rows.end - rows.start).sum()))
        yield from self._fault_rows(
            [
                FaultRow(
                    f.flow,
                    f.side,
                    0,
                    self._datagrams.opener(f.flow),
                    f.fault,
                    0,
                    f.skipped,
                    f.missing,
                    f.time,
                )
                for f in held.faults
            ]
        )

    def _batches(self, rows: Rows, size: int) -> pa.RecordBatch:
        self.summary.batches += len(rows.flow)
        self.summary.batch_bytes += size
        return record_batch(self.capture, self.flows.__getitem__, rows)

    def _fault_rows(self, faults: list[FaultRow]) -> Iterator[pa.RecordBatch]:
        if not faults:
            return
        summary = self.summary
        for fault in faults:
            if fault.flow < 0:
                summary.damaged_file += fault.skipped * fault.fault.startswith("file_")
                continue
            if fault.fault == "not_zenoh":
                summary.foreign += fault.skipped
                summary.foreign_missing += fault.missing
                summary.foreign_flows += 1
            else:
                summary.skipped += fault.skipped
                summary.missing += fault.missing
        yield fault_rows(self.capture, self.flows.__getitem__, faults)
