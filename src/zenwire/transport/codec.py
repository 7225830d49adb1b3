"""The one place where the transport turns messages into bytes and bytes into messages."""

from __future__ import annotations

from zenwire.errors import DecodeError
from zenwire.wire.batch import BatchMessage, decode_batch, walk, walk_low_latency
from zenwire.wire.buffer import Buffer, Reader
from zenwire.wire.network import NetworkMessage
from zenwire.wire.objects import decode, encode, read_message
from zenwire.wire.transport import Fragment, Frame, TransportMessage
from zenwire.wire.values import CongestionControl, Priority, QoS

__all__ = [
    "QOS",
    "bare_message",
    "batch_messages",
    "decode_handshake",
    "encode",
    "first_message",
    "fragment_head",
    "frame_head",
    "message_sizes",
    "whole_message",
]

QOS: tuple[tuple[Priority, CongestionControl, bool], ...] = tuple(
    (qos.priority, qos.congestion_control, qos.express) for qos in map(QoS, range(256))
)
"""Priority, congestion control and express of each QoS byte: looked up once per message."""


def frame_head(priority: Priority, reliable: bool, sn: int) -> bytes:
    """What stands before the network messages of a FRAME."""
    return encode(Frame(reliable=reliable, sn=sn, priority=priority))


def fragment_head(
    priority: Priority,
    reliable: bool,
    sn: int,
    *,
    more: bool,
    first: bool = False,
    drop: bool = False,
) -> bytes:
    """What stands before a piece of a message."""
    return encode(
        Fragment(
            reliable=reliable,
            more=more,
            sn=sn,
            priority=priority,
            first=first,
            drop=drop,
            payload=b"",
        )
    )


def batch_messages(content: Buffer) -> tuple[list[BatchMessage], DecodeError | None]:
    """The messages of a batch, and why they end before it does, if they do."""
    try:
        return decode_batch(content), None
    except DecodeError:
        pass
    # Again, one by one: what stands before the fault counts.
    messages: list[BatchMessage] = []
    try:
        messages.extend(found.message for found in walk(content))
    except DecodeError as e:
        return messages, e
    raise AssertionError("two walks over the same bytes differ")  # pragma: no cover


def message_sizes(data: bytes) -> list[int]:
    """How many bytes each of the network messages has that stand here back to back."""
    _, *messages = walk(frame_head(Priority.DATA, True, 0) + data)
    return [found.end - found.start for found in messages]


def whole_message(data: Buffer) -> NetworkMessage:
    """The network message that fragments were cut from; bytes after it mean nothing."""
    message: NetworkMessage = read_message(Reader(data), "network")
    return message


def bare_message(content: Buffer) -> BatchMessage | None:
    """What a low-latency batch holds; None if it is empty."""
    return next((found.message for found in walk_low_latency(content)), None)


def decode_handshake(content: Buffer) -> TransportMessage:
    """The message that a batch of the handshake holds; it is alone there. Raises DecodeError."""
    message: TransportMessage = decode(content, "transport")
    return message


def first_message(content: Buffer) -> BatchMessage | None:
    """What a batch starts with; None if that cannot be read."""
    try:
        return next((found.message for found in walk(content)), None)
    except DecodeError:
        return None
