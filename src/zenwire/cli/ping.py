"""``zenwire ping``: how long a sample takes to another node and back."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.options import count, seconds, session_options
from zenwire.cli.publishing import matched
from zenwire.cli.running import (
    FAILED,
    LOST,
    OK,
    OUT_OF_TIME,
    Output,
    note,
    run_command,
    say,
    session_of,
)

if TYPE_CHECKING:
    import argparse

    from zenwire import aio

SUMMARY = "measure how long samples take to a zenwire pong (or z_pong) and back"
EXAMPLES: tuple[str, ...] = (
    "zenwire ping -e tcp/localhost:7447",
    "zenwire ping --size 1024 --count 1000 --summary",
    "zenwire ping --json",
)
PING: Final = "test/ping"
PONG: Final = "test/pong"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add how many, how large, and the keys."""
    parser.add_argument(
        "-n", "--count", type=count, default=100, metavar="N", help="so many (default: 100)"
    )
    parser.add_argument(
        "--size", type=int, default=64, metavar="BYTES", help="of each payload (default: 64)"
    )
    parser.add_argument(
        "--warmup", type=float, default=1.0, metavar="S", help="seconds before it counts (1)"
    )
    parser.add_argument(
        "--interval", type=float, default=0.0, metavar="S", help="seconds between two (0)"
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="S",
        help="how long to wait for somebody to answer, and for each answer (default: 10)",
    )
    parser.add_argument("--ping-key", default=PING, metavar="KEY", help=f"default: {PING}")
    parser.add_argument("--pong-key", default=PONG, metavar="KEY", help=f"default: {PONG}")
    parser.add_argument("--no-express", action="store_true", help="let samples wait for others")
    parser.add_argument("--summary", action="store_true", help="no line for each")
    parser.add_argument("--json", action="store_true", help="print the summary as a JSON object")
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Measure. Exit code 1: no answer came; 3: some did not; 124: nobody is there to answer."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    from zenwire import aio  # noqa: PLC0415 - slow to load, and not for --help

    output = Output()
    async with session_of(args) as session:
        trip = _Trip(max(args.size, 0))
        back = aio.Callback(trip.back, indirect=False)
        async with (
            session.declare_subscriber(args.pong_key, back),
            session.declare_publisher(
                args.ping_key,
                congestion_control=aio.CongestionControl.BLOCK,
                express=not args.no_express,
            ) as publisher,
        ):
            if not await matched(publisher, args.timeout):
                say(
                    args,
                    f"nobody subscribes to {args.ping_key}: start zenwire pong on the other side",
                )
                return OUT_OF_TIME
            note(args, f"warming up for {args.warmup:g} s")
            times = await _measured(args, publisher, trip, output)
    if not times:
        say(args, f"no answer on {args.pong_key} within {args.timeout:g} s")
        return FAILED
    told = summary(times, trip.sent, args.size)
    await output.write((json.dumps(told) if args.json else _line(told)) + "\n")
    return LOST if told["lost"] else OK


class _Trip:
    """One sample there and back. The answer is known by the number that it begins with."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.sent = 0
        self._expected = b""
        self._waiting: asyncio.Future[float] | None = None

    def back(self, sample: aio.Sample) -> None:
        now = time.perf_counter()
        waiting = self._waiting
        if waiting is not None and not waiting.done() and sample.payload == self._expected:
            waiting.set_result(now)

    async def go(self, publisher: aio.Publisher, limit: float) -> float | None:
        """Seconds, or None if the answer did not come in time."""
        self.sent += 1
        number = self.sent.to_bytes(8, "little")
        self._expected = number.ljust(self._size, b"\0")[: self._size]
        self._waiting = asyncio.get_running_loop().create_future()
        begin = time.perf_counter()
        await publisher.put(self._expected)
        try:
            async with asyncio.timeout(limit):
                return await self._waiting - begin
        except TimeoutError:
            return None


async def _measured(
    args: argparse.Namespace, publisher: aio.Publisher, trip: _Trip, output: Output
) -> list[float]:
    until = time.perf_counter() + args.warmup
    while time.perf_counter() < until:
        if await trip.go(publisher, args.timeout) is None:
            return []
    trip.sent = 0
    times: list[float] = []
    for number in range(args.count):
        took = await trip.go(publisher, args.timeout)
        if took is not None:
            times.append(took)
        if not args.summary and not args.json:
            shown = (
                "no answer" if took is None else f"rtt={took * 1e6:.0f}µs lat={took * 5e5:.0f}µs"
            )
            await output.write(f"{args.size} bytes: seq={number} {shown}\n")
        if args.interval > 0:
            await asyncio.sleep(args.interval)
    return times


def summary(times: list[float], sent: int, size: int) -> dict[str, Any]:
    """Microseconds there and back."""
    ordered = sorted(times)

    def part(share: float) -> float:
        return round(ordered[min(int(share * len(ordered)), len(ordered) - 1)] * 1e6, 1)

    return {
        "size": size,
        "sent": sent,
        "lost": sent - len(times),
        "rtt_min_us": part(0.0),
        "rtt_avg_us": round(statistics.fmean(ordered) * 1e6, 1),
        "rtt_p50_us": part(0.5),
        "rtt_p99_us": part(0.99),
        "rtt_max_us": part(1.0),
    }


def _line(told: dict[str, Any]) -> str:
    names = ("min", "avg", "p50", "p99", "max")
    numbers = "/".join(f"{told[f'rtt_{name}_us']:.0f}" for name in names)
    return (
        f"{told['sent']} sent, {told['lost']} lost, {told['size']} bytes: "
        f"rtt min/avg/p50/p99/max = {numbers} µs"
    )
