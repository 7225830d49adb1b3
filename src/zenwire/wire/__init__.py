"""Bytes and messages: the whole Zenoh 1.x protocol, without I/O, state or clock.

Messages are defined in ``scouting``, ``transport``, ``network``, ``declare``, ``data`` and
``linkstate``; ``objects`` reads and writes one, ``batch`` a whole batch.
"""

from zenwire.wire.batch import (
    BATCH_MAX,
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    BatchMessage,
    Located,
    compress_batch,
    decode_batch,
    encode_batch,
    expand_batch,
    frame_stream,
    split_stream,
    walk,
    walk_low_latency,
)
from zenwire.wire.linkstate import decode_linkstate
from zenwire.wire.network import NetworkMessage
from zenwire.wire.objects import decode, encode
from zenwire.wire.scouting import ScoutingMessage
from zenwire.wire.transport import VERSION, TransportMessage

__all__ = [
    "BATCH_MAX",
    "LOW_LATENCY_PREFIX",
    "STREAM_PREFIX",
    "VERSION",
    "BatchMessage",
    "Located",
    "NetworkMessage",
    "ScoutingMessage",
    "TransportMessage",
    "compress_batch",
    "decode",
    "decode_batch",
    "decode_linkstate",
    "encode",
    "encode_batch",
    "expand_batch",
    "frame_stream",
    "split_stream",
    "walk",
    "walk_low_latency",
]
