"""Subscribers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, ClassVar, Generic

from zenwire.api.columnar import Columnar, OpenedRows, RowSink
from zenwire.api.declared import Entity, Receiving
from zenwire.api.handlers import H, IntoHandler, Opened, open_handler
from zenwire.api.rows import samples_of
from zenwire.api.values import Reliability, Sample
from zenwire.routing import LivelinessChanged, SampleReceived
from zenwire.wire.data import Del, Put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from zenwire.api.core import Core
    from zenwire.keyexpr import KeyExpr
    from zenwire.node.plane import RowsReceived
    from zenwire.routing import Output

__all__ = ["Subscriber", "open_samples"]

_log = logging.getLogger("zenwire.subscriber")


def open_samples(handler: IntoHandler[Sample], key_expr: KeyExpr) -> Opened[Sample]:
    """A handler for samples. The first that is lost is told to the log, all are counted."""
    opened: Opened[Sample]
    told = False

    def lost(_sample: Sample) -> None:
        nonlocal told
        channel = opened.channel
        # Where the oldest give way, that is what was asked for.
        if told or channel is None or channel.closed or channel.overflow == "drop_oldest":
            return
        told = True
        _log.warning(
            "the subscriber on %r does not keep up, %d samples wait: from here on some are lost, "
            "see its `dropped`; take them faster, or give it a larger FifoChannel",
            str(key_expr),
            # Its bytes may be bounded before its number is.
            len(channel),
        )

    if isinstance(handler, Columnar):
        opened = handler.opened(lost)
    else:
        opened = open_handler(handler, on_drop=lost)
    return opened


class Subscriber(Entity, Receiving[Sample], Generic[H]):
    """Gets samples, or with a liveliness subscriber the coming and going of tokens."""

    WHAT: ClassVar[str] = "subscriber"

    def __init__(self, core: Core, eid: int, key_expr: KeyExpr, opened: Opened[Sample]) -> None:
        self._opened = opened
        self._rows: RowSink | None = None
        super().__init__(core, eid, key_expr)
        node, put = core.node, core.pump(opened)
        if isinstance(opened, OpenedRows):
            self._rows = sink = RowSink(core, eid, opened, put)
            if sink.takes_rows and sink.patient:
                node.plane.patient.add(eid)
        else:
            node.receivers[eid] = _deliver(core, put)
            if core.namespace.prefix is None:
                node.row_receivers[eid] = _deliver_rows(put)

    @property
    def handler(self) -> H:
        """A Channel; of a pair, what it had to read from; for a callback None."""
        handler: H = self._opened.receiver
        return handler

    def _end(self) -> None:
        self._core.node.row_receivers.pop(self._eid, None)
        self._core.node.plane.patient.discard(self._eid)
        if self._rows is not None:
            self._rows.close()
        self._opened.sink.close()


def _deliver_rows(put: Callable[[Sample], bool]) -> Callable[[RowsReceived, int], None]:
    """For many samples at once: whoever can, takes them so."""
    many: Callable[[Iterable[Sample]], None] | None = getattr(
        getattr(put, "__self__", None), "put_many", None
    )

    def deliver(output: RowsReceived, subscriber: int) -> None:
        samples = samples_of(output, subscriber)
        if many is not None:
            many(samples)
        else:
            for sample in samples:
                put(sample)

    return deliver


def _deliver(core: Core, put: Callable[[Sample], bool]) -> Callable[[Output], None]:
    inward = None if core.namespace.prefix is None else core.namespace.inward
    received = core.stamps.received
    reliable, best_effort = Reliability.RELIABLE, Reliability.BEST_EFFORT

    def deliver(output: Output) -> None:
        if type(output) is not SampleReceived and not isinstance(output, LivelinessChanged):
            return
        key: str | None = output.key
        if inward is not None:
            key = inward(output.key)
        if key is None:
            core.foreign += 1
        elif type(output) is SampleReceived:
            _, _, body, qos, stack, is_reliable = output
            if stack is not None:
                stack = received(stack)
            put(Sample(key, body, qos, reliable if is_reliable else best_effort, stack))
        elif type(output) is LivelinessChanged:
            put(Sample(key, Put(payload=b"") if output.alive else Del()))

    return deliver
