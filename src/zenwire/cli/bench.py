"""``zenwire bench``: how many samples a second."""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.options import count, qos_of, qos_options, seconds, session_options
from zenwire.cli.publishing import matched
from zenwire.cli.running import (
    FAILED,
    LOST,
    OK,
    OUT_OF_TIME,
    Aside,
    Output,
    Wrong,
    note,
    run_command,
    say,
    session_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from zenwire import aio

SUMMARY = "measure throughput: both sides on this machine, or one against z_pub_thr or z_sub_thr"
EXAMPLES: tuple[str, ...] = (
    "zenwire bench",
    "zenwire bench --size 1024 --seconds 5 --json",
    "zenwire bench --sub -l tcp/0.0.0.0:7447",
    "zenwire bench --pub -e tcp/192.168.1.5:7447 --size 8",
)
KEY: Final = "test/thr"
_WAIT: Final = 30.0
"""Seconds that one side waits for the other."""
_TURN: Final = 256
"""Samples between two looks at the clock."""
_END: Final = 1.0
"""Seconds without a sample after which a publisher that has stopped is thought to be done."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add which side, how large and how long."""
    side = parser.add_mutually_exclusive_group()
    side.add_argument("--pub", action="store_true", help="only publish, for a subscriber elsewhere")
    side.add_argument("--sub", action="store_true", help="only subscribe, to what comes elsewhere")
    parser.add_argument("-k", "--key", default=KEY, metavar="KEY", help=f"default: {KEY}")
    parser.add_argument(
        "--size", type=int, default=8, metavar="BYTES", help="of each payload (default: 8)"
    )
    parser.add_argument(
        "--seconds", type=seconds, default=5.0, metavar="S", help="how long (default: 5)"
    )
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N samples")
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")
    # Of both sides here, the one that publishes stays until the other one has all it sent.
    parser.add_argument("--until-eof", action="store_true", help=argparse.SUPPRESS)
    qos_options(parser)
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Measure. Exit code 1: nothing came; 3: some were lost; 124: the other side is not there."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    if args.until_eof:
        return OUT_OF_TIME if await _publish(args) is None else OK
    if args.pub:
        told = await _publish(args)
    elif args.sub:
        told = await _subscribe(args)
    else:
        if args.connect or args.listen:
            raise Wrong("both sides run here; with -e or -l say which one this is: --pub or --sub")
        told = await _both(args)
    if told is None:
        return OUT_OF_TIME
    await Output().write((json.dumps(told) if args.json else _line(told)) + "\n")
    if not told["messages"]:
        return FAILED
    return LOST if told["lost"] else OK


def _told(side: str, args: argparse.Namespace, messages: int, passed: float) -> dict[str, Any]:
    rate = messages / passed if passed else 0.0
    return {
        "side": side,
        "size": args.size,
        "messages": messages,
        "seconds": round(passed, 3),
        "messages_per_s": round(rate, 1),
        "payload_bytes_per_s": round(rate * args.size, 1),
        "lost": 0,
    }


def _line(told: dict[str, Any]) -> str:
    lost = f", {told['lost']:,} lost" if told["lost"] else ""
    return (
        f"{told['side']}: {told['messages']:,} samples of {told['size']:,} bytes in "
        f"{told['seconds']:.2f} s{lost}: {told['messages_per_s']:,.0f} msg/s, "
        f"{told['payload_bytes_per_s'] / 1e6:,.2f} MB/s of payload"
    )


async def _publish(args: argparse.Namespace) -> dict[str, Any] | None:
    payload = bytes(max(args.size, 0))
    async with session_of(args) as session:
        async with session.declare_publisher(args.key, **qos_of(args)) as publisher:
            note(args, f"waiting for subscribers of {args.key}")
            if not await matched(publisher, _WAIT):
                say(args, f"nobody subscribed to {args.key} within {_WAIT:g} s")
                return None
            begin = now = time.monotonic()
            sent, wanted = 0, args.count or sys.maxsize
            async with _Progress(args, lambda: sent):
                while sent < wanted and now - begin < args.seconds:
                    for _ in range(min(_TURN, wanted - sent)):
                        await publisher.put(payload)
                    sent += min(_TURN, wanted - sent)
                    now = time.monotonic()
        told = _told("published", args, sent, now - begin)
        told["lost"] = session.info.stats().dropped.total()
        if args.until_eof:
            await Output().write(json.dumps(told) + "\n")
            await Aside().run(sys.stdin.buffer.read)
    return told


class _Counter:
    """Counts samples where they come in, from the first on."""

    def __init__(self) -> None:
        self.messages = self.bytes = 0
        self.first = self.last = 0.0

    def take(self, sample: aio.Sample) -> None:
        if not self.messages:
            self.first = time.monotonic()
        self.messages += 1
        self.bytes += len(sample.payload)
        self.last = time.monotonic()

    @property
    def seconds(self) -> float:
        return self.last - self.first


async def _subscribe(
    args: argparse.Namespace, published: asyncio.Future[dict[str, Any]] | None = None
) -> dict[str, Any] | None:
    """Count until the time is over. ``published`` is what the other side of both has sent."""
    from zenwire import aio  # noqa: PLC0415 - slow to load, and not for --help
    from zenwire.cli.receiving import losses_of  # noqa: PLC0415 - the same

    counter = _Counter()
    async with (
        session_of(args) as session,
        session.declare_subscriber(args.key, aio.Callback(counter.take, indirect=False)),
    ):
        note(args, f"subscribed to {args.key}")
        begin = time.monotonic()
        async with _Progress(args, lambda: counter.messages):
            while not _enough(args, counter, begin, published):  # noqa: ASYNC110 # a matter of time
                await asyncio.sleep(0.05)
        lost = losses_of(session)
        dropped = session.info.stats().dropped.total()
    if not counter.messages and published is None:
        say(args, f"nothing came on {args.key} within {_WAIT:g} s; start zenwire bench --pub")
        return None
    args.size = counter.bytes // max(counter.messages, 1)
    told = _told("received", args, counter.messages, counter.seconds)
    for one in lost:
        say(args, one)
    return told | {"lost": dropped}


def _enough(
    args: argparse.Namespace,
    counter: _Counter,
    begin: float,
    published: asyncio.Future[dict[str, Any]] | None,
) -> bool:
    now = time.monotonic()
    if args.count is not None and counter.messages >= args.count:
        return True
    if published is not None:
        if not published.done():
            return False
        silent = now - max(counter.last, begin) > _END
        return silent or counter.messages >= int(published.result()["messages"])
    if not counter.messages:
        return now - begin > _WAIT
    return bool(now - counter.first > args.seconds or now - counter.last > args.seconds)


async def _both(args: argparse.Namespace) -> dict[str, Any] | None:
    """The subscriber here, the publisher in a process of its own: each has a core."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        where = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "zenwire", "bench", "--pub", "--until-eof", "-q", "-e", where]
    command += ["--no-multicast-scouting", "-k", args.key, "--size", str(args.size)]
    command += ["--seconds", str(args.seconds), "--priority", args.priority]
    command += ["--congestion-control", args.congestion_control, "--reliability", args.reliability]
    # It dials until this side listens.
    command += ["--cfg", "connect/timeout_ms:-1"]
    command += ["--express"] if args.express else []
    command += ["--count", str(args.count)] if args.count else []
    for setting in args.cfg:
        command += ["--cfg", setting]
    args.listen, args.no_multicast_scouting = [where], True
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    published = asyncio.ensure_future(_published(process))
    try:
        told = await _subscribe(args, published)
        sent = await published
        await process.communicate(b"")
    finally:
        published.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if told is None or not sent["messages"]:
        say(args, "the publisher did not run")
        return None
    told["side"] = "published and received"
    told["published_per_s"] = sent["messages_per_s"]
    told["lost"] = sent["messages"] - told["messages"]
    return told


async def _published(process: asyncio.subprocess.Process) -> dict[str, Any]:
    assert process.stdout is not None
    line = await process.stdout.readline()
    told: dict[str, Any] = json.loads(line) if line else {"messages": 0, "messages_per_s": 0.0}
    return told


class _Progress:
    """A line on stderr every second; one that is written over, on a terminal."""

    def __init__(self, args: argparse.Namespace, messages: Callable[[], int]) -> None:
        self._args = args
        self._messages = messages
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        if not self._args.quiet:
            self._task = asyncio.create_task(self._run())

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            if sys.stderr.isatty():
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    async def _run(self) -> None:
        before, then = self._messages(), time.monotonic()
        while True:
            await asyncio.sleep(1.0)
            count_, now = self._messages(), time.monotonic()
            text = f"{(count_ - before) / (now - then):,.0f} msg/s"
            before, then = count_, now
            if sys.stderr.isatty():
                print(f"\r{text}\x1b[K", end="", file=sys.stderr, flush=True)
            else:
                say(self._args, text)
