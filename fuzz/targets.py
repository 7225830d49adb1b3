"""One target for each public decoder: bytes in, a documented error or nothing out."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from fuzz import against, seeds, tables
from fuzz.against import MismatchError, equal
from fuzz.seeds import Seed
from tests.recorded import CAPTURES
from zenwire import keyexpr
from zenwire.capture import CaptureReader
from zenwire.cli import inspect
from zenwire.errors import CaptureError, DecodeError, EncodeError, Fault, KeyExprError, ZError
from zenwire.wire import (
    BATCH_MAX,
    LOW_LATENCY_PREFIX,
    STREAM_PREFIX,
    decode,
    decode_batch,
    decode_linkstate,
    encode,
    encode_batch,
    expand_batch,
    lz4,
    split_stream,
    walk,
    walk_low_latency,
)
from zenwire.wire.encoding import Encoding
from zenwire.wire.inspect.dissect import Form
from zenwire.wire.locator import EndPoint, Locator
from zenwire.wire.values import ZenohId

__all__ = ["TARGETS", "Target"]

SCOPES = ("scouting", "transport", "network", "declare", "data")


@dataclass(frozen=True)
class Target:
    """``run`` may raise ``errors`` and nothing else; a MismatchError says what does not hold."""

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Sequence[Seed]]
    errors: tuple[type[Exception], ...] = (DecodeError,)


def _checked(e: DecodeError, data: bytes) -> None:
    if e.fault not in Fault or not 0 <= e.offset <= len(data) or not str(e):
        raise MismatchError("error", f"{e!r} of {len(data)} bytes")


# Messages.


def _decode(scope: str, data: bytes) -> None:
    try:
        message = decode(data, scope)
    except DecodeError as e:
        _checked(e, data)
        raise
    written = encode(message)
    equal("longer", len(written) > len(data), False)
    equal("written and read again", decode(written, scope), message)


def _batch(data: bytes) -> None:
    try:
        messages = decode_batch(data)
    except DecodeError as e:
        _checked(e, data)
        before = [located for located in walk(data[: e.offset]) if located.end < e.offset]
        equal("read before the fault", [b.end <= e.offset for b in before], [True] * len(before))
        raise
    located = list(walk(memoryview(data)))
    equal("walk", [x.message for x in located], messages)
    ends = [0, *(x.end for x in located)]
    equal("no gaps", [x.start for x in located], ends[:-1])
    equal("written and read again", decode_batch(encode_batch(messages)), messages)


def _low_latency(data: bytes) -> None:
    try:
        found = [x.message for x in walk_low_latency(data)]
    except DecodeError as e:
        _checked(e, data)
        raise
    equal("at most one", len(found) > 1, False)
    for message in found:
        (again,) = walk_low_latency(encode(message))
        equal("written and read again", again.message, message)


def _split(prefix: int, data: bytes) -> None:
    at = 0
    for start, end in split_stream(data, prefix):
        equal("no gaps", start, at + prefix)
        equal("within", start <= end <= len(data) and end - start <= BATCH_MAX, True)
        at = end


def _expand(data: bytes) -> None:
    content = expand_batch(data)
    equal("within the limit", len(content) <= max(BATCH_MAX, len(data)), True)


def _lz4(data: bytes) -> None:
    limit = 1 << data[0] % 18 if data else 0
    try:
        content = lz4.decompress(data[1:], limit)
    except ValueError as e:
        if type(e) is not ValueError:
            raise MismatchError("error", repr(e)) from e
    else:
        equal("within the limit", len(content) <= limit, True)
    equal("compressed and expanded", lz4.decompress(lz4.compress(data), len(data)), data)


def _linkstate(data: bytes) -> None:
    try:
        found = decode_linkstate(data)
    except DecodeError as e:
        _checked(e, data)
        raise
    equal("written and read again", decode_linkstate(encode(found)), found)


# Text: any bytes as text, what is not UTF-8 as lone surrogates.


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _keyexpr(data: bytes) -> None:
    text = _text(data)
    equal("canonical", keyexpr.is_canonical(text), _is_valid(text))
    try:
        canonical = keyexpr.canonize(text)
    except KeyExprError as e:
        equal("text", e.text, text)
        equal("position", 0 <= e.position <= len(text) and bool(str(e)), True)
        raise
    equal("canonize again", keyexpr.canonize(canonical), canonical)
    equal("canonical", keyexpr.is_canonical(canonical), True)
    equal("autocanonize", str(keyexpr.KeyExpr.autocanonize(text)), canonical)


def _is_valid(text: str) -> bool:
    try:
        keyexpr.validate(text)
    except KeyExprError:
        return False
    return True


def _match(data: bytes) -> None:
    texts = _text(data).split("\n", 2)
    a, b = keyexpr.canonize(texts[0]), keyexpr.canonize(texts[-1])
    common = keyexpr.intersects(a, b)
    equal("intersects is symmetric", keyexpr.intersects(b, a), common)
    equal("reflexive", (keyexpr.intersects(a, a), keyexpr.includes(b, b)), (True, True))
    if not common:
        equal("disjoint", (keyexpr.includes(a, b), keyexpr.includes(b, a)), (False, False))
    for one, two in ((a, b), (b, a)):
        level = keyexpr.KeyExpr(one).relation_to(two)
        equal("relation", level > keyexpr.SetIntersectionLevel.DISJOINT, common)
    tree: keyexpr.KeyExprTree[int] = keyexpr.KeyExprTree()
    tree.insert(a, 1)
    equal("tree", bool(list(tree.intersecting(b))), common)
    equal("tree", bool(list(tree.including(b))), keyexpr.includes(a, b))
    keyexpr.KeyExpr(a).join(b)
    keyexpr.KeyExpr(a).concat(b)


def _encoding(data: bytes) -> None:
    text = _text(data)
    found = Encoding.parse(text)
    equal("parsed again", Encoding.parse(str(found)), found)


def _locator(data: bytes) -> None:
    text = _text(data)
    try:
        found = EndPoint.parse(text)
    except EncodeError:
        pass
    else:
        equal("parsed again", EndPoint.parse(str(found)), found)
        Locator.parse(str(found.locator))
    where = Locator.parse(text)
    equal("parsed again", Locator.parse(str(where)), where)


def _zid(data: bytes) -> None:
    text = _text(data)
    equal("printed", str(ZenohId.parse(text)), text)


# Captures.


def _capture(data: bytes) -> None:
    """The last byte chooses the window."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "capture")
        path.write_bytes(data)
        reader = CaptureReader(path, window=64 << data[-1] % 12 if data else 64)
        for batch in reader:
            batch.validate(full=True)
    equal("the books", reader.summary.balance, 0)


def _captures() -> tuple[Seed, ...]:
    return tuple(Seed(data) for path in CAPTURES if len(data := path.read_bytes()) < 48_000)


# The command.


@cache
def _inspect_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    inspect.arguments(parser)
    return parser


def _inspect(data: bytes) -> None:
    """All forms in turn, as text and as JSON."""
    forms = ["auto", *Form]
    choice = sum(data)
    form = forms[choice % len(forms)]
    as_json, full = bool(choice & 64), bool(choice & 128)
    out, err = io.StringIO(), io.StringIO()
    given = ["--as", str(form), "--limit", "50", "--", data.hex(" ")]
    args = _inspect_parser().parse_args(["--json"] * as_json + ["--full"] * full + given)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = inspect.run(args)
    equal("exit code", code in {0, 1} or not data, True)
    equal("says what it was", err.getvalue().startswith("zenwire inspect: "), True)
    lines = out.getvalue().splitlines()
    if as_json:
        for line in lines:
            json.loads(line)
    equal("safe to print", all(line.isprintable() for line in lines), True)
    if code:
        raise DecodeError(Fault.INVALID, 0)


_KEYS = (
    *(b"a", b"a/b/c", b"**", b"a/**", b"*/b", b"a$*b/c", b"@adv/x", b"a/**/@v/**/b", b"$*", b"/"),
    *(b"**/**/*", b"$*$*a", b"a//b", b"a$*$*b/c$*", b"*/**/*/**", b"\xc3\xa9/\xf0\x9f\x94\x91"),
    *(b"a\nb", b"**\na/b", b"a$*/**/x\na*b/x", b"*/@a/**\n**/@a", b"$*a$*a$*a$*\naaaaaaaa"),
    *(b"a/**/b/**/c\na/b/b/c/c", b"a/$*b/**\n**/c$*/d", b"x" * 200 + b"/*", b"**/" * 40 + b"a"),
)
_ENCODINGS = (b"text/plain", b"text/plain;utf-8", b"", b";", b"x;y;z", b"a" * 256, b"zenoh/bytes;")
_LOCATORS = (
    *(b"tcp/127.0.0.1:7447", b"tls/[::1]:7447?rel=1#a=b;c", b"udp/h", b"/", b"a/", b"", b"a#/b"),
    *(b"unixsock-stream//tmp/s?x?y#z#w", b"q?/a", b"tcp/" + b"x" * 252),
)
_ZIDS = (b"1", b"a0", b"0", b"00a", b"f" * 32, b"f" * 33, b"", b"A", b"1_0", b"\xd9\xa1")


def _texts(*groups: tuple[bytes, ...]) -> tuple[Seed, ...]:
    return tuple(Seed(data) for group in groups for data in group)


def _any_seeds() -> tuple[Seed, ...]:
    return (
        *seeds.batches()[::3],
        *seeds.low_latency()[::5],
        *seeds.streams(STREAM_PREFIX)[::5],
        *seeds.streams(LOW_LATENCY_PREFIX)[::5],
        *seeds.compressed()[::9],
        *seeds.linkstates(),
        *(seed for scope in SCOPES for seed in seeds.messages(scope)[::5]),
    )


def _all() -> tuple[Target, ...]:
    found = [Target(f"decode-{s}", partial(_decode, s), partial(seeds.messages, s)) for s in SCOPES]
    streams: Any = (("", STREAM_PREFIX), ("-low-latency", LOW_LATENCY_PREFIX))
    found += [
        Target("batch", _batch, seeds.batches),
        Target("low-latency", _low_latency, seeds.low_latency),
        Target("expand", _expand, seeds.compressed),
        Target("lz4", _lz4, seeds.compressed),
        Target("linkstate", _linkstate, seeds.linkstates),
        Target("scan", against.one_batch, seeds.batches),
        Target("scan-low-latency", against.one_message, seeds.low_latency),
        Target("write", tables.written, partial(_texts, tables.SEEDS), (EncodeError,)),
        Target("keyexpr", _keyexpr, partial(_texts, _KEYS), (KeyExprError,)),
        Target("keyexpr-match", _match, partial(_texts, _KEYS), (KeyExprError,)),
        Target("encoding", _encoding, partial(_texts, _ENCODINGS), (EncodeError,)),
        Target("locator", _locator, partial(_texts, _LOCATORS), (EncodeError,)),
        Target("zid", _zid, partial(_texts, _ZIDS), (EncodeError,)),
        Target("capture", _capture, _captures, (CaptureError,)),
        Target("inspect", _inspect, _any_seeds, (ZError,)),
    ]
    for name, prefix in streams:
        some = partial(seeds.streams, prefix)
        found.append(Target(f"split{name}", partial(_split, prefix), some))
        found.append(Target(f"scan-stream{name}", partial(against.stream, prefix), some))
    return tuple(found)


TARGETS = {target.name: target for target in _all()}
