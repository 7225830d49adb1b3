"""``zenwire sub``: what is published on keys."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from zenwire.cli.options import count, key_options, seconds, session_options
from zenwire.cli.running import (
    FAILED,
    LOST,
    OK,
    OUT_OF_TIME,
    Output,
    Wrong,
    many,
    note,
    run_command,
    say,
    session_of,
)
from zenwire.cli.shown import FIELDS, TEMPLATE, Template, TemplateError, json_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from zenwire.cli.receiving import Arrival, Inbox

    Shown = Callable[[Arrival], str] | Callable[[Arrival], bytes]

SUMMARY = "print what is published on keys"
EXAMPLES: tuple[str, ...] = (
    "zenwire sub -k 'demo/**'",
    "zenwire sub -k 'fleet/*/gps' -k fleet/clock --jsonl | jq .payload",
    "zenwire sub -k demo/a --count 1 --timeout 10 --format '{timestamp} {payload}'",
    "zenwire sub -k camera/front --count 1 --raw > front.jpg",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to subscribe to, when to end, and how to print."""
    key_options(parser, "what to subscribe to", many=True)
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N samples")
    parser.add_argument("--timeout", type=seconds, metavar="S", help="end after so many seconds")
    format_options(
        parser,
        "a sample",
        "one JSON object per line; payload_is says whether the payload is text or base64",
    )
    session_options(parser)


def format_options(parser: argparse.ArgumentParser, one: str, as_json: str) -> None:
    """Add how samples are printed; `shown_by` reads it."""
    parser.add_argument(
        "-f",
        "--format",
        metavar="TEMPLATE",
        help=f"how to print {one}; fields: {', '.join(FIELDS)} (default: {TEMPLATE!r}); control "
        "characters in fields are escaped",
    )
    parser.add_argument("--jsonl", "--json", dest="json", action="store_true", help=as_json)
    parser.add_argument(
        "--raw",
        action="store_true",
        help="the bytes of payloads, and nothing else; with --format, its fields as they were sent",
    )


def run(args: argparse.Namespace) -> int:
    """Print samples. Exit code 1: none came; 3: some were lost; 124: fewer than ``--count``."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    from zenwire.cli.receiving import losses_of, subscribed  # noqa: PLC0415 - slow to load

    shown = shown_by(args)
    output = Output()
    tally = Tally(args.count)
    async with session_of(args) as session, subscribed(session, args.key) as inbox:
        note(args, f"subscribed to {', '.join(args.key)}")
        try:
            await tally.take(inbox, output, shown, args.timeout)
        finally:
            lost = losses_of(session, inbox)
            told = "; ".join([many(tally.taken, "sample"), *lost])
            (say if lost else note)(args, told)
    return tally.code(bool(lost))


def shown_by(args: argparse.Namespace) -> Shown:
    """How a sample is printed. Raises Wrong."""
    if args.json and (args.raw or args.format is not None):
        raise Wrong("--jsonl is not allowed with --raw or --format")
    if args.json:
        return lambda one: f"{json_of(one.sample, one.time_ns)}\n"
    if args.raw and args.format is None:
        return lambda one: one.sample.payload.to_bytes()
    try:
        template = Template(TEMPLATE if args.format is None else args.format, raw=args.raw)
    except TemplateError as e:
        raise Wrong(f"--format: {e}") from None
    # As bytes, which are not escaped once more: what the template itself says is meant.
    return lambda one: f"{template.show(one.sample, one.time_ns)}\n".encode()


def joined(parts: Sequence[str | bytes]) -> str | bytes:
    """All in one: they are of one kind."""
    texts = [part for part in parts if isinstance(part, str)]
    return "".join(texts) if texts else b"".join(p for p in parts if isinstance(p, bytes))


class Tally:
    """Prints so many samples, and says how that went."""

    def __init__(self, wanted: int | None) -> None:
        self.wanted = wanted
        self.taken = 0

    async def take(
        self,
        inbox: Inbox,
        output: Output,
        shown: Shown,
        limit: float | None,
    ) -> None:
        """Until there are enough, or the time is over."""
        try:
            async with asyncio.timeout(limit):
                while self.wanted is None or self.taken < self.wanted:
                    arrivals = await inbox.take()
                    if self.wanted is not None:
                        arrivals = arrivals[: self.wanted - self.taken]
                    parts = [shown(one) for one in arrivals]
                    await output.write(joined(parts))
                    self.taken += len(arrivals)
        except TimeoutError:
            pass

    def code(self, lost: bool) -> int:
        """The exit code."""
        if self.wanted is not None and self.taken < self.wanted:
            return OUT_OF_TIME
        if lost:
            return LOST
        return OK if self.taken else FAILED
