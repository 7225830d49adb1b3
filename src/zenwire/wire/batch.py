"""Batches: what travels in one piece, and how streams, compression and low latency wrap it.

A batch is a run of transport messages. Network messages stand between them, each belonging to
the FRAME before it: their ids and those of transport messages do not overlap, which is all that
tells where a FRAME ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from zenwire.errors import DecodeError, EncodeError, Fault
from zenwire.wire import lz4
from zenwire.wire.buffer import Buffer, Reader, Writer
from zenwire.wire.define import spec_of
from zenwire.wire.network import NetworkMessage
from zenwire.wire.objects import ID_MASK, codec_of, read_message, scope_table, unknown_id
from zenwire.wire.transport import Close, Frame, TransportMessage

__all__ = [
    "BATCH_MAX",
    "LOW_LATENCY_PREFIX",
    "STREAM_PREFIX",
    "BatchMessage",
    "Located",
    "compress_batch",
    "decode_batch",
    "encode_batch",
    "expand_batch",
    "frame_stream",
    "split_stream",
    "stream_length",
    "walk",
    "walk_low_latency",
]

STREAM_PREFIX: Final = 2
"""Bytes of the little-endian length before each batch of a stream."""
LOW_LATENCY_PREFIX: Final = 4
"""The same once low latency has been negotiated."""
BATCH_MAX: Final = 65_535
NETWORK_ID_MIN: Final = 0x19
"""Network messages have ids from here up, transport messages below."""

_STORED: Final = 0x00
_LZ4: Final = 0x01

BatchMessage = TransportMessage | NetworkMessage


@dataclass(frozen=True, slots=True)
class Located:
    """A message, and the bytes it was read from."""

    start: int
    end: int
    message: BatchMessage


def walk(data: Buffer, start: int = 0, end: int | None = None) -> Iterator[Located]:
    """The messages of a batch, one by one. Raises DecodeError where it does not go on.

    A FRAME comes alone, its network messages after it. Nothing comes after a CLOSE.
    """
    r = Reader(data, start, end)
    for at, message in _walk(r):
        yield Located(at, r.pos, message)


def _walk(r: Reader) -> Iterator[tuple[int, BatchMessage]]:
    """Where each message starts, and the message; ``r`` stands behind it."""
    network, transport = scope_table("network"), scope_table("transport")
    framed = False
    while r.pos < r.end:
        at = r.pos
        header = r.buf[at]
        r.pos = at + 1
        inside = framed and header & ID_MASK >= NETWORK_ID_MIN
        codec = (network if inside else transport)[header]
        if codec is None:
            raise unknown_id(header, at, "network" if inside else "transport")
        message = codec.read(r, header)
        yield at, message
        if not inside:
            framed = isinstance(message, Frame)
            if isinstance(message, Close):
                return


def walk_low_latency(data: Buffer, start: int = 0, end: int | None = None) -> Iterator[Located]:
    """What a low-latency batch holds: one network message, KEEP_ALIVE or CLOSE.

    Raises DecodeError. Nothing at all is in an empty batch.
    """
    r = Reader(data, start, end)
    if r.pos == r.end:
        return
    at = r.pos
    header = r.buf[at]
    network = header & ID_MASK >= NETWORK_ID_MIN
    if not network and header & ID_MASK not in (0x03, 0x04):
        raise DecodeError(Fault.UNKNOWN_ID, at, "low latency", f"header {header:#04x}")
    message: BatchMessage = read_message(r, "network" if network else "transport")
    yield Located(at, r.pos, message)
    if r.pos != r.end and not isinstance(message, Close):
        raise DecodeError(Fault.TRAILING, r.pos, spec_of(type(message)).name)


def decode_batch(data: Buffer) -> list[BatchMessage]:
    """All messages of a batch. Raises DecodeError."""
    return [message for _, message in _walk(Reader(data))]


def encode_batch(messages: Iterable[object]) -> bytes:
    """Messages back to back. Raises EncodeError."""
    w = Writer()
    for message in messages:
        codec_of(type(message)).write(w, message)
    return bytes(w.out)


def frame_stream(batch: bytes, prefix: int = STREAM_PREFIX) -> bytes:
    """A batch with the length before it that streams need."""
    return stream_length(len(batch), prefix) + batch


def stream_length(size: int, prefix: int = STREAM_PREFIX) -> bytes:
    """The length that stands before a batch of so many bytes in a stream."""
    if size >> 8 * prefix:
        raise EncodeError(f"a batch of {size} bytes has no length of {prefix} bytes")
    return size.to_bytes(prefix, "little")


def split_stream(
    data: Buffer, prefix: int = STREAM_PREFIX, *, start: int = 0, limit: int = BATCH_MAX
) -> Iterator[tuple[int, int]]:
    """(start, end) of each whole batch of a stream; the rest waits for more bytes.

    Raises DecodeError for a batch that is longer than ``limit``.
    """
    if start < 0:
        raise ValueError(f"{start} is outside of the data")
    pos = start
    while pos + prefix <= len(data):
        length = int.from_bytes(data[pos : pos + prefix], "little")
        if length > limit:
            raise DecodeError(Fault.LIMIT, pos, "batch", f"length {length} is above {limit}")
        if pos + prefix + length > len(data):
            return
        pos += prefix
        yield pos, pos + length
        pos += length


def expand_batch(batch: Buffer, limit: int = BATCH_MAX) -> bytes:
    """The content of a batch of a session with compression. Raises DecodeError."""
    if not batch:
        return b""
    if batch[0] == _STORED:
        if len(batch) - 1 > limit:
            raise DecodeError(Fault.LIMIT, 1, "batch", f"{len(batch) - 1} bytes are above {limit}")
        return bytes(batch[1:])
    if batch[0] != _LZ4:
        raise DecodeError(Fault.COMPRESSION, 0, "batch", f"header {batch[0]:#04x}")
    try:
        return lz4.decompress(bytes(batch[1:]), limit)
    except ValueError as e:
        raise DecodeError(Fault.COMPRESSION, 1, "batch", str(e)) from None


def compress_batch(content: bytes) -> bytes:
    """A batch for a session with compression: stored where LZ4 gains nothing."""
    block = lz4.compress(content)
    if len(block) < len(content):
        return bytes([_LZ4]) + block
    return bytes([_STORED]) + content
