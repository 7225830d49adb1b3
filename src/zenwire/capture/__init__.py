"""Captured packets to batches: pcap and pcapng, TCP reassembly, framing.

``read_capture`` does all of it for one file. The steps stand alone for those who spread them over
machines: ``splits`` and ``read_records``, ``read_packets``, ``BatchReader``.
"""

from zenwire.capture.flows import Flow, Flows, Limits, Reassembly
from zenwire.capture.framing import Framer
from zenwire.capture.packets import PacketFault, Packets, read_packets
from zenwire.capture.reader import BatchReader, CaptureReader, read_capture
from zenwire.capture.records import FileFault, Records, Split, read_records, splits
from zenwire.capture.summary import Summary
from zenwire.capture.table import SCHEMA

__all__ = [
    "SCHEMA",
    "BatchReader",
    "CaptureReader",
    "FileFault",
    "Flow",
    "Flows",
    "Framer",
    "Limits",
    "PacketFault",
    "Packets",
    "Reassembly",
    "Records",
    "Split",
    "Summary",
    "read_capture",
    "read_packets",
    "read_records",
    "splits",
]
