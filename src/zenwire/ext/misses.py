"""Being told of samples that were lost for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from zenwire.api.declared import Declared, Receiving
from zenwire.api.handlers import IntoHandler, Opened, open_handler
from zenwire.ext.reception import Miss

if TYPE_CHECKING:
    from zenwire.api.core import Core

__all__ = ["SampleMissListener"]


class SampleMissListener(Declared, Receiving[Miss]):
    """Gets a `Miss` for samples that did not come, once."""

    WHAT: ClassVar[str] = "sample miss listener"

    def __init__(
        self, core: Core, listeners: list[SampleMissListener], handler: IntoHandler[Miss]
    ) -> None:
        self._opened: Opened[Miss] = open_handler(handler)
        super().__init__(core)
        self._listeners = listeners
        listeners.append(self)
        self._put = core.pump(self._opened)

    def tell(self, miss: Miss) -> None:
        self._put(miss)

    def _end(self) -> None:
        if self in self._listeners:
            self._listeners.remove(self)
        self._opened.sink.close()
