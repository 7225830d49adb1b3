"""``zenwire get``: ask for values."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import count, seconds, session_options
from zenwire.cli.running import (
    FAILED,
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
from zenwire.cli.shown import json_of, text_of, value_of
from zenwire.cli.sub import format_options, shown_by

if TYPE_CHECKING:
    import argparse

    from zenwire import aio
    from zenwire.cli.sub import Shown

SUMMARY = "ask for values, and print the replies"
EXAMPLES: tuple[str, ...] = (
    "zenwire get -s demo/a",
    "zenwire get -s 'demo/**?_time=[now(-1h)..now()]' --consolidation none --jsonl",
    "zenwire get -s 'robot/arm/move?speed=2' -p '{\"x\": 1}' --encoding application/json",
    "zenwire get -s '@/*/router' --timeout 2 --format '{payload}'",
)
_TIMEOUT: Final = b"Timeout"
"""What a session puts into the error reply that ends a query which took too long."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to ask, whom and how long."""
    parser.add_argument(
        "-s", "--selector", required=True, metavar="SELECTOR", help="KEYEXPR or KEYEXPR?PARAMETERS"
    )
    parser.add_argument("-p", "--payload", metavar="TEXT", help="goes with the query")
    parser.add_argument("--encoding", metavar="NAME", help="of the payload")
    parser.add_argument("--attachment", metavar="TEXT", help="goes with the query")
    parser.add_argument(
        "-t",
        "--target",
        choices=["best_matching", "all", "all_complete"],
        default="best_matching",
        help="which queryables are asked (default: best_matching)",
    )
    parser.add_argument(
        "--consolidation",
        choices=["auto", "none", "monotonic", "latest"],
        default="auto",
        help="of several replies on one key: auto prints the latest, none prints all",
    )
    parser.add_argument(
        "--any-key", action="store_true", help="replies may have keys that do not match the query"
    )
    parser.add_argument(
        "-o", "--timeout", type=seconds, default=10.0, metavar="S", help="default: 10 seconds"
    )
    parser.add_argument("-n", "--count", type=count, metavar="N", help="end after N replies")
    format_options(parser, "a reply", "one JSON object per reply; one with `error` for an error")
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Ask. Exit code 1: no reply, or errors only; 124: not all have answered in time."""
    return run_command(args, _main)


async def _main(args: argparse.Namespace) -> int:
    from zenwire import aio  # noqa: PLC0415 - slow to load, and not for --help

    shown = shown_by(args)
    try:
        selector = aio.Selector(args.selector)
    except aio.KeyExprError as e:
        raise Wrong(f"-s: {e}") from None
    asked = _Asked(args, shown)
    async with session_of(args) as session:
        asked.ends = time.monotonic() + args.timeout
        replies = session.get(
            selector,
            target=aio.QueryTarget[args.target.upper()],
            consolidation=aio.ConsolidationMode[args.consolidation.upper()],
            accept_replies=aio.ReplyKeyExpr.ANY if args.any_key else None,
            timeout=args.timeout,
            payload=args.payload,
            encoding=args.encoding,
            attachment=args.attachment,
        )
        async with replies:
            async for reply in replies:
                await asked.take(reply)
                if args.count is not None and asked.values + asked.errors >= args.count:
                    break
        return asked.verdict(nobody=not session.info.transports())


class _Asked:
    """Prints replies, and says how that went. ``ends`` is when the query is out of time."""

    def __init__(self, args: argparse.Namespace, shown: Shown) -> None:
        self.values = self.errors = 0
        self.ends = float("inf")
        self._args = args
        self._shown = shown
        self._late = False
        self._output = Output()

    async def take(self, reply: aio.Reply) -> None:
        from zenwire.cli.receiving import Arrival  # noqa: PLC0415 - slow to load

        sample, error, now = reply.ok, reply.err, time.time_ns()
        if sample is not None:
            self.values += 1
            if self._args.json:
                line = json_of(sample, now, replier=_replier(reply))
                await self._output.write(f"{line}\n")
            else:
                await self._output.write(self._shown(Arrival(0.0, now, sample)))
        elif error is not None:
            if error.payload == _TIMEOUT and (reply.replier_id is None or self._over):
                self._late = True
                return
            self.errors += 1
            if self._args.json:
                await self._output.write(_error_line(reply, error) + "\n")
            else:
                text = text_of(error.payload.to_bytes(), str(error.encoding))
                say(self._args, f"error: {escape(text)}")

    @property
    def _over(self) -> bool:
        return time.monotonic() >= self.ends

    def verdict(self, *, nobody: bool) -> int:
        """The exit code, and the reason for it."""
        args = self._args
        told = f"{self.values:,} {'reply' if self.values == 1 else 'replies'}"
        if self.errors:
            told += f", {many(self.errors, 'error')}"
        nothing = not self.values and not self.errors
        # Where a router's clock was quicker than ours, its end of the query is all that comes.
        if self._late or (nothing and self._over):
            say(args, f"{told}; not all have answered within {args.timeout:g} s (--timeout)")
            return OUT_OF_TIME
        if self.values:
            note(args, told)
            return OK
        if nobody:
            say(args, "no reply: connected to nobody; give -e tcp/HOST:7447")
        elif nothing:
            say(args, f"no reply: nobody answers for {args.selector}; see zenwire doctor -k")
        return FAILED


def _replier(reply: aio.Reply) -> dict[str, Any] | None:
    who = reply.replier_id
    return None if who is None else {"zid": str(who.zid), "eid": who.eid}


def _error_line(reply: aio.Reply, error: aio.ReplyError) -> str:
    raw, encoding = error.payload.to_bytes(), str(error.encoding)
    text = value_of(raw, encoding)
    told: dict[str, Any] = {"error": raw.hex() if text is None else text}
    told["error_is"] = "hex" if text is None else "text"
    return json_text(told | {"encoding": encoding, "replier": _replier(reply)})
