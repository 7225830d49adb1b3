"""What waits, for programs without an event loop: the facade over the asyncio API.

All sessions of a process live in one loop, in a thread of its own (`zenwire.sync.thread`); callbacks
run in threads of theirs (`zenwire.sync.workers`). ``import zenwire`` has all the names.
"""

from zenwire.sync.handler import Handler
from zenwire.sync.info import LinkEventsListener, SessionInfo, TransportEventsListener
from zenwire.sync.liveliness import Liveliness, LivelinessToken
from zenwire.sync.logs import init_log_from_env_or, try_init_log_from_env
from zenwire.sync.matching import MatchingListener
from zenwire.sync.opening import Scout, open, scout  # noqa: A004 # eclipse-zenoh's name
from zenwire.sync.publisher import Publisher
from zenwire.sync.querier import Querier
from zenwire.sync.query import Query, Queryable
from zenwire.sync.replies import CancellationToken
from zenwire.sync.session import Session
from zenwire.sync.subscriber import Subscriber

__all__ = [
    "CancellationToken",
    "Handler",
    "LinkEventsListener",
    "Liveliness",
    "LivelinessToken",
    "MatchingListener",
    "Publisher",
    "Querier",
    "Query",
    "Queryable",
    "Scout",
    "Session",
    "SessionInfo",
    "Subscriber",
    "TransportEventsListener",
    "init_log_from_env_or",
    "open",
    "scout",
    "try_init_log_from_env",
]
