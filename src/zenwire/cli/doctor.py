"""``zenwire doctor``: finds out why nothing is received."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final

from zenwire.cli.escaping import escape, json_text
from zenwire.cli.options import config_of, key_options, seconds, session_options
from zenwire.cli.running import FAILED, OK, Output, note, run_command

if TYPE_CHECKING:
    import argparse

    from zenwire.cli.doctor_reach import Check
    from zenwire.node.config import Config

SUMMARY = "find out why nothing is received: what was reached, agreed, declared, matched, filtered"
EXAMPLES: tuple[str, ...] = (
    "zenwire doctor -e tcp/localhost:7447 -k 'demo/**'",
    "zenwire doctor -k chatter --timeout 10",
    "zenwire doctor -c zenoh.json5 -k 'fleet/*/gps' --json",
)
_MARKS: Final = {"ok": "✓", "bad": "✗", "warn": "!", "info": " "}
_PLAIN: Final = {"ok": "ok", "bad": "BAD", "warn": "!", "info": " "}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what should be received, and how long to listen."""
    key_options(parser, "what should be received", many=True, default="**")
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=3.0,
        metavar="S",
        help="how long to listen (default: 3; more, if it is published less often)",
    )
    parser.add_argument(
        "--narrow",
        action="store_true",
        help="do not listen to all keys for near misses; for networks with much traffic",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    session_options(parser)


def run(args: argparse.Namespace) -> int:
    """Look. Exit code 0: something comes, or would if it were published; 1: it does not."""
    return run_command(args, _main)


class _Told:
    """Findings as they are made: printed at once, or kept for one JSON object."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.checks: list[Check] = []
        self._output = Output()
        self._json = args.json
        encoding = (sys.stdout.encoding or "").lower()
        self._marks = _MARKS if "utf" in encoding else _PLAIN

    async def add(self, *checks: Check) -> None:
        self.checks += checks
        if not self._json:
            await self._output.write("".join(map(self._line, checks)))

    def _line(self, check: Check) -> str:
        hint = f"\n    try: {escape(check.hint)}" if check.hint else ""
        return f"{self._marks[check.mark]} {escape(check.text)}{hint}\n"

    async def end(self, verdict: str, code: int) -> int:
        if self._json:
            told = {"verdict": verdict, "ok": code == OK}
            checks = [check._asdict() for check in self.checks]
            await self._output.write(json_text(told | {"checks": checks}, indent=1) + "\n")
        else:
            await self._output.write(f"\n{escape(verdict)}\n")
        return code


async def _main(args: argparse.Namespace) -> int:
    from zenwire.cli import doctor_listen as listening  # noqa: PLC0415 - slow to load
    from zenwire.cli.doctor_reach import Check  # noqa: PLC0415 - the same

    told = _Told(args)
    wanted, keys = listening.wanted_keys(args.key or ["**"])
    await told.add(*keys)
    if not wanted:
        return await told.end("What is subscribed to is no key expression.", FAILED)
    config = config_of(args)
    mode = config.effective.mode.name.lower()
    namespace = config.effective.settings.namespace
    inside = f", below the namespace {namespace}" if namespace else ""
    await told.add(Check("config", "info", f"as a {mode}{inside}"))
    await told.add(*(Check("config", "warn", one) for one in config.effective.notices))

    reached = await _reached(args, told, config)
    if reached is None:
        return await told.end("No endpoint leads to a Zenoh node: nothing can come.", FAILED)
    note(args, f"listening for {args.timeout:g} s")
    heard = await listening.listen(config, wanted, args.timeout, wide=not args.narrow)
    await told.add(*heard.checks)
    if not heard.connected:
        return await told.end("Connected to nobody: nothing can come.", FAILED)
    if not heard.samples and mode == "peer" and reached:
        # A router does not pass on between peers: those are to reach each other by themselves.
        second = await listening.as_client_too(config, reached, wanted, args.timeout)
        if second is not None:
            await told.add(second)
            return await told.end("As a client it comes, as a peer it does not.", FAILED)
    await told.add(*heard.conclusions())
    verdict, good = heard.verdict()
    return await told.end(verdict, OK if good else FAILED)


async def _reached(args: argparse.Namespace, told: _Told, config: Config) -> list[str] | None:
    """Endpoints that lead to a node; None if there are some, and none does."""
    from zenwire.cli.doctor_reach import reach, scouted  # noqa: PLC0415 - slow to load

    held = config.effective
    endpoints = [str(one) for group in held.connect.endpoints for one in group.locators]
    checks = await asyncio.gather(*(reach(config, one) for one in endpoints))
    await told.add(*checks)
    found = [one for one, check in zip(endpoints, checks, strict=True) if check.mark == "ok"]
    others = False
    if held.scouting.multicast.enabled and not found:
        scout = await scouted(config, min(args.timeout, 3.0))
        await told.add(scout)
        others = scout.mark == "ok" and held.mode.name == "PEER"
    return found if found or others or not endpoints else None
