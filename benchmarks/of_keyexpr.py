"""The numbers of ``bench_keyexpr`` as results, for the common table."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import bench_keyexpr
from benchmarks.report import Result, progress

__all__ = ["run"]

HOW = ("pre-built", "built each time")


def run(quick: bool) -> list[Result]:
    results: list[Result] = []
    rounds = 1 if quick else 15
    for case, rows in (("12 mixed pairs", bench_keyexpr.MIXED), ("wild", bench_keyexpr.PLAIN)):
        progress(f"keyexpr: {case}")
        results += _pairs(case, bench_keyexpr.pairs(rows, rounds))
    for size in bench_keyexpr.SIZES[: 1 if quick else None]:
        progress(f"keyexpr: a tree of {size:,} expressions")
        results.append(_lookup(bench_keyexpr.tree(size, rounds)))
    return results


def _pairs(case: str, ns: dict[str, float]) -> Iterator[Result]:
    for how in HOW:
        ours, theirs = ns[f"zenwire KeyExpr, {how}"], ns[f"eclipse KeyExpr, {how}"]
        label = f"intersects, {how}"
        yield Result("keyexpr", case, label, ours / 1e9, "question", "eclipse-zenoh", theirs / 1e9)


def _lookup(row: dict[str, float]) -> Result:
    return Result(
        "keyexpr",
        f"{row['expressions']:,.0f} expressions",
        "lookup in tree",
        row["plain_us"] / 1e6,
        "question",
        "eclipse-zenoh, one by one",
        row["scan_us"] / 1e6,
    )
