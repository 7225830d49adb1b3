"""What programs receive with: a kind of channel, a callback, or a pair of both halves."""

from zenwire.api.handlers import (
    Callback,
    DefaultHandler,
    FifoChannel,
    IntoHandler,
    RingChannel,
    on_callback_error,
)
from zenwire.api.replies import ReplyChannel
from zenwire.sync.handler import Handler

__all__ = [
    "Callback",
    "DefaultHandler",
    "FifoChannel",
    "Handler",
    "IntoHandler",
    "ReplyChannel",
    "RingChannel",
    "on_callback_error",
]
