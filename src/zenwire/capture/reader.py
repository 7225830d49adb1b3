"""From a capture file to the ``batches`` table, in one pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zenwire.capture import kernels as k
from zenwire.capture.datagrams import Datagrams, Held
from zenwire.capture.flows import Flows, Limits, Pieces, Reassembly
from zenwire.capture.framing import Framer
from zenwire.capture.packets import PacketFault, Packets, read_packets
from zenwire.capture.records import FileFault, read_records
from zenwire.capture.runs import Framed
from zenwire.capture.source import WINDOW
from zenwire.capture.summary import Summary
from zenwire.capture.table import FaultRow, Rows, fault_rows, record_batch

__all__ = ["BatchReader", "CaptureReader", "read_capture"]

Int64 = npt.NDArray[np.int64]


def read_capture(path: str | Path, *, window: int = WINDOW) -> Iterator[pa.RecordBatch]:
    """The ``batches`` table of a capture file.

    In each flow, connection and direction, batches come in order. Raises CaptureError for what is
    no capture or cannot be read; everything else that is wrong is a row with a ``fault``.
    """
    return iter(CaptureReader(path, window=window))


class BatchReader:
    """Packets in order of capture to rows of the ``batches`` table.

    ``capture`` is what the column of that name says. ``summary`` is complete after ``finish``.
    """

    def __init__(self, capture: str, *, limits: Limits | None = None) -> None:
        self.capture = capture
        self.summary = Summary()
        self.flows = Flows()
        self._reassembly = Reassembly(limits)
        self._framer = Framer()
        self._datagrams = Datagrams()
        self._file_faults: list[FaultRow] = []
        self._time = 0

    def feed(self, packets: Packets) -> Iterator[pa.RecordBatch]:
        """The batches that these packets complete."""
        self._count(packets)
        flow, side = self.flows.assign(packets)
        for pieces in self._reassembly.feed(packets, flow, side):
            yield from self._framed(pieces)
        for held in self._datagrams.feed(packets, flow, side):
            yield from self._udp(held)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rest: what waited, what was not decided, and the faults of the file."""
        for pieces in self._reassembly.finish():
            yield from self._framed(pieces)
        for framed in self._framer.finish():
            yield from self._tcp(framed)
        yield from self._udp(self._datagrams.finish())
        streams = self._reassembly.streams
        self.summary.repeated = int(streams[:, k.S_REPEATED].sum())
        self.summary.stray = int(streams[:, k.S_STRAY].sum())
        for name, (_, size) in self.summary.others.items():
            if name in (PacketFault.CUT.name, PacketFault.MALFORMED.name):
                fault = f"packet_{name.lower()}"
                self._file_faults.append(FaultRow(-1, 0, 0, -1, fault, 0, size, 0, self._time))
        yield from self._fault_rows(self._file_faults)

    def _count(self, packets: Packets) -> None:
        summary, n = self.summary, packets.count
        for fault in packets.faults:
            self._note(fault)
        if not n:
            return
        self._time = int(packets.table[k.P_TIME, n - 1])
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

    def _note(self, fault: FileFault) -> None:
        cut = fault.fault == "truncated"
        self.summary.damaged_file += fault.length
        self._file_faults.append(
            FaultRow(
                -1,
                0,
                0,
                -1,
                f"file_{fault.fault}",
                fault.offset,
                0 if cut else fault.length,
                fault.length if cut else 0,
                self._time,
            )
        )

    # TCP.

    def _framed(self, pieces: Pieces) -> Iterator[pa.RecordBatch]:
        for framed in self._framer.feed(pieces):
            yield from self._tcp(framed)

    def _tcp(self, framed: Framed) -> Iterator[pa.RecordBatch]:
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
                continue
            if fault.fault == "not_zenoh":
                summary.foreign += fault.skipped
                summary.foreign_missing += fault.missing
                summary.foreign_flows += 1
            else:
                summary.skipped += fault.skipped
                summary.missing += fault.missing
        yield fault_rows(self.capture, self.flows.__getitem__, faults)


class CaptureReader:
    """One pass over a file; ``summary`` is complete when the pass is."""

    def __init__(
        self, path: str | Path, *, window: int = WINDOW, limits: Limits | None = None
    ) -> None:
        self.path = str(path)
        self._window = window
        self._reader = BatchReader(self.path, limits=limits)

    @property
    def summary(self) -> Summary:
        return self._reader.summary

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        reader = self._reader
        for packets in read_packets(read_records(self.path, window=self._window)):
            yield from reader.feed(packets)
        yield from reader.finish()
