"""Kill the recorder, the driver and executors at random moments, and look what became of the rows.

    python -m tests.spark.kills --rounds 20 --seed 7

Publishers of the reference number their samples: advanced ones with caches of several sizes, ones
that number by hand, and ones whose number is in the payload alone. A recorder writes a spool,
``zenwire ingest`` makes tables of it. In each round one process (or all of a command) is killed,
and started again where it does not start again by itself. At the end

- every row of the spool is in ``samples`` once and unchanged, every row of its losses in ``losses``;
- ``latest`` and ``key_stats`` are those of these rows;
- every number of a source is a row once, or stands in ``losses``;
- where a number of a payload is missing, ``losses`` says that something is.

The seed decides whom and when; what that meets is up to the machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from tests.interop.exchange import node_settings
from tests.ports import free_port
from zenwire.columns.samples import SAMPLES
from zenwire.record.hole import NAME as HOLE
from zenwire.spool import LOSSES, Spool
from zenwire.spool.inspection import verify

__all__ = ["CLUSTER", "HERE", "Kills", "check", "check_spool", "chosen", "descendants"]

CACHES = {"k/cache/50": 50, "k/cache/500": 500, "k/cache/50000": 50_000}
NUMBERED = ("k/number/a", "k/number/b")
PLAIN = ("k/plain/a", "k/plain/b")
HERE = "local[2,4]"
CLUSTER = "local-cluster[2,1,1024]"
_TURN = 0.04
"""Seconds between two handfuls of samples."""
_EACH = 4
_PATIENCE = 300.0
_ENDED = 5
"""Times that ingest may end by itself, with an error."""
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - a program


# The publishers: a process of its own.


def publish(endpoint: str) -> None:
    """Until standard input ends; then says how many samples each key had, and waits once more."""
    import zenoh
    import zenoh.ext

    ext: Any = zenoh.ext  # its stubs are not complete
    block = zenoh.CongestionControl.BLOCK
    config = zenoh.Config.from_json5(json.dumps(node_settings("router", listen=endpoint)))
    with zenoh.open(config) as router:
        puts: dict[str, Callable[[int], None]] = {}
        for key, size in CACHES.items():
            cached = ext.declare_advanced_publisher(
                router,
                key,
                cache=ext.CacheConfig(max_samples=size),
                sample_miss_detection=ext.MissDetectionConfig(),
                publisher_detection=True,
                congestion_control=block,
            )
            puts[key] = lambda n, p=cached: p.put(_payload(n))  # type: ignore[misc] # of its own
        for key in (*NUMBERED, *PLAIN):
            declared: Any = router.declare_publisher(key, congestion_control=block)

            def put(n: int, p: Any = declared, numbered: bool = key in NUMBERED) -> None:
                info = zenoh.SourceInfo(p.id, n) if numbered else None
                p.put(_payload(n), source_info=info)

            puts[key] = put
        os.set_blocking(sys.stdin.fileno(), False)
        sent = 0
        tell("ready")
        while sys.stdin.read(1) != ".":
            for _ in range(_EACH):
                for each in puts.values():
                    each(sent)
                sent += 1
            time.sleep(_TURN)
        tell(str(sent))
        os.set_blocking(sys.stdin.fileno(), True)
        sys.stdin.read(1)


def _payload(n: int) -> bytes:
    return n.to_bytes(8, "little") + bytes(n % 64)


# Processes.


def descendants(pid: int) -> list[int]:
    """All processes below it."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *descendants(child)]
    return found


def _is(pid: int, *words: str) -> bool:
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False
    return all(word in said for word in words)


def _kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait_for(true: Callable[[], bool], what: str, seconds: float = _PATIENCE) -> None:
    ends = time.monotonic() + seconds
    while not true():
        if time.monotonic() > ends:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.05)


@dataclass
class Kills:
    """The publishers, the recorder and ingest of one run, and who is killed."""

    home: Path
    seed: int
    told: Callable[[str], None] = tell
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.spool, self.lake = self.home / "spool", self.home / "lake"
        self._chance = random.Random(self.seed)
        self._endpoint = f"tcp/127.0.0.1:{free_port()}"
        self._log = (self.home / "log").open("a")
        self._recorder: subprocess.Popen[str] | None = None
        self._ingest: subprocess.Popen[str] | None = None
        self._master = HERE
        self._started = 0.0

    # Who runs.

    @contextlib.contextmanager
    def _publishers(self) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "tests.spark.kills", "--publish", self._endpoint]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            try:
                assert child.stdout is not None
                assert child.stdout.readline() == "ready\n"
                yield child
            finally:
                child.kill()

    def _command(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "zenwire", *words],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )

    def record(self) -> None:
        options = ("-m", "client", "-e", self._endpoint, "--cfg", "connect/timeout_ms:-1")
        self._recorder = self._command("record", *options, "-k", "k/**", "--to", str(self.spool))

    def ingest(self, *more: str) -> None:
        self._started = time.time()
        conf = {
            "spark.driver.memory": "1g",
            "spark.driver.defaultJavaOptions": _QUICK,
            "spark.executor.defaultJavaOptions": _QUICK,
        }
        said = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
        where = ("--spool", str(self.spool), "--lake", str(self.lake), "--master", self._master)
        self._ingest = self._command(
            "ingest", "-vv", *where, *said, *(more or ("--interval", "0.5", "--max-rows", "40000"))
        )

    def _of_ingest(self, *words: str) -> list[int]:
        if self._ingest is None:
            return []
        return [pid for pid in descendants(self._ingest.pid) if _is(pid, *words)]

    def _committed(self) -> tuple[int, float]:
        """Version of the table after its last commit, and the time of that commit."""
        with contextlib.suppress(OSError, ValueError):
            last = max((self.lake / "samples" / "_delta_log").glob("*.json"))
            # Version 0 makes the table.
            return int(last.stem), last.stat().st_mtime if int(last.stem) else 0.0
        return -1, 0.0

    def _at_work(self) -> bool:
        assert self._ingest is not None
        if self._ingest.poll() is not None:
            # Spark gives up by itself where a machine is so busy that its Python does not answer.
            self.tally["ended"] += 1
            said = f"ingest ended with {self._ingest.returncode}: {self.home / 'log'}"
            if self._ingest.returncode != 1 or self.tally["ended"] > _ENDED:
                raise RuntimeError(said)
            self.told(said)
            self.ingest()
        return self._committed()[1] > self._started

    def again(self) -> int:
        """Times that ingest had Spark try again."""
        return (self.home / "log").read_text().count("; retry ")

    def _rows(self) -> int:
        try:
            return Spool.open(self.spool).samples.latest()
        except Exception:  # noqa: BLE001 - there is none yet
            return 0

    # Who dies.

    def _kill_recorder(self) -> None:
        """Perhaps several times: while it asks for what it missed, too."""
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            assert self._recorder is not None
            rows = self._rows()
            self._recorder.kill()
            self._recorder.wait()
            time.sleep(self._chance.random())
            self.record()
            wait_for(lambda: self._rows() > rows, "rows in the spool")  # noqa: B023 - at once
            time.sleep(1.5 * self._chance.random() ** 2)

    def _kill_driver(self) -> None:
        """All of it: Python, Java, and the Python workers."""
        assert self._ingest is not None
        _kill(self._ingest.pid, *descendants(self._ingest.pid))
        self._ingest.wait()
        self.ingest()

    def _kill_python(self) -> None:
        """The driver's Python alone: Java notices later, and its tasks go on until then."""
        assert self._ingest is not None
        self._ingest.kill()
        self._ingest.wait()
        self.ingest()

    def _kill_one(self, *words: str) -> None:
        wait_for(lambda: bool(self._of_ingest(*words)), f"a process of {words[0]}")
        _kill(self._chance.choice(self._of_ingest(*words)))

    def _kill_worker(self) -> None:
        self._kill_one("pyspark.daemon")

    def _kill_executor(self) -> None:
        self._kill_one("CoarseGrainedExecutorBackend", "java")

    def _round(self, number: int, victim: str) -> None:
        if victim in ("worker", "executor") or self._chance.random() < 0.7:
            wait_for(self._at_work, "a micro-batch")
        # Else also while Spark starts, or completes what the one before had begun.
        before, rows = self._committed()[0], self._rows()
        time.sleep(4 * self._chance.random())
        self.tally[victim] += 1
        getattr(self, f"_kill_{victim}")()
        self.told(f"round {number}: {victim}; micro-batch {before}, {rows} rows in the spool")
        wait_for(lambda: self._rows() > rows, "rows in the spool")
        if victim in ("worker", "executor"):
            wait_for(lambda: self._committed()[0] > before and self._at_work(), "a micro-batch")

    # All of it.

    def run(self, here: Sequence[str], cluster: Sequence[str] = ()) -> dict[str, int]:
        """Victims, of a driver with executors in it and of one with some beside it."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._log.close)
            stack.callback(self._end)
            publishers = stack.enter_context(self._publishers())
            self.record()
            wait_for(lambda: self._rows() > 0, "rows in the spool")
            self.ingest()
            number = 0
            for victims, master in ((here, HERE), (cluster, CLUSTER)):
                if victims and master != self._master:
                    self._stop_ingest()
                    self._master = master
                    self.ingest()
                for victim in victims:
                    number += 1
                    self._round(number, victim)
            sent = self._finish(publishers)
            self._stop_ingest()
            self._master = HERE
            self._ingest_rest()
        return dict.fromkeys((*CACHES, *NUMBERED, *PLAIN), sent)

    def _ingest_rest(self) -> None:
        """What is in the spool; again, if Spark gives up by itself."""
        while True:
            self.ingest("--once")
            assert self._ingest is not None
            code = self._ingest.wait(1200)
            if code in (0, 3):
                return
            self.tally["ended"] += 1
            said = f"ingest --once ended with {code}: {self.home / 'log'}"
            assert code == 1 and self.tally["ended"] <= _ENDED, said  # noqa: PT018 - one of both
            self.told(said)

    def run_recorder(self, rounds: int) -> dict[str, int]:
        """Without Spark: the recorder alone is killed."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._log.close)
            stack.callback(self._end)
            publishers = stack.enter_context(self._publishers())
            self.record()
            wait_for(lambda: self._rows() > 0, "rows in the spool")
            for _ in range(rounds):
                time.sleep(self._chance.random())
                self._kill_recorder()
            sent = self._finish(publishers)
        return dict.fromkeys((*CACHES, *NUMBERED, *PLAIN), sent)

    def _finish(self, publishers: subprocess.Popen[str]) -> int:
        """The publishers stop, and what they have sent is in the spool."""
        assert publishers.stdin is not None
        assert publishers.stdout is not None
        publishers.stdin.write(".")
        publishers.stdin.flush()
        sent = int(publishers.stdout.readline())
        last = _payload(sent - 1)
        want = {*CACHES, *NUMBERED, *PLAIN}

        def there() -> bool:
            table = rows_of(self.spool).filter(ds.field("payload") == last)
            return want <= {*table.column("key").to_pylist()}

        # The last one may have been sent while nobody listened: only a cache has it then.
        with contextlib.suppress(TimeoutError):
            wait_for(there, "the last rows", 20)
        # A recorder that has just begun asks for histories.
        wait_for(lambda: not (self.spool / HOLE).exists(), "histories")
        assert self._recorder is not None
        self._recorder.send_signal(signal.SIGTERM)
        assert self._recorder.wait(60) == 143
        publishers.stdin.write(".")
        publishers.stdin.close()
        return sent

    def _stop_ingest(self) -> None:
        assert self._ingest is not None
        wait_for(self._at_work, "a micro-batch")
        self._ingest.send_signal(signal.SIGTERM)
        code = self._ingest.wait(_PATIENCE)
        assert code == 143, f"ingest ended with {code}: {self.home / 'log'}"

    def _end(self) -> None:
        for child in (self._recorder, self._ingest):
            if child is not None and child.poll() is None:
                _kill(child.pid, *descendants(child.pid))
                child.wait()


# What must be true.


def rows_of(spool: Path) -> pa.Table:
    """``samples`` of a spool, with offsets."""
    return _read(spool, "samples", SAMPLES)


def losses_of(spool: Path) -> pa.Table:
    return _read(spool, "losses", LOSSES)


def _read(spool: Path, log: str, schema: pa.Schema) -> pa.Table:
    reader = getattr(Spool.open(spool), log)
    found = [*reader.read(reader.earliest(), reader.latest())]
    table = pa.Table.from_batches([rows.batch for rows in found], schema)
    numbers = [n for rows in found for n in range(rows.first, rows.first + rows.batch.num_rows)]
    return table.append_column("number", pa.array(numbers, pa.int64()))


def _of_lake(lake: Path, table: str, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    found = DeltaTable(str(lake / table)).to_pyarrow_table(columns=[*columns])
    return sorted(zip(*(found.column(name).to_pylist() for name in columns), strict=True))


def check(spool: Path, lake: Path, sent: dict[str, int]) -> dict[str, int]:
    """Raises AssertionError. Gives what there was to see."""
    check_tables(rows_of(spool), losses_of(spool), lake)
    return check_spool(spool, sent)


def check_spool(spool: Path, sent: dict[str, int]) -> dict[str, int]:
    """Every number is a row once, or stands in the losses."""
    assert not verify(spool).faults
    rows, losses = rows_of(spool), losses_of(spool)
    seen = {"rows": rows.num_rows, "losses": losses.num_rows, "lost": 0, "untold": 0}
    offsets = sorted(
        row["offset"] for row in losses.to_pylist() if row["kind"] in ("recorder", "session")
    )
    for key, count in sent.items():
        table = rows.filter(ds.field("key") == key)
        payloads = table.column("payload").to_pylist()
        numbers = [int.from_bytes(payload[:8], "little") for payload in payloads]
        twice = [n for n, times in Counter(numbers).items() if times > 1]
        assert not twice, f"{key}: {len(twice)} samples are there twice, such as {twice[:5]}"
        missing = {*range(count)} - {*numbers}
        if key in PLAIN:
            seen["untold"] += len(missing)
            _check_plain(key, numbers, table.column("number").to_pylist(), offsets)
            continue
        assert table.column("source_sn").to_pylist() == numbers
        (source,) = {
            *zip(*(table.column(f"source_{x}").to_pylist() for x in ("zid", "eid")), strict=True)
        }
        lost = [
            n
            for row in losses.to_pylist()
            if (row["source_zid"], row["source_eid"]) == source
            for n in range(row["from_sn"], row["to_sn"] + 1)
        ]
        first = min(numbers)
        # Before the recorder began nobody was to record; after the last row nobody can know.
        missing = {n for n in missing if first < n < max(numbers)}
        said = f"{key} (from {first} on)"
        assert not missing - {*lost}, (
            f"{said}: nobody says that {_some(missing - {*lost})} are lost"
        )
        assert not {*lost} - missing, (
            f"{said}: {_some({*lost} - missing)} are there, and said to be lost"
        )
        assert len(lost) == len({*lost}), f"{said}: losses are told twice"
        seen["lost"] += len(lost)
    return seen


def _some(numbers: set[int]) -> str:
    return f"{len(numbers)} numbers ({', '.join(map(str, sorted(numbers)[:5]))}, ...)"


def _check_plain(key: str, numbers: list[int], offsets: list[int], losses: list[int]) -> None:
    assert numbers == sorted(numbers)
    steps = zip(numbers, numbers[1:], offsets, offsets[1:], strict=False)
    for before, after, first, last in steps:
        if after != before + 1:
            told = any(first < offset <= last for offset in losses)
            assert told, f"{key}: {before + 1} to {after - 1} are missing, and no loss is between"


def check_tables(rows: pa.Table, losses: pa.Table, lake: Path) -> None:
    """Every row once, and what is made of them."""
    columns = ("number", "key", "payload", "time")
    truth = sorted(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))
    found = _of_lake(lake, "samples", ("offset", "key", "payload", "received_ns"))
    counts = Counter(row[0] for row in found)
    twice = [offset for offset, count in counts.items() if count > 1]
    assert not twice, f"{len(twice)} rows are in the table twice, such as {twice[:5]}"
    assert len(found) == len(truth), (
        f"{len(truth)} rows are in the spool, {len(found)} in the table"
    )
    assert found == truth
    of_losses = ("number", "kind", "reason", "offset", "count", "from_sn", "to_sn")
    told = sorted(zip(*(losses.column(name).to_pylist() for name in of_losses), strict=True))
    assert _of_lake(lake, "losses", of_losses) == told
    last: dict[str, int] = {}
    windows: Counter[str] = Counter()
    for _, key, _, at in truth:
        last[key] = max(at, last.get(key, 0))
        windows[key] += 1
    assert _of_lake(lake, "latest", ("key", "last_received_ns")) == sorted(last.items())
    summed: Counter[str] = Counter()
    for key, messages in _of_lake(lake, "key_stats", ("key", "messages")):
        summed[key] += messages
    assert summed == windows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--at", type=Path, help="a directory to work in, and to leave")
    parser.add_argument("--publish", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.publish:
        publish(args.publish)
        return 0
    with contextlib.ExitStack() as stack:
        home = args.at or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        home.mkdir(parents=True, exist_ok=True)
        tell(f"seed {args.seed}")
        here, cluster = chosen(args.rounds, args.seed)
        kills = Kills(home, args.seed, tell)
        sent = kills.run(here, cluster)
        seen = check(kills.spool, kills.lake, sent) | {"again": kills.again()}
        tell(json.dumps(seen | dict(kills.tally)))
    return 0


def chosen(rounds: int, seed: int) -> tuple[list[str], list[str]]:
    """Victims: each kind as often as the others, in any order."""
    kinds = ("recorder", "driver", "python", "recorder", "worker", "executor")
    victims = [kinds[i % len(kinds)] for i in range(rounds)]
    random.Random(seed).shuffle(victims)
    here = [victim for victim in victims if victim in ("driver", "python")]
    cluster = [victim for victim in victims if victim in ("worker", "executor")]
    recorders = rounds - len(here) - len(cluster)
    for i in range(recorders):
        part = (here, cluster)[i % 2]
        part.insert(random.Random(seed + i).randrange(len(part) + 1), "recorder")
    return here, cluster


if __name__ == "__main__":
    sys.exit(main())
