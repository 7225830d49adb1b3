"""``zenwire hz``: how often samples come."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from zenwire.cli.measuring import Window, measure, measuring_options, spread
from zenwire.cli.running import run_command

if TYPE_CHECKING:
    import argparse

SUMMARY = "print how often samples come, per key"
EXAMPLES: tuple[str, ...] = (
    "zenwire hz -k demo/a",
    "zenwire hz -k 'fleet/**' --window 100 --timeout 10 --jsonl",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to look at, and how long."""
    measuring_options(parser, 10_000)


def run(args: argparse.Namespace) -> int:
    """Print rates. Exit code 1: nothing came twice; 3: some were lost; 124: too few."""
    return run_command(args, lambda args: measure(args, tell, _lines))


def tell(window: Window) -> dict[str, Any] | None:
    """The rate, and how even it is; None without two samples."""
    gaps = [after.at - before.at for before, after in pairwise(window.samples)]
    if not gaps or not sum(gaps):
        return None
    found = spread(gaps)
    return {
        "rate_hz": 1 / found["mean"],
        "min_s": found["min"],
        "max_s": found["max"],
        "std_dev_s": found["std_dev"],
        "window": len(gaps) + 1,
    }


def _lines(told: dict[str, Any]) -> list[str]:
    return [
        f"average rate: {told['rate_hz']:.3f}",
        (
            f"\tmin: {told['min_s']:.3f}s max: {told['max_s']:.3f}s "
            f"std dev: {told['std_dev_s']:.5f}s window: {told['window']}"
        ),
    ]
