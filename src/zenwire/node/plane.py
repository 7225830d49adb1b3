"""The columnar data plane: publications that come in bursts are not made objects one by one.

It is there if the extra ``fast`` is installed, and used where it pays: once a link brings many
messages at a time. ``ZENWIRE_FAST`` in the environment says otherwise: ``0`` is never, ``all``
whatever comes, however little. Results are the same.
"""

from __future__ import annotations

import logging
import os
import threading
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from zenwire.node.forwarding import Forwarding
from zenwire.routing import SampleReceived
from zenwire.transport import Received
from zenwire.wire.values import Mapping, Priority, WhatAmI, WireExpr

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from zenwire.columns.forward import Ways
    from zenwire.node.node import Node
    from zenwire.routing import Face
    from zenwire.transport import Bursts

__all__ = ["ENOUGH", "Plane", "RowsReceived", "load"]

_log = logging.getLogger("zenwire.node")

VARIABLE: Final = "ZENWIRE_FAST"
ENOUGH: Final = 24
"""So many messages at a time are worth it."""
_OFTEN: Final = 20_000
"""Messages that came in bursts, after which what is needed is loaded. It takes half a second."""
_NEEDS: Final = ("numpy", "numba", "pyarrow")


class RowsReceived(NamedTuple):
    """Like SampleReceived, for many samples: void when more bytes are received."""

    subscribers: tuple[int, ...]
    part: Any
    """A ``Part`` of `zenwire.columns.routes`."""
    groups: tuple[tuple[int, ...], ...]
    """The subscribers of each group but the first, which is nobody."""

    def rows(self, subscriber: int) -> tuple[Any, int]:
        """Which rows are for a subscriber, and how many: no rows stand for all."""
        groups = self.groups
        found: tuple[Any, int] = self.part.rows(lambda group: subscriber in groups[group - 1])
        return found

    def samples(self) -> list[SampleReceived]:
        """All of them as objects, for the same subscribers."""
        part, those = self.part, set(self.subscribers)
        takers = [(), *(tuple(filter(those.__contains__, group)) for group in self.groups)]
        return [
            SampleReceived(takers[group], key, push.body, push.qos, None, part.reliable)
            for push, group, key in zip(*part.objects(), strict=True)
            if takers[group]
        ]


class _Compiled:
    """What all nodes of a process share: whether compiled code is there."""

    def __init__(self) -> None:
        self.receive: Any = None
        self.routes: Any = None
        self.forward: Any = None
        self.loading = False

    def load(self) -> None:
        """Now; raises ImportError without the extra."""
        if self.receive is None:
            routes = import_module("zenwire.columns.routes")
            receive = import_module("zenwire.columns.receive")
            self.forward = import_module("zenwire.columns.forward")
            receive.Receiving()
            self.routes, self.receive = routes, receive

    def load_soon(self) -> None:
        """In a thread: it takes long, the first time on a machine some seconds."""
        if self.loading or self.receive is not None:
            return
        self.loading = True
        # Not a daemon: what it loads must not be left half done when the program ends.
        threading.Thread(target=self._load, name="zenwire-load").start()

    def _load(self) -> None:
        try:
            self.load()
        except Exception:  # noqa: BLE001 # without it everything works, slower
            _log.exception("the columnar data plane cannot be used")


_compiled = _Compiled()


def load() -> None:
    """Let there be compiled code. Raises ImportError without the extra."""
    _compiled.load()


class _Known:
    """The routes of one face as numbers, as long as routing does not change."""

    __slots__ = ("face", "generation", "groups", "hasty", "numbers", "plane", "routes", "ways")

    def __init__(self, plane: Plane, face: Face, limit: int) -> None:
        self.plane = plane
        self.face = face
        self.groups: tuple[tuple[int, ...], ...] = ()
        self.numbers: dict[tuple[int, ...], int] = {}
        self.hasty: set[int] = set()
        """Groups with somebody who does not want to wait."""
        self.generation = -1
        self.ways: Ways[Face] = _compiled.forward.Ways()
        """Which neighbours it goes to. Routes become known to both in the same order."""
        self.routes = _compiled.routes.Routes(self.find, limit)

    def clear(self) -> None:
        self.groups, self.numbers, self.hasty = (), {}, set()
        self.ways = _compiled.forward.Ways()
        self.routes.clear()

    @property
    def full(self) -> bool:
        return self.routes.full or self.ways.full

    def find(self, scope: int, suffix: str, mapped: bool) -> tuple[str, int]:
        mapping = Mapping.SENDER if mapped else Mapping.RECEIVER
        route = self.plane.tables.route(self.face, WireExpr(scope, suffix, mapping))
        if route is None:
            self.ways.learn(())
            # Counted one by one.
            return "", int(_compiled.routes.MESSAGES)
        self.ways.learn(
            [(key, route.node_id if to[0].routes else 0, to) for key, to in route.remote]
        )
        if not route.others:
            return route.key, int(_compiled.routes.NOBODY)
        number = self.numbers.get(route.others)
        if number is None:
            self.groups += (route.others,)
            number = self.numbers[route.others] = len(self.groups)
            if not self.plane.patient.issuperset(route.others):
                self.hasty.add(number)
        return route.key, number


@cache
def _installed() -> bool:
    """Whether the extra is there; to find out takes longer than to open a session."""
    return all(find_spec(name) is not None for name in _NEEDS)


class Plane:
    """That of one node. ``off`` says that there is none, ``always`` that it takes everything."""

    def __init__(self, node: Node) -> None:
        wanted = os.environ.get(VARIABLE, "")
        self._node = node
        self.off = wanted == "0" or not _installed()
        self.always = wanted == "all" and not self.off
        self._bursts: Bursts | None = None
        self._forwarding: Forwarding | None = None
        self._known: dict[Face, _Known] = {}
        self._many = 0
        self.patient: set[int] = set()
        """Subscribers that are not told before some time has passed."""
        self.hasty = False
        """Somebody else was told of what came last."""
        if self.always:
            load()

    def let_go(self) -> None:
        """Of its node: nothing is read any more."""
        del self._node

    @property
    def tables(self) -> Any:
        return self._node.tables

    def bursts(self) -> Bursts | None:
        """What reads many batches at once, if it is there and free."""
        if self._node.telling or self.off:
            return None
        if self._bursts is None and _compiled.receive is not None:
            self._bursts = _compiled.receive.Receiving()
        return self._bursts

    def missed(self, messages: int) -> None:
        """So many came at once, and were made objects."""
        self._many += messages
        # A router is there for it, and stays.
        enough = ENOUGH if self._node.config.mode is WhatAmI.ROUTER else _OFTEN
        if self._many >= enough and not self.off:
            _compiled.load_soon()

    def take(self, face: Face, run: Any) -> None:
        """Publications of a neighbour, a ``Run`` of `zenwire.columns.receive`: see `Node.take`."""
        node = self._node
        if not face.alive:
            return
        if face in node.ingress:
            self.hasty = True
            # Each of them has to pass the filters.
            node.take(face, Received(run.messages(), Priority.DATA, run.reliable))
            return
        known, generation = self._known.get(face), node.tables.state.generation
        if known is None:
            known = self._known[face] = _Known(self, face, node.tables.state.limits.routes)
        if known.generation != generation:
            known.clear()
            known.generation = generation
            self._known = {one: its for one, its in self._known.items() if one.alive}
        first = run.first
        while first < run.stop:
            part = known.routes.resolve(run, first)
            first = part.stop
            if known.ways or node.config.timestamping:
                self._pass_on(known, part)
            elif part.low < 0:
                self.hasty = True
                node.take(face, Received(part.messages(), Priority.DATA, part.reliable))
            else:
                self._tell(known, part)
            if known.full:
                known.clear()

    def _pass_on(self, known: _Known, part: Any) -> None:
        """Some of it goes to neighbours, perhaps, and some of it is for subscribers here."""
        if self._forwarding is None:
            passage = _compiled.forward.Passage(self._node.zid)
            self._forwarding = Forwarding(self._node, passage)
        self.hasty = True

        def tell(first: int, stop: int) -> None:
            self._tell(known, known.routes.resolve(part.run.some(first, stop), first))

        self._forwarding.take(known.face, part, known.ways, tell if part.high > 0 else None)

    def _tell(self, known: _Known, part: Any) -> None:
        if part.high > 0:
            self.hasty = self.hasty or (
                part.low in known.hasty if part.low == part.high else bool(known.hasty)
            )
            self._node.tell_later(self._output(part, known.groups))

    @staticmethod
    def _output(part: Any, groups: tuple[tuple[int, ...], ...]) -> RowsReceived:
        if part.low == part.high:
            return RowsReceived(groups[part.low - 1], part, groups)
        there = {one for group in part.groups_there() if group > 0 for one in groups[group - 1]}
        return RowsReceived(tuple(sorted(there)), part, groups)


def tell(
    output: RowsReceived,
    receivers: dict[int, Callable[[Any], None]],
    row_receivers: dict[int, Callable[[RowsReceived, int], None]],
    untold: deque[Any],
) -> None:
    """Hand rows to those who take them as rows; others get objects.

    What it is kept from by what a program raises is ``untold`` again.
    """
    samples: list[SampleReceived] | None = None
    for at, id_ in enumerate(output.subscribers, 1):
        take, deliver = row_receivers.get(id_), receivers.get(id_)
        if deliver is None:
            continue
        try:
            if take is not None:
                take(output, id_)
                continue
            if samples is None:
                samples = output.samples()
            for sample in samples:
                if id_ in sample.subscribers and id_ in receivers:
                    deliver(sample)
        except BaseException:
            if at < len(output.subscribers):
                untold.appendleft(output._replace(subscribers=output.subscribers[at:]))
            raise
