"""What comes, what is declared, and what of it matches: the doctor listens for a while."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from zenwire import aio
from zenwire.cli.doctor_keys import misses, published_key
from zenwire.cli.doctor_reach import Check, as_client
from zenwire.cli.doctor_refusals import (
    Refused,
    counted,
    findings,
    silent_nodes,
    subscription_refused,
    to_us_alone,
)
from zenwire.cli.receiving import losses_of
from zenwire.keyexpr import intersects

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zenwire.api.info import Declaration
    from zenwire.node.config import Config

__all__ = ["Heard", "as_client_too", "listen", "wanted_keys"]

_CONNECT: Final = 3.0
"""Seconds for a peer to be connected to somebody."""
_ENOUGH: Final = 1.0
"""Seconds to go on listening when something has come."""
_ASKED: Final = 5.0
"""Seconds for nodes to say what is declared; they answer at once, if they do."""
_KEYS_MAX: Final = 10_000
_SHOWN: Final = 5
_AHEAD: Final = 0.5
"""Seconds that a clock may be ahead of ours before it is said."""
_PUBLISHERS: Final = "@/*/*/publisher/**"
_TOKENS: Final = ("**", "**/@adv/**", "@ros2_lv/**")


def wanted_keys(given: Sequence[str]) -> tuple[list[str], list[Check]]:
    """The key expressions that were given, canonical, and what is wrong with them."""
    keys: list[str] = []
    checks: list[Check] = []
    for text in given:
        try:
            key = str(aio.KeyExpr.autocanonize(text))
        except aio.KeyExprError as e:
            bare = text.strip("/")
            hint = f"-k {bare!r}: keys do not begin or end with a slash" if bare != text else ""
            checks.append(Check("key", "bad", str(e), hint))
            continue
        if key != text:
            checks.append(Check("key", "warn", f"{text!r} is not canonical", f"write {key!r}"))
        keys.append(key)
    return keys, checks


class _Ear:
    """Counts what comes, by key."""

    def __init__(self) -> None:
        self.samples = 0
        self.keys: dict[str, int] = {}
        self.ahead = 0.0
        self.first: asyncio.Event = asyncio.Event()

    def take(self, sample: aio.Sample) -> None:
        self.samples += 1
        key = str(sample.key_expr)
        if key in self.keys or len(self.keys) < _KEYS_MAX:
            self.keys[key] = self.keys.get(key, 0) + 1
        stamp = sample.timestamp
        if stamp is not None:
            self.ahead = max(self.ahead, stamp.get_time_as_ntp64().as_secs_f64() - time.time())
        self.first.set()


@dataclass
class Heard:
    """What was found out. Keys are whole ones in ``elsewhere`` and in what is declared."""

    wanted: list[str]
    outward: list[str]
    """The same with the namespace, as others see them."""
    limit: float
    connected: bool = False
    samples: int = 0
    keys: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, int] = field(default_factory=dict)
    publishers: list[str] = field(default_factory=list)
    publishing: dict[str, set[str]] = field(default_factory=dict)
    """Keys of publishers that match, by the ZenohID of their nodes."""
    declared: list[Declaration] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    shared_memory: int = 0
    refused: bool = False
    """Nodes on the way have refused what should come."""
    silent: list[str] = field(default_factory=list)
    """Neighbours without refusal counters."""

    def say(self, step: str, mark: str, text: str, hint: str = "") -> None:
        self.checks.append(Check(step, mark, text, hint))

    def matching(self, keys: Iterable[str]) -> list[str]:
        """Those that whoever wants these keys would get."""
        return [key for key in keys if any(intersects(key, mine) for mine in self.outward)]

    def conclusions(self) -> list[Check]:
        """What follows, if nothing has come."""
        if self.samples or self.refused:
            return []
        found: list[Check] = []
        would = self.matching(self.publishers)
        if would:
            text = f"{_some(would)} would match, but nothing was published in {self.limit:g} s"
            hint = "--timeout 30 if it is published seldom; else access_control or downsampling "
            found.append(Check("match", "warn", text, hint + "on the way may filter it"))
        known = dict.fromkeys([*self.elsewhere, *self.publishers])
        for wanted, outward in zip(self.wanted, self.outward, strict=True):
            space = outward.removesuffix(f"/{wanted}")
            outside = [key for key in known if intersects(f"**/{wanted}", key)]
            if space != outward and outside:
                text = f"{_some(outside)} would match, but not below the namespace {space}"
                hint = "the publisher has another namespace: --cfg namespace:null, or that one"
                found.append(Check("match", "bad", text, hint))
        for wanted in [] if found else self.outward:
            for miss in misses(wanted, known):
                text = f"{miss.key} {miss.why}"
                found.append(Check("match", "bad", text, f"-k {miss.instead!r}"))
        if not found:
            for wanted in self.outward:
                for miss in misses(wanted, _keys(self.declared, "subscriber")):
                    text = f"others subscribe to {miss.key}, which {miss.why}"
                    found.append(Check("match", "warn", text, f"-k {miss.instead!r}"))
        if not found and known:
            text = f"other keys are published: {_some(list(known))}"
            found.append(Check("match", "bad", text, "check the spelling of -k"))
        answered = self.matching(_keys(self.declared, "queryable"))
        if answered:
            text = f"there is a queryable for {_some(answered)}: it answers, and does not publish"
            pairs = zip(self.wanted, self.outward, strict=True)
            asked = next(
                mine for mine, out in pairs if any(intersects(out, key) for key in answered)
            )
            hint = f"zenwire get -s {asked!r}"
            found.append(Check("match", "warn", text, hint))
        if not found:
            text = "nobody was seen to publish anything"
            hint = "start the publisher, check that it is connected to the same nodes, and that "
            found.append(Check("match", "bad", text, hint + "nothing on the way filters it"))
        if any("*" in key for key in self.wanted):
            text = "* and ** do not match chunks that begin with @, such as in fleet/@v1/gps"
            found.append(Check("match", "info", text))
        return found

    def verdict(self) -> tuple[str, bool]:
        """The last line, and whether all is well."""
        if self.shared_memory and not self.samples:
            return "It comes in shared memory, which zenwire cannot read.", False
        if self.samples:
            keys = "a key" if len(self.keys) == 1 else f"{len(self.keys):,} keys"
            return f"It comes: {self.samples:,} samples on {keys}.", True
        if self.refused:
            return "It does not come: nodes on the way refuse it.", False
        if self.matching(self.publishers):
            verdict = "It would come: there is a publisher, but nothing of it came so far"
            if self.silent:
                verdict += (
                    f"; whether {', '.join(self.silent)} refuses it cannot be known from here"
                )
            return f"{verdict}.", True
        if self.elsewhere or self.publishers:
            return "Connected, but what is published there does not match.", False
        return "Connected, but nobody publishes.", False


async def listen(config: Config, wanted: list[str], limit: float, *, wide: bool) -> Heard:
    """Open a session as it is configured, and listen."""
    own, space = config.copy(), config.effective.settings.namespace
    outward = [f"{space}/{key}" if space else key for key in wanted]
    heard = Heard(wanted, outward, limit)
    if own.effective.mode.name == "PEER":
        # The endpoints have been tried; what else there is must be found too.
        own.insert_json5("connect/exit_on_failure", "false")
        own.insert_json5("connect/timeout_ms", "-1")
    async with AsyncExitStack() as stack:
        try:
            session = await stack.enter_async_context(aio.open(own))
        except aio.LinkError as e:
            heard.say("session", "bad", " ".join(e.reason.split()), e.hint)
            return heard
        everything = session
        if space:
            own.insert_json5("namespace", "null")
            own.insert_json5("listen/endpoints", "[]")
            everything = await stack.enter_async_context(aio.open(own))
        if not await _connected(session):
            heard.say("session", "bad", "this node is connected to nobody", "-e tcp/HOST:7447")
            return heard
        heard.connected = True
        before = await counted(everything)
        await _hear(stack, session, everything, heard, wide=wide)
        told = await counted(everything)
        exact = not wide or session is not everything
        await _refused(session, heard, told.since(before), own, exact=exact)
        heard.silent = [] if heard.samples else silent_nodes(session, told)
    for node in heard.silent:
        text = f"{node} does not tell what it refuses: access control cannot be ruled out there"
        heard.say("filter", "info", text, "look at access_control in its configuration")
    return heard


async def _refused(
    session: aio.Session, heard: Heard, new: Refused, config: Config, *, exact: bool
) -> None:
    """Find what was refused while listening.

    Unless it is ``exact``, this session has subscribed to all keys, too. What is refused to it may
    be others than those that are wanted; and these may have come by that other subscription alone.
    """
    own = str(session.zid())
    if heard.samples:
        if exact or not subscription_refused(new, own):
            return
        found = await to_us_alone(config, heard.wanted, 0.0)
        if found:
            heard.say("receive", "warn", "they came by the doctor's subscription to ** alone")
            heard.samples = 0
    else:
        found, again = findings(new, own, heard.publishing, exact=exact)
        if again:
            found += await to_us_alone(config, heard.wanted, heard.limit)
    heard.checks += found
    heard.refused = any(check.mark == "bad" for check in found)


async def _connected(session: aio.Session) -> bool:
    try:
        async with (
            asyncio.timeout(_CONNECT),
            session.info.declare_transport_events_listener(history=True) as events,
        ):
            async for event in events:
                if event.kind is aio.SampleKind.PUT:
                    return True
    except TimeoutError:
        pass
    return False


async def _hear(
    stack: AsyncExitStack,
    session: aio.Session,
    everything: aio.Session,
    heard: Heard,
    *,
    wide: bool,
) -> None:
    narrow, all_keys = _Ear(), _Ear()
    for key in heard.wanted:
        ear = aio.Callback(narrow.take, indirect=False)
        await stack.enter_async_context(session.declare_subscriber(key, ear))
    if wide:
        ear = aio.Callback(all_keys.take, indirect=False)
        await stack.enter_async_context(everything.declare_subscriber("**", ear))
    # Whoever publishes or asks is told who subscribes and answers.
    await stack.enter_async_context(everything.declare_publisher("**"))
    await stack.enter_async_context(everything.declare_querier("**"))
    tokens: list[str] = []
    await asyncio.gather(
        _until_enough(narrow, heard.limit),
        _admin(everything, heard),
        *(_alive(everything, key, tokens) for key in _TOKENS),
    )
    heard.samples, heard.keys = narrow.samples, narrow.keys
    heard.elsewhere = all_keys.keys
    heard.declared = everything.info.declared()
    heard.publishers += filter(None, map(published_key, tokens))
    _tell(session, heard, tokens, max(narrow.ahead, all_keys.ahead))


async def _until_enough(ear: _Ear, limit: float) -> None:
    try:
        async with asyncio.timeout(limit):
            await ear.first.wait()
            await asyncio.sleep(_ENOUGH)
    except TimeoutError:
        pass


async def _admin(session: aio.Session, heard: Heard) -> None:
    """Publishers, which tell nobody of themselves but the admin space of their nodes."""
    async for reply in session.get(_PUBLISHERS, timeout=_ASKED, target=aio.QueryTarget.ALL):
        if reply.ok is None:
            continue
        others = _others(reply.ok.payload, str(session.zid()))
        if others is None or others:
            key = str(reply.ok.key_expr).split("/", 4)[4]
            heard.publishers.append(key)
            for zid in others or () if heard.matching([key]) else ():
                heard.publishing.setdefault(zid, set()).add(key)


def _others(payload: aio.ZBytes, own: str) -> set[str] | None:
    """Nodes that declared it, but for our own; None if the payload cannot be read."""
    try:
        sources = json.loads(payload.to_bytes())
        return {str(zid) for zids in sources.values() for zid in zids if zid != own}
    except (ValueError, AttributeError, TypeError):
        return None


async def _alive(session: aio.Session, key: str, tokens: list[str]) -> None:
    replies = session.liveliness().get(key, timeout=_ASKED)
    tokens += [str(reply.ok.key_expr) async for reply in replies if reply.ok is not None]


def _tell(session: aio.Session, heard: Heard, tokens: list[str], ahead: float) -> None:
    """The findings, in the order of the way that a sample takes."""
    nodes = [f"{one.whatami} {str(one.zid)[:8]}" for one in session.info.transports()]
    heard.say("session", "ok", f"connected to {', '.join(nodes)}")
    told = {"subscribers": "subscriber", "queryables": "queryable"}
    found = [
        f"{name} on {_some(keys)}"
        for name, kind in told.items()
        if (keys := _keys(heard.declared, kind))
    ]
    if heard.publishers:
        found.insert(0, f"publishers on {_some(heard.publishers)}")
    if tokens:
        found.append(f"tokens on {_some(tokens)}")
    nothing = "nothing that is known here; publishers are seen only with adminspace/enabled there"
    heard.say("declared", "info", f"declared by others: {'; '.join(found) or nothing}")
    stats = session.info.stats()
    for why, n in stats.failures.items():
        heard.say("session", "warn", f"{n:,} connections failed ({why})", "-vv says more")
    for lost in losses_of(session):
        heard.say("loss", "warn", lost)
    heard.shared_memory = stats.routing.shared_memory
    if heard.shared_memory:
        hint = "transport/shared_memory/enabled:false where it is published"
        heard.say("filter", "bad", "samples come in shared memory", hint)
    if stats.late:
        hint = "set the clocks (NTP), or timestamping/drop_future_timestamp:false"
        heard.say("filter", "bad", f"{stats.late:,} samples were stamped in the future", hint)
    if ahead > _AHEAD:
        text = f"timestamps are up to {ahead:.1f} s ahead of this machine's clock"
        heard.say("filter", "warn", text, "set the clocks (NTP): storages and routers drop such")
    if heard.samples:
        text = f"{heard.samples:,} samples on {_some(list(heard.keys))}"
        heard.say("receive", "ok", text)
    else:
        text = f"nothing on {', '.join(heard.wanted)} within {heard.limit:g} s"
        heard.say("receive", "bad", text)


def _keys(declared: list[Declaration], kind: str) -> list[str]:
    return list(dict.fromkeys(one.key for one in declared if one.kind == kind))


def _some(keys: list[str]) -> str:
    unique = list(dict.fromkeys(keys))
    more = f" and {len(unique) - _SHOWN:,} more" if len(unique) > _SHOWN else ""
    return ", ".join(unique[:_SHOWN]) + more


async def as_client_too(
    config: Config, endpoints: list[str], wanted: list[str], limit: float
) -> Check | None:
    """Whether as a client something comes that does not come as a peer."""
    ear = _Ear()
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aio.open(as_client(config, endpoints[0])))
        for key in wanted:
            callback = aio.Callback(ear.take, indirect=False)
            await stack.enter_async_context(session.declare_subscriber(key, callback))
        await _until_enough(ear, limit)
    if not ear.samples:
        return None
    return Check(
        "mode",
        "bad",
        f"as a client of {endpoints[0]} {ear.samples:,} samples come: a router does not pass them "
        "on from peer to peer, and the publishing peer cannot be reached from here",
        "-m client",
    )
