"""What is awaited, or entered at once: ``await x`` and ``async with x as y`` do the same work."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

__all__ = ["Awaited"]

# What is entered gives itself.
T = TypeVar("T", bound="AbstractAsyncContextManager[Any, bool | None]")


class Awaited(Coroutine[Any, Any, T], Generic[T]):
    """The work starts when it is awaited or entered; Python warns of one that never is.

    It is a coroutine, so that tasks can be made of it.
    """

    __slots__ = ("_coroutine", "_made")

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._made: T | None = None

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine with a value. For event loops; programs use ``await``."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an exception in the coroutine. For event loops; programs use ``await``."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """Do not do it."""
        self._coroutine.close()

    async def __aenter__(self) -> T:
        self._made = await self
        await self._made.__aenter__()
        return self._made

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._made is not None:
            await self._made.__aexit__(kind, error, traceback)
