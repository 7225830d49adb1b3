"""Captured packets to batches: pcap and pcapng, TCP reassembly, framing.

``read_capture`` does all of it for one file. ``index`` cuts a large one into ranges that many can
read at once, and ``read_range`` reads one of them.
"""

from zenwire.capture.flows import Flow, Flows, Limits, Reassembly
from zenwire.capture.framing import Framer
from zenwire.capture.packets import PacketFault, PacketReader, Packets
from zenwire.capture.ranges import (
    CaptureReader,
    Checkpoint,
    Index,
    Range,
    index,
    read_capture,
    read_range,
)
from zenwire.capture.reader import BatchReader
from zenwire.capture.records import FileFault, Part, Place, RecordReader, Records
from zenwire.capture.summary import Summary
from zenwire.capture.table import SCHEMA

__all__ = [
    "SCHEMA",
    "BatchReader",
    "CaptureReader",
    "Checkpoint",
    "FileFault",
    "Flow",
    "Flows",
    "Framer",
    "Index",
    "Limits",
    "PacketFault",
    "PacketReader",
    "Packets",
    "Part",
    "Place",
    "Range",
    "Reassembly",
    "RecordReader",
    "Records",
    "Summary",
    "index",
    "read_capture",
    "read_range",
]
