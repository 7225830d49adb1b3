"""Our bytes against the reference: a plain socket here, an eclipse-zenoh node there."""

from __future__ import annotations

import dataclasses
import hmac
import json
import queue
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import pytest
import zenoh

from tests.ports import free_port
from zenwire.wire import (
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    VERSION,
    compress_batch,
    decode,
    decode_batch,
    decode_linkstate,
    encode,
    encode_batch,
    expand_batch,
    frame_stream,
    split_stream,
    walk_low_latency,
)
from zenwire.wire.auth import AuthInitSyn, AuthOpenAck, AuthOpenSyn, UserPassword
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareToken,
)
from zenwire.wire.encoding import CUSTOM, ENCODINGS, Encoding
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Declare, Interest, Oam, Push, Request, Response, ResponseFinal
from zenwire.wire.structs import (
    QueryBody,
    ResponderId,
    SourceInfo,
    StackEntry,
    Timestamp,
    TimestampStack,
)
from zenwire.wire.transport import (
    Close,
    Fragment,
    Frame,
    InitAck,
    InitSyn,
    KeepAlive,
    OpenAck,
    OpenSyn,
)
from zenwire.wire.values import (
    CongestionControl,
    ConsolidationMode,
    InterestMode,
    Mapping,
    Priority,
    QoS,
    QueryableInfo,
    QueryTarget,
    UnknownExt,
    WhatAmI,
    WireExpr,
    ZenohId,
)

pytestmark = pytest.mark.interop

T = TypeVar("T")

TIMEOUT = 5.0
"""Long enough for a busy machine; nothing here waits for it to pass."""


# Encodings, as the reference names them.


def test_every_registered_encoding_is_known_to_the_reference() -> None:
    constants = {str(getattr(zenoh.Encoding, n)) for n in dir(zenoh.Encoding) if n.isupper()}
    assert constants == set(ENCODINGS)


@pytest.mark.parametrize(
    "text",
    [
        *ENCODINGS,
        "",
        ";",
        ";schema",
        "text/plain;utf-8",
        "text/plain;",
        "text/plain;;",
        "text/plain;a;b",
        "text/plain ;a",
        "Text/Plain",
        "my/encoding",
        "my/encoding;x",
        "zenoh/bytes;s",
        "unknown(7)",
        "é",
    ],
)
def test_encoding_text_is_that_of_the_reference(text: str) -> None:
    assert str(Encoding.parse(text)) == str(zenoh.Encoding(text))


# A node on a socket.


@contextmanager
def reference(
    mode: str = "router",
    *,
    gossip: bool = False,
    auth: dict[str, Any] | None = None,
    stamps: Callable[[zenoh.TimestampContext], bytes] | None = None,
    **unicast: Any,
) -> Iterator[tuple[zenoh.Session, int]]:
    """An eclipse-zenoh node that listens, and nothing else."""
    port = free_port()
    config = {
        "mode": mode,
        "listen": {"endpoints": [f"tcp/127.0.0.1:{port}"]},
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": gossip}},
        "transport": {
            "shared_memory": {"enabled": False},
            "unicast": unicast,
            "auth": auth or {},
        },
    }
    session = zenoh.open(zenoh.Config.from_json5(json.dumps(config)), timestamp_callback=stamps)
    try:
        yield session, port
    finally:
        session.close()  # type: ignore[no-untyped-call] # its package has no annotation there


@pytest.fixture(scope="module")
def router() -> Iterator[tuple[zenoh.Session, int]]:
    with reference() as found:
        yield found


class Wire:
    """Enough of a client to see what the reference makes of our bytes."""

    def __init__(self, port: int, zid: str, **offer: Any) -> None:
        self.zid = ZenohId.parse(zid)
        self.prefix = STREAM_PREFIX
        self.compression = False
        self.aliases: dict[int, str] = {}
        self._data = b""
        self._read: list[Any] = []
        self._sns: dict[Priority, int] = {}
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self._socket.settimeout(TIMEOUT)
        try:
            self._open(**offer)
        except BaseException:
            self._socket.close()
            raise

    def _open(self, password: bytes | None = None, **offer: Any) -> None:
        whatami = offer.pop("whatami", WhatAmI.CLIENT)
        offer = {"qos": True, "patch": 1} | offer
        syn = InitSyn(version=VERSION, zid=self.zid, whatami=whatami, **offer)
        self.send_batch(encode(syn))
        self.init = self.expect(InitAck)
        auth = None
        if password is not None:
            assert self.init.auth is not None
            assert self.init.auth.user_password is not None
            nonce = self.init.auth.user_password.to_bytes(8, "little")
            tag = hmac.digest(nonce, password, "sha3_256")
            auth = AuthOpenSyn(user_password=UserPassword(user=b"u1", tag=tag))
        opened = OpenSyn(lease=10_000, initial_sn=5, cookie=self.init.cookie, auth=auth)
        self.send_batch(encode(opened))
        self.open = self.expect(OpenAck)
        self.compression = self.init.compression
        if self.init.lowlatency:
            self.prefix = LOW_LATENCY_PREFIX

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send_batch(self, batch: bytes) -> None:
        content = compress_batch(batch) if self.compression else batch
        self._socket.sendall(frame_stream(content, self.prefix))

    def send(self, *messages: Any, priority: Priority = Priority.DATA) -> None:
        """Network messages in one frame."""
        if self.prefix == LOW_LATENCY_PREFIX:
            for message in messages:
                self.send_batch(encode(message))
            return
        frame = Frame(reliable=True, sn=self.next_sn(priority), priority=priority)
        self.send_batch(encode_batch([frame, *messages]))

    def next_sn(self, priority: Priority = Priority.DATA) -> int:
        sn = self._sns.get(priority, 5)
        self._sns[priority] = sn + 1
        return sn

    def _batch(self) -> list[Any]:
        while True:
            for start, end in split_stream(self._data, self.prefix, limit=2**20):
                batch, self._data = self._data[start:end], self._data[end:]
                content = expand_batch(batch) if self.compression else batch
                if self.prefix == LOW_LATENCY_PREFIX:
                    return [found.message for found in walk_low_latency(content)]
                return decode_batch(content)
            received = self._socket.recv(2**16)
            if not received:
                raise ConnectionError("closed by the reference")
            self._data += received

    def expect(self, cls: type[T], check: Callable[[T], bool] = lambda _: True) -> T:
        """The next message of a class; others are dropped, but aliases are noted."""
        while True:
            while self._read:
                message = self._read.pop(0)
                if isinstance(message, Declare) and isinstance(message.body, DeclareKeyExpr):
                    self.aliases[message.body.expr_id] = message.body.key.suffix
                if isinstance(message, cls) and check(message):
                    return message
            self._read = self._batch()

    def declared(self, cls: type[T]) -> T:
        """The next declaration of a class."""
        body = self.expect(Declare, lambda message: isinstance(message.body, cls)).body
        assert isinstance(body, cls)
        return body

    def key(self, expr: WireExpr) -> str:
        """In full: the sender's aliases are theirs, the receiver's are ours."""
        aliases = {0: ""} | (self.aliases if expr.mapping else OURS)
        return aliases[expr.scope] + expr.suffix

    def closed(self) -> bool:
        """True if the reference ends the link now."""
        try:
            while True:
                self._batch()
        except ConnectionError:
            return True
        except TimeoutError:
            return False


OURS = {1: "raw/a"}
ALIAS = Declare(body=DeclareKeyExpr(expr_id=1, key=WireExpr(0, "raw/a")))


def subscribe(wire: Wire, key: str) -> None:
    """Declare, and wait until the reference knows: its answer to an interest comes after."""
    expr = WireExpr(0, key)
    wire.send(ALIAS, Declare(body=DeclareSubscriber(id=1, key=expr)), priority=Priority.CONTROL)
    synchronise(wire)


def synchronise(wire: Wire) -> None:
    """Everything sent before is known to the reference when this returns."""
    interest = Interest(mode=InterestMode.CURRENT, id=99, tokens=True, key=WireExpr(0, "sync/none"))
    wire.send(interest, priority=Priority.CONTROL)
    final = wire.expect(Declare, lambda m: m.interest_id == 99)
    assert final.body == DeclareFinal()


# Session.


def test_handshake(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    with Wire(port, "cc01") as wire:
        assert str(wire.init.zid) == str(session.info.zid())
        assert wire.init.whatami is WhatAmI.ROUTER
        assert wire.init.version == VERSION
        assert (wire.init.qos, wire.init.patch) == (True, 1)
        assert wire.open.lease == 10_000
        wire.send_batch(b"")
        wire.send_batch(encode_batch([KeepAlive()]))
        synchronise(wire)
        assert "cc01" in {str(transport.zid) for transport in session.info.transports()}
        wire.send_batch(encode(Close(reason=0)))
        assert wire.closed()


@pytest.mark.parametrize(
    "text",
    ["010812" + "01cc", "810912" + "01cc" + "1b", "010912" + "0000", "010913" + "01cc"],
    ids=["version", "mandatory", "zero", "node"],
)
def test_a_bad_offer_is_refused_with_reason_2(router: tuple[zenoh.Session, int], text: str) -> None:
    with socket.create_connection(("127.0.0.1", router[1]), TIMEOUT) as link:
        link.settimeout(TIMEOUT)
        link.sendall(frame_stream(bytes.fromhex(text)))
        assert decode(link.recv(100)[STREAM_PREFIX:], "transport") == Close(reason=2)


def test_a_wrong_cookie_is_refused_with_reason_2(router: tuple[zenoh.Session, int]) -> None:
    with socket.create_connection(("127.0.0.1", router[1]), TIMEOUT) as link:
        link.settimeout(TIMEOUT)
        syn = InitSyn(version=VERSION, zid=ZenohId(b"\1\xcc"), whatami=WhatAmI.CLIENT)
        link.sendall(frame_stream(encode(syn)))
        link.recv(1000)
        link.sendall(frame_stream(encode(OpenSyn(lease=1000, initial_sn=0, cookie=b"\0"))))
        assert decode(link.recv(100)[STREAM_PREFIX:], "transport") == Close(reason=2)


# Publications.


def test_the_reference_understands_our_publications(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    stamp = Timestamp(time=0x6AFA_05EA_7C78_7F40, id=ZenohId.parse("aa01"))
    source = SourceInfo(zid=ZenohId.parse("cc02"), eid=6, sn=2**32 - 1)
    full = Put(
        timestamp=stamp,
        encoding=Encoding(4, b"utf-8"),
        source_info=source,
        attachment=b"att",
        unknown=(UnknownExt(0x0B, None), UnknownExt(0x2C, 2**64 - 1), UnknownExt(0x4D, b"?")),
        payload="é".encode(),
    )
    qos = QoS.of(Priority.REAL_TIME, CongestionControl.BLOCK, express=True)
    suffix = WireExpr(1, "/1")
    with session.declare_subscriber("raw/**", got.put), Wire(port, "cc02") as wire:
        wire.send(
            ALIAS,
            Push(key=WireExpr(0, "raw/whole"), body=Put(payload=b"plain")),
            Push(key=suffix, qos=qos, body=full),
            Push(key=WireExpr(1), body=Put(encoding=Encoding(CUSTOM, b"my/enc"), payload=b"")),
            Push(key=suffix, body=Del(attachment=b"gone")),
            Push(key=WireExpr(1, "zz"), body=Put(payload=bytes(range(256)))),
        )
        whole, rich, custom, gone, joined = (got.get(timeout=TIMEOUT) for _ in range(5))
    assert (str(whole.key_expr), whole.payload.to_bytes()) == ("raw/whole", b"plain")
    assert str(whole.encoding) == "zenoh/bytes"
    assert whole.attachment is None
    assert str(rich.key_expr) == "raw/a/1"
    assert rich.payload.to_string() == "é"
    assert str(rich.encoding) == "text/plain;utf-8"
    assert rich.attachment is not None
    assert rich.attachment.to_bytes() == b"att"
    assert rich.timestamp is not None
    assert str(rich.timestamp.get_id()) == "aa01"
    assert abs((rich.timestamp.get_time() - stamp.datetime).total_seconds()) < 1e-5
    assert rich.source_info is not None
    assert rich.source_info.source_sn == 2**32 - 1
    assert (str(rich.source_info.source_id.zid), rich.source_info.source_id.eid) == ("cc02", 6)
    assert (rich.priority, rich.congestion_control, rich.express) == (
        zenoh.Priority.REAL_TIME,
        zenoh.CongestionControl.BLOCK,
        True,
    )
    assert (str(custom.key_expr), str(custom.encoding)) == ("raw/a", "my/enc")
    assert gone.kind == zenoh.SampleKind.DELETE
    assert gone.attachment is not None
    assert gone.attachment.to_bytes() == b"gone"
    assert str(joined.key_expr) == "raw/azz"
    assert joined.payload.to_bytes() == bytes(range(256))


def test_we_understand_publications_of_the_reference(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    with Wire(port, "cc03") as wire:
        subscribe(wire, "raw/a/**")
        session.put(
            "raw/a/1",
            "é",
            encoding="text/plain;utf-8",
            attachment=b"att",
            priority=zenoh.Priority.INTERACTIVE_HIGH,
            congestion_control=zenoh.CongestionControl.BLOCK,
            express=True,
        )
        push = wire.expect(Push)
        assert wire.key(push.key) == "raw/a/1"
        assert push.qos == QoS.of(Priority.INTERACTIVE_HIGH, CongestionControl.BLOCK, express=True)
        put = push.body
        assert isinstance(put, Put)
        assert (put.payload, put.attachment) == ("é".encode(), b"att")
        assert put.encoding == Encoding(4, b"utf-8")
        assert put.timestamp is not None
        assert str(put.timestamp.id) == str(session.info.zid())
        session.put("raw/a", b"", encoding="my/enc")
        custom = wire.expect(Push).body
        assert isinstance(custom, Put)
        assert custom.encoding == Encoding(CUSTOM, b"my/enc")
        session.delete("raw/a/1", attachment=b"gone")
        gone = wire.expect(Push).body
        assert isinstance(gone, Del)
        assert gone.attachment == b"gone"


def test_timestamp_stacks_go_both_ways(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    wanted = zenoh.TimestampInstrumentationBuilder().set_send(True).set_route(True).build()
    stamp = Timestamp(time=0x6AFA_05EA_7C78_7F40, id=ZenohId.parse("aa01"))
    with session.declare_subscriber("stack/in", got.put), Wire(port, "cc17") as wire:
        subscribe(wire, "stack/out")
        session.put("stack/out", b"x", timestamp_instrumentation=wanted)
        stack = wire.expect(Push).timestamp_stack
        assert stack is not None
        assert stack.record == 3
        assert {entry.point for entry in stack.entries} == {1, 2}
        stamps = [entry.timestamp for entry in stack.entries]
        assert {str(stamp.id) for stamp in stamps if stamp} == {str(session.info.zid())}

        entries = (
            StackEntry(point=1, stamp=encode(stamp)),
            StackEntry(point=0x82, stamp=b"custom"),
            StackEntry(point=4, stamp=b"unreadable"),
        )
        ours = TimestampStack(record=1, entries=entries)
        key = WireExpr(0, "stack/in")
        wire.send(Push(key=key, timestamp_stack=ours, body=Put(payload=b"y")))
        sample = got.get(timeout=TIMEOUT)
        assert sample.payload.to_bytes() == b"y"
        assert sample.timestamp_stack is not None
        theirs, custom = (record.timestamp() for record in sample.timestamp_stack.records)
        assert isinstance(theirs, zenoh.Timestamp)
        assert str(theirs.get_id()) == "aa01"
        assert custom == b"custom"


def test_we_understand_stamps_that_an_application_makes() -> None:
    wanted = zenoh.TimestampInstrumentationBuilder().set_send(True).build()
    with (
        reference(stamps=lambda _: b"now") as (session, port),
        Wire(port, "cc18") as wire,
    ):
        subscribe(wire, "stack/out")
        session.put("stack/out", b"x", timestamp_instrumentation=wanted)
        stack = wire.expect(Push).timestamp_stack
        entry = StackEntry(point=0x81, stamp=b"now")
        assert stack == TimestampStack(record=1, entries=(entry,))


def test_encoding_numbers_are_those_of_the_reference(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    numbers = [*range(len(ENCODINGS)), 53, 1023]
    with session.declare_subscriber("enc/in", got.put), Wire(port, "cc04") as wire:
        subscribe(wire, "enc/out")
        for name in ENCODINGS:
            session.put("enc/out", b"", encoding=name)
        found = [wire.expect(Push).body for _ in ENCODINGS]
        assert [put.encoding.id for put in found if isinstance(put, Put)] == numbers[:-2]
        key = WireExpr(0, "enc/in")
        wire.send(*(Push(key=key, body=Put(encoding=Encoding(n), payload=b"")) for n in numbers))
        wire.send(Push(key=key, body=Put(encoding=Encoding(53, b"s"), payload=b"")))
        names = [str(got.get(timeout=TIMEOUT).encoding) for _ in range(len(numbers) + 1)]
        assert names == [*(str(Encoding(n)) for n in numbers), "unknown(53);s"]


def test_messages_larger_than_a_batch_come_in_fragments(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    payload = bytes(range(256)) * 1000
    with session.declare_subscriber("frag/in", got.put), Wire(port, "cc05") as wire:
        subscribe(wire, "frag/out")
        session.put("frag/out", payload, congestion_control=zenoh.CongestionControl.BLOCK)
        pieces = [wire.expect(Fragment)]
        while pieces[-1].more:
            pieces.append(wire.expect(Fragment))
        assert [piece.first for piece in pieces] == [True] + [False] * (len(pieces) - 1)
        assert [piece.sn - pieces[0].sn for piece in pieces] == list(range(len(pieces)))
        push = decode(b"".join(piece.payload for piece in pieces), "network")
        assert push.body.payload == payload

        raw = encode(Push(key=WireExpr(0, "frag/in"), body=Put(payload=payload)))
        size = wire.init.batch_size - 100
        for start in range(0, len(raw), size):
            piece = Fragment(
                reliable=True,
                more=start + size < len(raw),
                sn=wire.next_sn(),
                first=start == 0,
                payload=raw[start : start + size],
            )
            wire.send_batch(encode(piece))
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == payload


def test_unknown_extensions_of_data_pass_a_router(router: tuple[zenoh.Session, int]) -> None:
    """Those of PUT arrive, in their order after the known ones; the router drops that of PUSH."""
    _, port = router
    unknown = (UnknownExt(0x0B, None), UnknownExt(0x2C, 2**63), UnknownExt(0x4D, b"?"))
    with Wire(port, "cc06") as receiver, Wire(port, "cc07") as sender:
        subscribe(receiver, "ext/**")
        put = encode(Put(attachment=b"a", unknown=unknown, payload=b"x"))
        push = bytes.fromhex("fd00" + "05") + b"ext/1" + bytes.fromhex("8c" + "210d") + put
        frame = Frame(reliable=True, sn=sender.next_sn())
        sender.send_batch(encode(frame) + push)
        found = receiver.expect(Push)
        assert found.qos == QoS(0x0D)
        body = found.body
        assert isinstance(body, Put)
        assert (body.attachment, body.unknown, body.payload) == (b"a", unknown, b"x")


FAULTS = {
    "mandatory": "dd01" + "1502",
    "reserved": "dd01" + "6202",
    "utf8": "7d0002c32802",
    "id": "18",
    "overflow": "5c" + "ffffffff1f" + "0003",
}


@pytest.mark.parametrize(
    ("zid", "text"),
    [(f"cc08{n:02x}", text) for n, text in enumerate(FAULTS.values(), 1)],
    ids=FAULTS,
)
def test_what_we_call_a_fault_closes_the_link(
    router: tuple[zenoh.Session, int], zid: str, text: str
) -> None:
    # Not as one who was there before: the router may still have the link that it has just closed.
    with Wire(router[1], zid) as wire:
        frame = encode(Frame(reliable=True, sn=wire.next_sn()))
        wire.send_batch(frame + bytes.fromhex(text))
        assert wire.closed()


def test_longer_spellings_of_integers_are_understood(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    with session.declare_subscriber("long/1", got.put), Wire(port, "cc09") as wire:
        frame = encode(Frame(reliable=True, sn=wire.next_sn()))
        push = (
            bytes.fromhex("fd" + "8000" + "868000")
            + b"long/1"
            + bytes.fromhex("218d00" + "018100")
            + b"x"
        )
        wire.send_batch(frame + push)
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == b"x"


# Queries.


def test_the_reference_answers_our_query(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    seen: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def answer(query: zenoh.Query) -> None:
        payload, attachment = query.payload, query.attachment
        assert payload is not None
        assert attachment is not None
        seen.put(
            (
                str(query.key_expr),
                str(query.parameters),
                payload.to_bytes(),
                str(query.encoding),
                attachment.to_bytes(),
            )
        )
        query.reply("q/1", b"one", encoding="application/json")
        query.reply_del("q/2")
        query.reply_err(b"bad", encoding="text/plain")

    request = Request(
        request_id=300,
        key=WireExpr(0, "q/**"),
        qos=QoS(0x0D),
        target=QueryTarget.ALL,
        budget=10,
        timeout=3_000,
        body=Query(
            consolidation=ConsolidationMode.NONE,
            parameters="a=1;b=2",
            body=QueryBody(encoding=Encoding(4), payload=b"body"),
            attachment=b"att",
        ),
    )
    with session.declare_queryable("q/**", answer, complete=True), Wire(port, "cc10") as wire:
        wire.send(request)
        assert seen.get(timeout=TIMEOUT) == ("q/**", "a=1;b=2", b"body", "text/plain", b"att")
        put, gone, error = (wire.expect(Response) for _ in range(3))
        final = wire.expect(ResponseFinal)
    assert {m.request_id for m in (put, gone, error, final)} == {300}
    assert put.key.suffix == "q/1"
    assert put.body == Reply(body=Put(encoding=Encoding(5), payload=b"one"))
    assert put.responder is not None
    assert str(put.responder.zid) == str(session.info.zid())
    assert isinstance(gone.body, Reply)
    assert isinstance(gone.body.body, Del)
    assert error.body == Err(encoding=Encoding(4), payload=b"bad")


def test_a_query_that_nobody_answers_is_final(router: tuple[zenoh.Session, int]) -> None:
    with Wire(router[1], "cc11") as wire:
        wire.send(Request(request_id=1, key=WireExpr(0, "nobody/here"), body=Query()))
        assert wire.expect(ResponseFinal).request_id == 1


def test_we_answer_a_query_of_the_reference(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Reply] = queue.Queue()
    with Wire(port, "cc12") as wire:
        queryable = DeclareQueryable(id=7, key=WireExpr(0, "ours/**"), info=QueryableInfo(True, 0))
        wire.send(Declare(body=queryable), priority=Priority.CONTROL)
        synchronise(wire)
        session.get(
            "ours/1?a=1;b=2",
            got.put,
            payload=b"body",
            encoding="text/plain",
            attachment=b"att",
            target=zenoh.QueryTarget.ALL_COMPLETE,
            consolidation=zenoh.ConsolidationMode.NONE,
            timeout=3.0,
        )
        request = wire.expect(Request)
        assert wire.key(request.key) == "ours/1"
        assert request.timeout == 3_000
        assert request.target is QueryTarget.ALL_COMPLETE
        assert request.body == Query(
            consolidation=ConsolidationMode.NONE,
            parameters="a=1;b=2",
            body=QueryBody(encoding=Encoding(4), payload=b"body"),
            attachment=b"att",
        )
        responder = ResponderId(zid=wire.zid, eid=7)
        answer = Response(
            request_id=request.request_id,
            key=WireExpr(0, "ours/1"),
            responder=responder,
            body=Reply(body=Put(encoding=Encoding(5), attachment=b"ra", payload=b"one")),
        )
        wire.send(
            answer,
            dataclasses.replace(answer, body=Reply(body=Del())),
            dataclasses.replace(answer, body=Err(encoding=Encoding(1), payload=b"bad")),
            ResponseFinal(request_id=request.request_id),
        )
        put, gone, error = (got.get(timeout=TIMEOUT) for _ in range(3))
    assert put.ok is not None
    assert put.ok.payload.to_bytes() == b"one"
    assert str(put.ok.encoding) == "application/json"
    assert put.ok.attachment is not None
    assert put.ok.attachment.to_bytes() == b"ra"
    assert gone.ok is not None
    assert gone.ok.kind == zenoh.SampleKind.DELETE
    assert error.err is not None
    assert (error.err.payload.to_bytes(), str(error.err.encoding)) == (b"bad", "zenoh/string")


# Declarations.


def test_the_reference_sees_our_token_come_and_go(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    alive = Declare(body=DeclareToken(id=4, key=WireExpr(0, "live/ours")))
    with (
        session.liveliness().declare_subscriber("live/ours", got.put),
        Wire(port, "cc13") as wire,
    ):
        wire.send(alive, priority=Priority.CONTROL)
        assert got.get(timeout=TIMEOUT).kind == zenoh.SampleKind.PUT
        replies: queue.Queue[zenoh.Reply] = queue.Queue()
        session.liveliness().get("live/**", replies.put, timeout=3.0)
        reply = replies.get(timeout=TIMEOUT)
        assert reply.ok is not None
        assert str(reply.ok.key_expr) == "live/ours"
        # Without the WireExpr extension, which the pages demand and the reference does not.
        wire.send(Declare(body=UndeclareToken(id=4)), priority=Priority.CONTROL)
        assert got.get(timeout=TIMEOUT).kind == zenoh.SampleKind.DELETE


def test_we_see_tokens_of_the_reference_come_and_go(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    with Wire(port, "cc14") as wire:
        token = session.liveliness().declare_token("alive/1")
        interest = Interest(id=3, tokens=True, keyexprs=True, key=WireExpr(0, "alive/**"))
        wire.send(interest, priority=Priority.CONTROL)
        first = wire.expect(Declare, lambda m: isinstance(m.body, DeclareToken))
        assert first.interest_id == 3
        assert isinstance(first.body, DeclareToken)
        assert wire.key(first.body.key) == "alive/1"
        assert wire.expect(Declare, lambda m: m.interest_id == 3).body == DeclareFinal()
        token.undeclare()  # type: ignore[no-untyped-call] # its package has no annotation there
        assert wire.declared(UndeclareToken).id == first.body.id


def test_an_interest_is_answered_with_subscribers_and_queryables(
    router: tuple[zenoh.Session, int],
) -> None:
    session, port = router
    with (
        session.declare_subscriber("decl/s", lambda _: None),
        session.declare_queryable("decl/q", lambda _: None, complete=True),
        Wire(port, "cc15") as wire,
    ):
        interest = Interest(id=8, subscribers=True, queryables=True, key=WireExpr(0, "decl/**"))
        wire.send(interest, priority=Priority.CONTROL)
        found: list[Any] = []
        while not found or found[-1] != DeclareFinal():
            found.append(wire.expect(Declare, lambda m: m.interest_id == 8).body)
    subscribers = [b for b in found if isinstance(b, DeclareSubscriber)]
    queryables = [b for b in found if isinstance(b, DeclareQueryable)]
    assert [wire.key(s.key) for s in subscribers] == ["decl/s"]
    assert [(wire.key(q.key), q.info) for q in queryables] == [("decl/q", QueryableInfo(True, 0))]


def test_our_alias_is_used_for_what_we_receive(router: tuple[zenoh.Session, int]) -> None:
    session, port = router
    with Wire(port, "cc16") as wire:
        wire.send(
            ALIAS,
            Declare(body=DeclareSubscriber(id=1, key=WireExpr(1, "/**"))),
            priority=Priority.CONTROL,
        )
        synchronise(wire)
        session.put("raw/a/zz", b"x")
        push = wire.expect(Push)
    assert push.key == WireExpr(1, "/zz", Mapping.RECEIVER)
    assert wire.key(push.key) == "raw/a/zz"


# Other sessions.


def test_compressed_batches_go_both_ways() -> None:
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    with (
        reference(compression={"enabled": True}) as (session, port),
        session.declare_subscriber("z/in", got.put),
        Wire(port, "cc20", compression=True) as wire,
    ):
        assert wire.init.compression
        subscribe(wire, "z/out")
        session.put("z/out", b"a" * 500)
        found = wire.expect(Push).body
        assert isinstance(found, Put)
        assert found.payload == b"a" * 500
        wire.send(Push(key=WireExpr(0, "z/in"), body=Put(payload=b"b" * 500)))
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == b"b" * 500


def test_low_latency_goes_both_ways() -> None:
    got: queue.Queue[zenoh.Sample] = queue.Queue()
    with (
        reference(lowlatency=True, qos={"enabled": False}) as (session, port),
        session.declare_subscriber("z/in", got.put),
        Wire(port, "cc21", lowlatency=True, qos=False) as wire,
    ):
        assert wire.init.lowlatency
        subscribe(wire, "z/out")
        session.put("z/out", b"out")
        found = wire.expect(Push).body
        assert isinstance(found, Put)
        assert found.payload == b"out"
        wire.send(Push(key=WireExpr(0, "z/in"), body=Put(payload=b"in")))
        assert got.get(timeout=TIMEOUT).payload.to_bytes() == b"in"


def test_user_and_password_open_a_session(tmp_path: Path) -> None:
    accounts = tmp_path / "accounts"
    accounts.write_text("u1:p1\n")
    usrpwd = {"usrpwd": {"dictionary_file": str(accounts)}}
    offer = {"auth": AuthInitSyn(user_password=True)}
    with reference(auth=usrpwd) as (_, port):
        with Wire(port, "cc22", password=b"p1", **offer) as wire:
            assert wire.open.auth == AuthOpenAck(user_password=True)
            synchronise(wire)
        with pytest.raises(ConnectionError):
            Wire(port, "cc23", password=b"wrong", **offer)


def test_a_peer_ends_its_first_declarations_by_interest_0() -> None:
    with reference("peer") as (_, port), Wire(port, "bb01", whatami=WhatAmI.PEER) as wire:
        assert wire.init.whatami is WhatAmI.PEER
        assert wire.expect(Declare, lambda m: m.interest_id == 0).body == DeclareFinal()


def test_a_peer_tells_its_link_state() -> None:
    with (
        reference("peer", gossip=True) as (session, port),
        Wire(port, "bb02", whatami=WhatAmI.PEER) as wire,
    ):
        oam = wire.expect(Oam)
        assert oam.id == OAM_LINKSTATE
        assert isinstance(oam.body, bytes)
        own = decode_linkstate(oam.body).entries[0]
        assert str(own.zid) == str(session.info.zid())
        assert own.whatami is WhatAmI.PEER
        assert [str(locator) for locator in own.locators or ()] == [f"tcp/127.0.0.1:{port}"]
