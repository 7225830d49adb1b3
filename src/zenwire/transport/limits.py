"""Every limit and waiting time of the transport, with its default. ``Settings`` may change most.

Times are in seconds, sizes in bytes.
"""

from __future__ import annotations

from typing import Final

from zenwire.wire.batch import BATCH_MAX

__all__ = [
    "ACCEPT_TIMEOUT",
    "BATCH_MAX",
    "BATCH_MIN",
    "COOKIE_KEY_MIN",
    "COOKIE_MAX",
    "COOKIE_NONCE",
    "CREDENTIAL_MAX",
    "JOIN_INTERVAL",
    "KEEP_ALIVE",
    "LEASE",
    "MAX_LEASE",
    "MAX_LINKS",
    "MAX_MESSAGE_SIZE",
    "MAX_PENDING",
    "MAX_REASSEMBLY",
    "MAX_SESSIONS",
    "MULTICAST_BATCH",
    "MULTILINK_KEY_BITS",
    "OPEN_TIMEOUT",
    "PEM_MAX",
    "QUEUE_BATCHES",
    "REASSEMBLY_TIMEOUT",
    "RSA_BITS_MAX",
    "RSA_BITS_MIN",
    "RSA_EXPONENT_MAX",
    "WAIT_BEFORE_CLOSE",
    "WAIT_BEFORE_DROP",
    "WAIT_BEFORE_DROP_FRAGMENTS",
]

# Batches.
BATCH_MIN: Final = 32
"""Below this a batch has no room for the head of a FRAGMENT and a useful piece of a message."""
MULTICAST_BATCH: Final = 8_192

# Messages.
MAX_MESSAGE_SIZE: Final = 2**30
"""A larger message is not sent, and not put together from fragments."""
MAX_REASSEMBLY: Final = 2**28
"""Bytes of all unfinished messages of all sessions; one larger message may exceed it alone."""
REASSEMBLY_TIMEOUT: Final = 30.0
"""An unfinished message that does not grow for this long is dropped."""

# Queues and congestion.
QUEUE_BATCHES: Final = 2
"""A priority's queue takes messages until it holds this many batches."""
WAIT_BEFORE_DROP: Final = 0.001
"""How long a message with Drop waits for room."""
WAIT_BEFORE_DROP_FRAGMENTS: Final = 0.05
"""How long a message with Drop that was cut may stand still while others wait for room."""
WAIT_BEFORE_CLOSE: Final = 5.0
"""How long a message with Block waits for room before the link is closed."""

# Time.
LEASE: Final = 10.0
MAX_LEASE: Final = 60.0
"""Longest lease that a peer is granted. A silent peer would hold its session for longer."""
JOIN_INTERVAL: Final = 2.5
"""JOIN goes out as often, at least."""
KEEP_ALIVE: Final = 4
"""KEEP_ALIVE goes out when nothing else did for the lease divided by this."""
OPEN_TIMEOUT: Final = 10.0
ACCEPT_TIMEOUT: Final = 10.0

# Numbers of things.
MAX_SESSIONS: Final = 1_000
MAX_PENDING: Final = 100
"""Handshakes that a listener may have under way."""
MAX_LINKS: Final = 1

# Handshake.
COOKIE_KEY_MIN: Final = 16
COOKIE_MAX: Final = 1_024
"""What a connector echoes; the reference's cookies have 33 to 113 bytes."""
COOKIE_NONCE: Final = 16
"""Bytes that bind a cookie to the connection on which it was issued."""
CREDENTIAL_MAX: Final = 1_024
"""A user name or a password."""

# Keys: an RSA operation costs the cube of the bits, and the other side chooses its key.
RSA_BITS_MIN: Final = 512
RSA_BITS_MAX: Final = 4_096
RSA_EXPONENT_MAX: Final = 2**33 - 1
MULTILINK_KEY_BITS: Final = 512
PEM_MAX: Final = 65_536
