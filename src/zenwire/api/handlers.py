"""What a program gives to receive with: a kind of channel, a callback, or both halves of its own.

`open_handler` turns it into a sink for the network and what the program reads from. Callbacks
run where the owner lets them: it runs a `Pump` in a task or `Opened.pump_blocking` in a thread,
unless they are not ``indirect``, when the network calls them itself.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

from zenwire.api.channel import Channel, Handler, Overflow
from zenwire.errors import ChannelClosed

if TYPE_CHECKING:
    from typing_extensions import TypeVar as WithDefault

__all__ = [
    "DEFAULT_CAPACITY",
    "Callback",
    "Called",
    "Channel",
    "Channelled",
    "DefaultHandler",
    "FifoChannel",
    "H",
    "Handler",
    "IntoHandler",
    "Opened",
    "Overflow",
    "Paired",
    "RingChannel",
    "Sink",
    "finish_callback",
    "on_callback_error",
    "open_handler",
    "refused",
    "report",
]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
# What a program reads from, of a subscriber and the like; only type checkers know of a default.
if TYPE_CHECKING:
    H = WithDefault("H", default=Any)
else:
    H = TypeVar("H")

DEFAULT_CAPACITY: Final = 256
"""As many as in the reference, where the network waits then."""

_log = logging.getLogger("zenwire.handlers")


class Sink(Protocol[T_contra]):
    """Where the network puts what came. Never waits and never raises."""

    def put(self, item: T_contra, /) -> bool: ...

    def close(self) -> None: ...


class FifoChannel(Generic[T]):
    """A channel that keeps what came first, or what came last with ``drop_oldest``."""

    __slots__ = ("capacity", "overflow")

    def __init__(self, capacity: int, overflow: Overflow = "drop_newest") -> None:
        Channel[T](capacity, overflow)  # refuses what makes no channel
        self.capacity = capacity
        self.overflow: Overflow = overflow

    def open(self, on_drop: Callable[[T], None] | None = None) -> Channel[T]:
        """A channel of this kind; each subscriber has its own."""
        return Channel(self.capacity, self.overflow, on_drop=on_drop)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.capacity}, overflow={self.overflow!r})"


class RingChannel(FifoChannel[T]):
    """A channel that keeps the last items."""

    __slots__ = ()

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, "drop_oldest")


class DefaultHandler(FifoChannel[T]):
    """What is used where nothing is given."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(DEFAULT_CAPACITY)


class Callback(Generic[T]):
    """A function for each item, or a coroutine function; ``drop`` is called at the end.

    ``indirect``: items wait in a channel of ``capacity``, so that a slow function delays nobody
    else. Otherwise the function is called by the network itself; a coroutine function cannot be.
    """

    __slots__ = ("callback", "capacity", "drop", "indirect", "overflow")

    def __init__(
        self,
        callback: Callable[[T], Any],
        drop: Callable[[], Any] | None = None,
        *,
        indirect: bool = True,
        capacity: int = DEFAULT_CAPACITY,
        overflow: Overflow = "drop_newest",
    ) -> None:
        if not callable(callback):
            raise TypeError(f"a callback is callable, {callback!r} is not")
        if not indirect and _is_coroutine_function(callback):
            raise TypeError("a coroutine function is called indirectly: leave out indirect=False")
        self.callback = callback
        self.drop = drop
        self.indirect = indirect
        self.capacity = capacity
        self.overflow: Overflow = overflow

    def __call__(self, arg: T, /) -> Any:
        return self.callback(arg)

    def __repr__(self) -> str:
        return f"Callback({self.callback!r}, drop={self.drop!r}, indirect={self.indirect})"


# What a callback returns is its own business, unless it must be awaited.
IntoHandler: TypeAlias = (
    FifoChannel[T] | Callback[T] | Callable[[T], Any] | tuple[Callable[[T], Any], Any] | None
)

# The same by what is read from then: a channel, what the pair has, or nothing.
Channelled: TypeAlias = FifoChannel[T] | None
Paired: TypeAlias = tuple[Callable[[T], Any], H]
Called: TypeAlias = Callback[T] | Callable[[T], Any]

Failed: TypeAlias = Callable[[T, Exception], None]
"""Is told of an item whose callback raised."""

ErrorHandler: TypeAlias = Callable[[Exception, Callable[..., Any]], Any]

_error_handlers: list[ErrorHandler] = []


def on_callback_error(handler: ErrorHandler | None) -> ErrorHandler | None:
    """Say who is told of exceptions in callbacks, beside the log. Returns who was told before.

    It gets the exception and the callback, in the thread where it was raised.
    """
    before = _error_handlers[0] if _error_handlers else None
    _error_handlers[:] = [] if handler is None else [handler]
    return before


def report(error: Exception, callback: Callable[..., Any]) -> None:
    """Tell of an exception in a callback."""
    name = getattr(callback, "__qualname__", repr(callback))
    _log.error("the callback %s raised %s", name, type(error).__name__, exc_info=error)
    for handler in _error_handlers:
        try:
            handler(error, callback)
        except Exception:  # noqa: BLE001 # it is told to the log
            _log.exception("the handler of callback errors failed itself")


@dataclass(slots=True)
class Opened(Generic[T]):
    """A handler at work.

    ``sink`` is the network's side. ``receiver`` is what the program reads: a Channel, its own
    object, or None for a callback. ``channel`` is what overflows, if anything does.
    ``callback`` is there if the owner must pump; ``failed`` is told of items it raised for,
    ``left`` of those that nobody holds when it is done with them.
    """

    sink: Sink[T]
    receiver: Any
    channel: Channel[T] | None
    callback: Callback[T] | None = None
    failed: Failed[T] | None = None
    left: Callable[[T], None] | None = None

    def pump_blocking(self, run: Callable[[Awaitable[Any]], Any] | None = None) -> None:
        """Call the callback, until the channel ends. For a thread.

        ``run`` waits for what a coroutine function returns, as on the loop of the session.
        """
        assert self.channel is not None
        assert self.callback is not None
        while True:
            try:
                item = self.channel.recv_blocking()
            except ChannelClosed:
                break
            try:
                # Without a timeout there is an item.
                _finish(self.callback(item), run)  # type: ignore[arg-type]
            except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
                self.failed_for(item, e)  # type: ignore[arg-type] # the same
            del item
        try:
            _finish(_call_drop(self.callback), run)
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            report(e, self.callback.callback)

    def failed_for(self, item: T, error: Exception) -> None:
        """Tell of an item whose callback raised."""
        assert self.callback is not None
        report(error, self.callback.callback)
        if self.failed is not None:
            self.failed(item, error)


def _finish(result: Any, run: Callable[[Awaitable[Any]], Any] | None) -> None:
    """Wait for what a coroutine function returned, if it is one."""
    if not inspect.isawaitable(result):
        return
    if run is None:
        if inspect.iscoroutine(result):
            result.close()
        raise TypeError("a coroutine function needs a loop to run on")
    run(result)


class _Direct(Generic[T]):
    """A callback that the network calls itself."""

    __slots__ = ("_callback", "_failed")

    def __init__(self, callback: Callback[T], failed: Failed[T] | None) -> None:
        self._callback = callback
        self._failed = failed

    def put(self, item: T, /) -> bool:
        try:
            self._callback(item)
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            report(e, self._callback.callback)
            if self._failed is not None:
                self._failed(item, e)
        return True

    def close(self) -> None:
        _call_drop(self._callback)


def _call_drop(callback: Callback[Any]) -> Any:
    if callback.drop is None:
        return None
    try:
        return callback.drop()
    except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
        report(e, callback.drop)
        return None


async def finish_callback(callback: Callback[Any]) -> None:
    """It gets nothing more."""
    result = _call_drop(callback)
    if inspect.isawaitable(result):
        try:
            await result
        except Exception as e:  # noqa: BLE001 # whatever a program raises, it is told
            report(e, callback)


def _is_coroutine_function(callback: object) -> bool:
    call = getattr(callback, "__call__", None)  # noqa: B004 # an object with an async __call__
    return any(map(inspect.iscoroutinefunction, (callback, call)))


def refused(handler: object) -> TypeError:
    """The error for an argument that is no handler."""
    return TypeError(
        f"handler is a channel, a callback, or a tuple of a callback and an object to read from, "
        f"not {type(handler).__name__}"
    )


def open_handler(
    handler: IntoHandler[T] = None,
    *,
    failed: Failed[T] | None = None,
    left: Callable[[T], None] | None = None,
    on_drop: Callable[[T], None] | None = None,
) -> Opened[T]:
    """Put to work what a program gave. Raises TypeError for what is no handler."""
    if handler is None:
        handler = DefaultHandler()
    if isinstance(handler, FifoChannel):
        channel: Channel[T] = handler.open(on_drop)
        return Opened(channel, channel, channel)
    receiver: Any = None
    if isinstance(handler, tuple):
        pair: tuple[Any, ...] = handler
        if len(pair) != 2 or not callable(pair[0]):
            raise TypeError("handler is a tuple, but not of a callback and an object to read from")
        function, receiver = pair
    else:
        function = handler
    if not callable(function):
        raise refused(function)
    callback = function if isinstance(function, Callback) else Callback(function)
    if not callback.indirect:
        return Opened(_Direct(callback, failed), receiver, None)
    channel = Channel(callback.capacity, callback.overflow, on_drop=on_drop)
    return Opened(channel, receiver, channel, callback, failed, left)
