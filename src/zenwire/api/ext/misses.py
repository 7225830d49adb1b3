"""Being told of samples that were lost for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic

from zenwire.api.declared import Declared, Receiving
from zenwire.api.ext.order import Miss
from zenwire.api.handlers import H, IntoHandler, Opened, open_handler

if TYPE_CHECKING:
    from zenwire.api.core import Core

__all__ = ["SampleMissListener"]


class SampleMissListener(Declared, Receiving[Miss], Generic[H]):
    """Gets a `Miss` for samples that did not come, once."""

    WHAT: ClassVar[str] = "sample miss listener"

    def __init__(
        self, core: Core, listeners: list[SampleMissListener[Any]], handler: IntoHandler[Miss]
    ) -> None:
        self._opened: Opened[Miss] = open_handler(handler)
        super().__init__(core)
        self._listeners = listeners
        listeners.append(self)
        self._put = core.pump(self._opened)

    @property
    def handler(self) -> H:
        """A Channel; of a pair, what it had to read from; for a callback None."""
        handler: H = self._opened.receiver
        return handler

    def tell(self, miss: Miss) -> None:
        """Deliver a miss to the handler. Called by the advanced subscriber."""
        self._put(miss)

    def _end(self) -> None:
        if self in self._listeners:
            self._listeners.remove(self)
        self._opened.sink.close()
