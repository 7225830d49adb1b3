"""Key expressions: ours against eclipse-zenoh's, and lookups in trees of growing size.

Run `python benchmarks/bench_keyexpr.py [--json] [--rounds N]`. It takes about half a minute.

All contenders take turns within each round, and each is given its best round, so that a busy
machine harms them alike. Ratios are what to compare; times hold for this machine only.
A tree is compared with a scan by eclipse-zenoh, which has no tree in its Python package.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import resource
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import TypedDict

import zenoh

from zenwire.keyexpr import KeyExpr, KeyExprTree, intersects

MIXED = [
    ("demo/example/a", "demo/example/a"),
    ("demo/example/a", "demo/example/b"),
    ("demo/**", "demo/example/zenoh/python"),
    ("other/**", "demo/example/zenoh/python"),
    ("demo/*/temperature", "demo/room1/temperature"),
    ("demo/*/temperature", "demo/room1/humidity"),
    ("**/temperature", "demo/floor/room/temperature"),
    ("demo/**/room/*", "demo/floor/2/room/7"),
    ("demo/room$*/temperature", "demo/room17/temperature"),
    ("demo/*/a", "*/x/a"),
    ("demo/**/a", "**/x/a"),
    ("@/*/router/**", "@/1f/router/linkstate/routers"),
]
PLAIN = [
    ("fleet/*/sensor/temperature", "fleet/robot17/sensor/temperature"),
    ("fleet/**", "fleet/robot17/sensor/temperature"),
    ("fleet/**/temperature", "fleet/robot17/sensor/temperature"),
    ("depot/**", "fleet/robot17/sensor/temperature"),
]
SIZES = (10_000, 100_000, 1_000_000)
SENSORS = 20
LOOKUPS = 500


class Result(TypedDict):
    machine: dict[str, str]
    intersects_ns: dict[str, dict[str, float]]
    tree: list[dict[str, float]]


def best(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Seconds of the best run of each contender; they take turns."""
    result = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            start = time.perf_counter()
            run()
            result[name] = min(result[name], time.perf_counter() - start)
    return result


def pairs(rows: list[tuple[str, str]], rounds: int) -> dict[str, float]:
    """Nanoseconds per question whether a pair intersects."""
    repeat = range(400)
    mine = [(KeyExpr(a), KeyExpr(b)) for a, b in rows]
    theirs = [(zenoh.KeyExpr(a), zenoh.KeyExpr(b)) for a, b in rows]
    assert [a.intersects(b) for a, b in mine] == [a.intersects(b) for a, b in theirs]
    contenders: dict[str, Callable[[], object]] = {
        "zenwire intersects(str, str)": lambda: [intersects(a, b) for _ in repeat for a, b in rows],
        "zenwire KeyExpr, pre-built": lambda: [a.intersects(b) for _ in repeat for a, b in mine],
        "zenwire KeyExpr, built each time": lambda: [
            KeyExpr(a).intersects(KeyExpr(b)) for _ in repeat for a, b in rows
        ],
        "eclipse KeyExpr, pre-built": lambda: [a.intersects(b) for _ in repeat for a, b in theirs],
        "eclipse KeyExpr, built each time": lambda: [
            zenoh.KeyExpr(a).intersects(zenoh.KeyExpr(b)) for _ in repeat for a, b in rows
        ],
    }
    count = len(repeat) * len(rows)
    return {name: 1e9 * t / count for name, t in best(contenders, rounds).items()}


def subscriptions(count: int) -> Iterator[str]:
    """Distinct expressions of a fleet: 20 for each robot, of which four are wild."""
    yield from ("**", "fleet/*/alarm", "fleet/**/state", "fleet/$*7/alarm")
    made = 4
    robot = 0
    while made < count:
        base = f"fleet/robot{robot}"
        own = [f"{base}/**", f"{base}/*/temperature", f"{base}/sensor$*/state", f"{base}/**/alarm"]
        own += [f"{base}/sensor{s}/temperature" for s in range(SENSORS - len(own))]
        yield from own[: count - made]
        made += SENSORS
        robot += 1


def peak_memory() -> float:
    """The largest size of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def tree(size: int, rounds: int) -> dict[str, float]:
    """Build a tree of this size, look keys up in it, and scan the same expressions for them."""
    rng = random.Random(size)
    stored = list(subscriptions(size))
    held: KeyExprTree[int] = KeyExprTree()
    start = time.perf_counter()
    for value, key in enumerate(stored):
        held.insert(key, value)
    inserting = time.perf_counter() - start
    robots = [rng.randrange(size // SENSORS) for _ in range(LOOKUPS)]
    plain = [f"fleet/robot{r}/sensor{rng.randrange(SENSORS)}/temperature" for r in robots]
    wild = [f"fleet/robot{r}/*/temperature" for r in robots]
    miss = [f"depot/robot{r}/temperature" for r in robots]

    theirs = [zenoh.KeyExpr(key) for key in stored]
    query = zenoh.KeyExpr(plain[0])
    scan = [str(k) for k in theirs if k.intersects(query)]
    assert sorted(scan) == sorted(key for key, _ in held.intersecting(plain[0]))

    seconds = best(
        {
            "plain": lambda: [list(held.intersecting(key)) for key in plain],
            "wild": lambda: [list(held.intersecting(key)) for key in wild],
            "miss": lambda: [list(held.intersecting(key)) for key in miss],
            "get": lambda: [held.get(key) for key in plain],
            "scan": lambda: [k for k in theirs if k.intersects(query)],
        },
        # A scan of a million takes a good part of a second, so there are fewer rounds.
        max(rounds // 3, 1) if size > 100_000 else rounds,
    )
    scanning = seconds.pop("scan")
    result = {"expressions": size, "insert_us": 1e6 * inserting / size, "scan_us": 1e6 * scanning}
    for name, keys in (("plain", plain), ("wild", wild), ("miss", miss)):
        found = sum(len(list(held.intersecting(key))) for key in keys)
        result[f"{name}_us"] = 1e6 * seconds[name] / LOOKUPS
        result[f"{name}_matches"] = found / LOOKUPS
    result["get_us"] = 1e6 * seconds["get"] / LOOKUPS
    result["scan_ratio"] = result["scan_us"] / result["plain_us"]
    return result


def measure(rounds: int) -> Result:
    return {
        "machine": {
            "python": platform.python_version(),
            "system": platform.platform(),
            "eclipse-zenoh": version("eclipse-zenoh"),
        },
        "intersects_ns": {
            "12 mixed pairs": pairs(MIXED, rounds),
            "plain against wild": pairs(PLAIN, rounds),
        },
        "tree": [tree(size, rounds) for size in SIZES],
    }


def report(result: Result) -> None:
    print(", ".join(f"{name} {value}" for name, value in result["machine"].items()))
    columns = result["intersects_ns"]
    print("\nintersects(), ns per pair (and times the pre-built eclipse KeyExpr)")
    print(f"{'':34}" + "".join(f"{name:>26}" for name in columns))
    for name in columns["12 mixed pairs"]:
        cells = [(c[name], c[name] / c["eclipse KeyExpr, pre-built"]) for c in columns.values()]
        print(f"{name:34}" + "".join(f"{ns:>18.0f} ({ratio:4.1f})" for ns, ratio in cells))
    print("\nlookups, us per key (and stored expressions found)")
    rows = {
        "expressions": "{expressions:,.0f}",
        "plain key": "{plain_us:.1f} ({plain_matches:.1f})",
        "wild key": "{wild_us:.1f} ({wild_matches:.1f})",
        "plain key, few found": "{miss_us:.1f} ({miss_matches:.1f})",
        "get(key)": "{get_us:.1f}",
        "scan with eclipse KeyExpr": "{scan_us:,.0f}",
        "scan / plain key": "{scan_ratio:,.0f} x",
        "insert": "{insert_us:.1f}",
    }
    for name, form in rows.items():
        print(f"{name:34}" + "".join(f"{form.format(**row):>18}" for row in result["tree"]))
    print(f"peak memory of this process: {peak_memory():,.0f} MB")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each comparison")
    arguments = parser.parse_args(argv)
    result = measure(arguments.rounds)
    if arguments.json:
        print(json.dumps(result, indent=2))
    else:
        report(result)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
