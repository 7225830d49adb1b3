"""``zenwire bw``: how many bytes of payload come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zenwire.cli.measuring import Window, measure, measuring_options
from zenwire.cli.running import run_command

if TYPE_CHECKING:
    import argparse

SUMMARY = "print how many bytes of payload come, per key"
EXAMPLES: tuple[str, ...] = (
    "zenwire bw -k camera/front",
    "zenwire bw -k 'fleet/**' --timeout 10 --jsonl",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to look at, and how long."""
    measuring_options(parser, 100)


def run(args: argparse.Namespace) -> int:
    """Print bandwidths. Exit code 1: nothing came twice; 3: some were lost; 124: too few."""
    return run_command(args, lambda args: measure(args, tell, _lines))


def tell(window: Window) -> dict[str, Any] | None:
    """Bytes in a second, and the sizes; None without two samples."""
    samples = window.samples
    passed = samples[-1].at - samples[0].at
    if not passed:
        return None
    sizes = [one.size for one in samples]
    return {
        # What came with the first one took its time before the window.
        "bytes_per_s": sum(sizes[1:]) / passed,
        "mean_bytes": sum(sizes) / len(sizes),
        "min_bytes": min(sizes),
        "max_bytes": max(sizes),
        "window": len(sizes),
    }


def _lines(told: dict[str, Any]) -> list[str]:
    mean, least, most = (_bytes(told[f"{name}_bytes"]) for name in ("mean", "min", "max"))
    return [
        f"{_bytes(told['bytes_per_s'])}/s from {told['window']} messages",
        f"\tMessage size mean: {mean} min: {least} max: {most}",
    ]


def _bytes(size: float) -> str:
    """As ros2 writes it: thousands, and two places."""
    if size < 1_000:
        return f"{size:.0f} B"
    if size < 1_000_000:
        return f"{size / 1_000:.2f} KB"
    return f"{size / 1_000_000:.2f} MB"
