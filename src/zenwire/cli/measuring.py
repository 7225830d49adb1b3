"""What ``hz``, ``bw`` and ``delay`` have in common: a window of samples per key, told every second."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import count, key_options, seconds, session_options
from zenwire.cli.running import FAILED, LOST, OK, OUT_OF_TIME, Output, note, say, session_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from zenwire.cli.receiving import Arrival, Inbox

__all__ = ["Measured", "Window", "measure", "measuring_options", "spread"]

_KEYS_MAX: Final = 1_000
"""Keys with a window of their own; what comes on others is only counted."""

Told = dict[str, Any]


class Measured(NamedTuple):
    """One sample: when it came, how large it is, and how old it was, if it says when it was made."""

    at: float
    size: int
    age: float | None


class Window:
    """The last samples of a key."""

    def __init__(self, size: int) -> None:
        self.samples: deque[Measured] = deque(maxlen=size)
        self.total = 0
        self.new = 0

    def add(self, one: Measured) -> None:
        self.samples.append(one)
        self.total += 1
        self.new += 1


def measuring_options(parser: argparse.ArgumentParser, window: int) -> None:
    """Add what to look at, and how long."""
    key_options(parser, "what to look at", many=True)
    parser.add_argument(
        "-w",
        "--window",
        type=count,
        default=window,
        metavar="N",
        help=f"the last N samples of each key count (default: {window:,})",
    )
    parser.add_argument(
        "--every", type=seconds, default=1.0, metavar="S", help="seconds between two reports"
    )
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N samples")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="end after so many seconds")
    parser.add_argument("--jsonl", "--json", dest="json", action="store_true", help="JSON lines")
    session_options(parser)


async def measure(
    args: argparse.Namespace,
    tell: Callable[[Window], Told | None],
    lines: Callable[[Told], Iterable[str]],
) -> int:
    """Take samples, and tell of each key that has new ones. ``tell`` gives None for too few."""
    from zenwire.cli.receiving import losses_of, subscribed  # noqa: PLC0415 - slow to load

    output, told = Output(), 0
    windows: dict[str, Window] = {}
    async with session_of(args) as session, subscribed(session, args.key) as inbox:
        note(
            args,
            f"subscribed to {', '.join(args.key)}; this is what the receiving side sees: what was "
            "dropped, or held back, on the way is not in it",
        )
        taker = _Taker(windows, args.window, args.count)
        ending = asyncio.create_task(taker.run(inbox, args.timeout))
        try:
            over = False
            while not over:
                await asyncio.wait([ending], timeout=args.every)
                over = ending.done()
                told += await _report(args, windows, output, tell, lines)
            await ending
        finally:
            ending.cancel()
        lost = losses_of(session, inbox)
    if taker.beyond:
        say(args, f"{taker.beyond:,} samples on keys beyond the first {_KEYS_MAX:,} are not shown")
    if lost:
        say(args, "; ".join(lost))
    if args.count is not None and taker.taken < args.count:
        return OUT_OF_TIME
    if not told:
        what = f"{taker.taken:,} samples are too few" if taker.taken else "no samples came"
        say(args, f"{what}; zenwire doctor -k says why nothing comes")
        return FAILED
    return LOST if lost else OK


class _Taker:
    """Sorts samples into windows, until there are enough or the time is over."""

    def __init__(self, windows: dict[str, Window], size: int, wanted: int | None) -> None:
        self.taken = self.beyond = 0
        self._windows = windows
        self._size = size
        self._wanted = math.inf if wanted is None else wanted

    async def run(self, inbox: Inbox, limit: float | None) -> None:
        try:
            async with asyncio.timeout(limit):
                while self.taken < self._wanted:
                    for one in await inbox.take():
                        self._take(one)
        except TimeoutError:
            pass

    def _take(self, one: Arrival) -> None:
        if self.taken >= self._wanted:
            return
        self.taken += 1
        key = str(one.sample.key_expr)
        window = self._windows.get(key)
        if window is None:
            if len(self._windows) >= _KEYS_MAX:
                self.beyond += 1
                return
            window = self._windows[key] = Window(self._size)
        stamp = one.sample.timestamp
        age = None if stamp is None else (one.time_ns - stamp.get_time_as_ntp64().as_nanos()) / 1e9
        window.add(Measured(one.at, len(one.sample.payload), age))


async def _report(
    args: argparse.Namespace,
    windows: dict[str, Window],
    output: Output,
    tell: Callable[[Window], Told | None],
    lines: Callable[[Told], Iterable[str]],
) -> int:
    told = []
    for key, window in windows.items():
        if not window.new:
            continue
        found = tell(window)
        if found is None:
            continue
        window.new = 0
        if args.json:
            told.append(json_text({"key": key} | found))
        else:
            told += [escape(key), *lines(found)]
    if told:
        await output.write("\n".join(told) + "\n")
    return len(told)


def spread(values: list[float]) -> Told:
    """Mean, least, greatest and standard deviation, as ros2 has them."""
    return {
        "mean": statistics.fmean(values),
        "min": min(values),
        "max": max(values),
        "std_dev": statistics.pstdev(values),
    }
