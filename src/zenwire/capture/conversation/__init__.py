"""What was said in a capture, for a look without Spark: batches to entries, in one pass."""

from zenwire.capture.conversation.conversation import Conversation
from zenwire.capture.conversation.entry import (
    NETWORK_COLUMNS,
    TRANSPORT_COLUMNS,
    Entry,
    Scan,
    Scanned,
    Tally,
    Want,
)
from zenwire.capture.conversation.kinds import KINDS
from zenwire.capture.conversation.link import Link, Loss
from zenwire.capture.conversation.source import capture_files, follow, windows

__all__ = [
    "KINDS",
    "NETWORK_COLUMNS",
    "TRANSPORT_COLUMNS",
    "Conversation",
    "Entry",
    "Link",
    "Loss",
    "Scan",
    "Scanned",
    "Tally",
    "Want",
    "capture_files",
    "follow",
    "windows",
]
