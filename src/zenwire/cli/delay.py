"""``zenwire delay``: how old samples are when they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenwire.cli.measuring import Window, measure, measuring_options, spread
from zenwire.cli.running import note, run_command, say

if TYPE_CHECKING:
    import argparse

SUMMARY = "print how old samples are when they come, by their timestamps, per key"
EXAMPLES: tuple[str, ...] = (
    "zenwire delay -k demo/a",
    "zenwire delay -k 'fleet/**' --timeout 10 --jsonl",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to look at, and how long."""
    measuring_options(parser, 10_000)


def run(args: argparse.Namespace) -> int:
    """Print delays. Exit code 1: nothing came with a timestamp; 3: lost; 124: too few."""
    note(
        args,
        "two clocks are compared, that of whoever stamped a sample (its publisher, or the first "
        "router) and that of this machine: what they differ by is in every number",
    )
    bare, ahead = 0, False

    def told(window: Window) -> dict[str, Any] | None:
        nonlocal bare, ahead
        found = tell(window)
        bare += found is None
        ahead = ahead or (found is not None and found["min_s"] < 0)
        return found

    code = run_command(args, lambda args: measure(args, told, _lines))
    if ahead:
        say(args, "some samples come from the future: the clocks differ (NTP?)")
    if bare:
        say(
            args,
            "there were samples without a timestamp: set timestamping/enabled where they are "
            "published (zenwire put --timestamp), or pass them through a router",
        )
    return code


def tell(window: Window) -> dict[str, Any] | None:
    """The ages of samples; None if none says when it was made."""
    ages = [one.age for one in window.samples if one.age is not None]
    if not ages:
        return None
    found = spread(ages)
    return {f"{name}_s": value for name, value in found.items()} | {"window": len(ages)}


def _lines(told: dict[str, Any]) -> list[str]:
    return [
        f"average delay: {told['mean_s']:.6f}",
        (
            f"\tmin: {told['min_s']:.6f}s max: {told['max_s']:.6f}s "
            f"std dev: {told['std_dev_s']:.6f}s window: {told['window']}"
        ),
    ]
