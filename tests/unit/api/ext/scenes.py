"""A reception without a network: samples by their numbers, and what comes of them in letters."""

from __future__ import annotations

from zenwire.api.ext.asks import Ask
from zenwire.api.ext.history import HistoryConfig
from zenwire.api.ext.order import Miss
from zenwire.api.ext.reception import Reception
from zenwire.api.ext.recovery import RecoveryConfig
from zenwire.api.values import EntityGlobalId, Sample, ZenohId
from zenwire.keyexpr import KeyExpr
from zenwire.wire import structs
from zenwire.wire import values as wire
from zenwire.wire.data import Put

ZID = wire.ZenohId(b"\x0a")
"""Of the publisher, if nothing else is said."""
ID = EntityGlobalId(ZenohId.from_wire(ZID), 7)
INSTANCE = "k/@adv/pub/a/7/_"


def sample(
    sn: int | None = None,
    *,
    zid: wire.ZenohId = ZID,
    eid: int = 7,
    time: int | None = None,
    clock: wire.ZenohId = ZID,
    payload: bytes | None = None,
    key: str = "k",
) -> Sample:
    info = None if sn is None else structs.SourceInfo(zid=zid, eid=eid, sn=sn)
    stamp = None if time is None else structs.Timestamp(time=time, id=clock)
    content = str(time if sn is None else sn).encode() if payload is None else payload
    return Sample(key, Put(source_info=info, timestamp=stamp, payload=content))


class Scene:
    """One subscriber on ``k``, at a time that tests set."""

    def __init__(
        self, history: HistoryConfig | None = None, recovery: RecoveryConfig | None = None
    ) -> None:
        self.reception = Reception(KeyExpr("k"), history, recovery)
        self.now = 100.0
        self.asked: list[Ask] = []

    def start(self) -> list[str]:
        self.reception.start()
        return self.out()

    def out(self) -> list[str]:
        """Payloads, ``-n`` for a miss of n, and queries from their ``?``."""
        found = []
        for output in self.reception.take():
            if isinstance(output, Sample):
                found.append(output.payload.to_string())
            elif isinstance(output, Miss):
                found.append(f"-{output.nb}")
            else:
                self.asked.append(output)
                found.append(f"?{output.parameters}")
        return found

    def live(self, *numbers: int) -> list[str]:
        for sn in numbers:
            self.reception.receive(sample(sn), self.now)
        return self.out()

    def replies(self, *numbers: int) -> list[str]:
        for sn in numbers:
            self.reception.reply(sample(sn), self.now)
        return self.out()

    def finish(self, index: int = -1, *, answered: bool = True) -> list[str]:
        """The last query is over, or another one."""
        self.reception.finished(self.asked[index].id, answered=answered)
        return self.out()

    def heartbeat(self, sn: int, key: str = INSTANCE) -> list[str]:
        self.reception.heartbeat(key, sn.to_bytes(4, "little"), self.now)
        return self.out()

    def token(self, key: str = INSTANCE, *, alive: bool = True) -> list[str]:
        self.reception.token(key, self.now, alive=alive)
        return self.out()

    def wait(self, seconds: float) -> list[str]:
        self.now += seconds
        self.reception.tick(self.now)
        return self.out()
