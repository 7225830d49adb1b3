"""Each example runs: with zenwire, with zenwire.aio, and with eclipse-zenoh instead of zenwire.

The other side is a router of eclipse-zenoh, in this process.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh
import zenoh.ext

from tests.ports import free_port
from tests.unit.api.nodes import TIMEOUT
from tests.unit.api.reference import reference
from tests.unit.sync.places import until

pytestmark = pytest.mark.interop

EXAMPLES = Path(__file__).parents[2] / "examples"
IMPORT = "import zenwire as zenoh\n"
KEY = "demo/example/zenwire"

Run = Callable[..., AbstractContextManager[subprocess.Popen[str]]]


def names() -> list[str]:
    every = {path.stem for path in EXAMPLES.glob("z_*.py")} - {"z_options"}
    return sorted(name for name in every if not name.endswith("_async"))


def test_they_are_short_and_side_by_side() -> None:
    assert len(names()) == 24
    for path in EXAMPLES.glob("z_*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) < 60, path
    for name in names():
        assert IMPORT in (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        # Of bytes there is nothing to wait for.
        assert (EXAMPLES / f"{name}_async.py").exists() == (name != "z_bytes")


def test_each_is_run_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [name for name in names() if f'"{name}"' not in text] == []


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same programs, in which only the import is another."""
    folder = tmp_path_factory.mktemp("examples")
    for path in EXAMPLES.glob("z_*.py"):
        text = path.read_text(encoding="utf-8")
        if path.stem in names():
            more = "import zenoh.ext\n" if "zenoh.ext" in text else ""
            text = text.replace(IMPORT, f"import zenoh\n{more}")
            assert "zenwire as" not in text
        (folder / path.name).write_text(text, encoding="utf-8")
    return folder


class Place:
    """A router of the reference, and programs that are its clients."""

    def __init__(self, session: zenoh.Session, port: int, way: str, theirs: Path) -> None:
        self.session = session
        self._port, self._way, self._theirs = port, way, theirs

    @contextmanager
    def run(self, name: str, *args: object) -> Iterator[subprocess.Popen[str]]:
        folder = self._theirs if self._way == "zenoh" else EXAMPLES
        program = folder / f"{name}{'_async' * (self._way == 'aio')}.py"
        where = ["-m", "client", "-e", f"tcp/127.0.0.1:{self._port}", "--no-multicast-scouting"]
        process = subprocess.Popen(
            [sys.executable, str(program), *where, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def publishing(self, key: str, process: subprocess.Popen[str]) -> None:
        """Publish numbers from when somebody listens, until the program ends."""
        publisher = self.session.declare_publisher(
            key, congestion_control=zenoh.CongestionControl.BLOCK
        )
        until(lambda: matching(publisher))
        for number in itertools.count():
            publisher.put(str(number))
            # Or what the program has no room for is told to its log.
            time.sleep(0.002)
            if process.poll() is not None:
                break

    def answers(self, key: str) -> list[str]:
        return [said(reply.ok) for reply in self.session.get(key) if reply.ok is not None]


@pytest.fixture(params=["zenwire", "aio", pytest.param("zenoh", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, theirs: Path) -> Iterator[Place]:
    port = free_port()
    with reference("router", listen=port, scouting__delay=0) as session:
        yield Place(session, port, request.param, theirs)


def output(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=TIMEOUT)
    assert err == ""
    assert process.returncode == 0
    return out.splitlines()


def said(sample: zenoh.Sample) -> str:
    return f"{sample.key_expr}={sample.payload.to_string()}"


def matching(publisher: Any) -> bool:
    return bool(publisher.matching_status.matching)


def test_put_and_delete(place: Place) -> None:
    subscriber = place.session.declare_subscriber("demo/**")
    with place.run("z_put", "-k", "demo/1", "-p", "x") as process:
        assert output(process) == ["Putting Data ('demo/1': 'x')..."]
    assert said(subscriber.recv()) == "demo/1=x"
    with place.run("z_put_float", "-k", "demo/2", "--value", "0.5") as process:
        assert output(process) == ["Putting Float ('demo/2': '0.5')..."]
    assert zenoh.ext.z_deserialize(float, subscriber.recv().payload) == 0.5
    with place.run("z_delete", "-k", "demo/1") as process:
        assert output(process) == ["Deleting resources matching 'demo/1'..."]
    assert subscriber.recv().kind == zenoh.SampleKind.DELETE


def test_pub(place: Place) -> None:
    subscriber = place.session.declare_subscriber("demo/**")
    with place.run("z_pub", "-n", 3, "-i", 0, "-k", KEY, "-p", "x") as process:
        assert len(output(process)) == 3
    heard = [said(subscriber.recv()) for _ in range(3)]
    assert heard == [f"{KEY}=[{n:4}] x" for n in range(3)]


@pytest.mark.parametrize("name", ["z_sub", "z_sub_queued"])
def test_sub(place: Place, name: str) -> None:
    with place.run(name, "-n", 3) as process:
        place.publishing(KEY, process)
        shown = [f">> Received SampleKind.PUT ('{KEY}': '{n}')" for n in range(3)]
        # By a callback, more may come before the end.
        assert output(process)[:3] == shown


def test_pull(place: Place) -> None:
    with place.run("z_pull", "-n", 2, "-i", 1, "-s", 3) as process:
        publisher = place.session.declare_publisher(KEY)
        until(lambda: matching(publisher))
        for number in range(10):
            publisher.put(str(number))
        shown = output(process)
    assert shown.count("[Subscriber] Pulling...") == 2
    samples = [line.split("'")[3] for line in shown if "Received" in line]
    assert samples[-3:] == ["7", "8", "9"]


def test_get_and_querier(place: Place) -> None:
    with place.session.declare_queryable("demo/*", lambda query: query.reply("demo/1", "yes")):
        with place.run("z_get", "-s", "demo/*") as process:
            assert output(process) == [">> Received ('demo/1': 'yes')"]
        with place.run("z_querier", "-s", "demo/*?x=1", "-n", 2, "-i", 0, "-p", "q") as process:
            assert output(process) == [
                line
                for n in range(2)
                for line in (
                    f"Querying 'demo/*?x=1' with payload '[{n:4}] q'...",
                    ">> Received ('demo/1': 'yes')",
                )
            ]


def test_queryable(place: Place) -> None:
    with place.run("z_queryable", "-n", 1, "-k", KEY, "-p", "yes") as process:
        until(lambda: place.answers(KEY) == [f"{KEY}=yes"])
        assert output(process) == [f">> [Queryable] Received Query '{KEY}'"]


def test_storage(place: Place) -> None:
    with place.run("z_storage"):
        publisher = place.session.declare_publisher(KEY)
        until(lambda: matching(publisher))
        publisher.put("stored")
        until(lambda: place.answers("demo/**") == [f"{KEY}=stored"])
        publisher.delete()
        until(lambda: place.answers("demo/**") == [])


def test_forward(place: Place) -> None:
    subscriber = place.session.declare_subscriber("demo/forward")
    with place.run("z_forward", "-n", 2) as process:
        place.publishing(KEY, process)
        assert output(process) == [f"Forwarding '{KEY}' to 'demo/forward'"] * 2
    assert [said(subscriber.recv()) for _ in range(2)] == ["demo/forward=0", "demo/forward=1"]


def test_scout_and_info(place: Place) -> None:
    with place.run("z_scout", "--seconds", 0.1) as process:
        assert re.fullmatch(r"Found \d+ nodes\.", output(process)[-1])
    with place.run("z_info") as process:
        assert f"routers: ['{place.session.zid()}']" in output(process)


def test_liveliness(place: Place) -> None:
    heard = place.session.liveliness().declare_subscriber("group1/*")
    with place.run("z_liveliness"):
        assert heard.recv().kind == zenoh.SampleKind.PUT
    assert heard.recv().kind == zenoh.SampleKind.DELETE
    token = place.session.liveliness().declare_token("group1/other")
    with place.run("z_get_liveliness") as process:
        assert output(process) == [">> Alive token ('group1/other')"]
    with place.run("z_sub_liveliness", "-n", 2) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == ">> 'group1/other' is alive\n"
        token.undeclare()  # type: ignore[no-untyped-call]
        assert output(process) == [">> 'group1/other' is gone"]


def test_ping_and_pong(place: Place) -> None:
    back = place.session.declare_publisher("test/pong")
    with place.session.declare_subscriber("test/ping", lambda sample: back.put(sample.payload)):
        with place.run("z_ping", "-n", 5, "-s", 16) as process:
            shown = output(process)
        assert [line.split()[2] for line in shown] == [f"seq={n}" for n in range(5)]
    with place.run("z_pong", "-n", 5) as pong, place.run("z_ping", "-n", 5) as ping:
        assert len(output(ping)) == 5
        assert output(pong) == []


def test_throughput(place: Place) -> None:
    count, ended = itertools.count(1), threading.Event()

    def take(_sample: zenoh.Sample) -> None:
        if next(count) == 1000:
            ended.set()

    subscriber = place.session.declare_subscriber("test/thr", take)
    with place.run("z_pub_thr", "-n", 1000) as process:
        assert output(process) == []
    assert ended.wait(TIMEOUT)
    subscriber.undeclare()  # type: ignore[no-untyped-call]
    with place.run("z_sub_thr", "-s", 2, "-n", 100) as process:
        place.publishing("test/thr", process)
        assert [line.split()[1] for line in output(process)] == ["msgs/sec"] * 2


def test_advanced_pub(place: Place) -> None:
    """Who comes late gets what there was."""
    with place.run("z_advanced_pub", "-i", 0.5, "-k", KEY, "-p", "x", "--history", 100) as process:
        assert process.stdout is not None
        for _ in range(3):
            process.stdout.readline()
        # Between two values: the reference forgets what there was if one comes before it has asked.
        time.sleep(0.2)
        subscriber = zenoh.ext.declare_advanced_subscriber(
            place.session,
            KEY,
            history=zenoh.ext.HistoryConfig(detect_late_publishers=True),
            recovery=zenoh.ext.RecoveryConfig(heartbeat=True),  # type: ignore[call-arg]
        )
        heard = [subscriber.recv().payload.to_string() for _ in range(6)]
        assert heard == [f"[{n:4}] x" for n in range(6)]


def test_advanced_sub(place: Place) -> None:
    publisher = zenoh.ext.declare_advanced_publisher(
        place.session,
        KEY,
        cache=zenoh.ext.CacheConfig(10),
        sample_miss_detection=zenoh.ext.MissDetectionConfig(heartbeat=0.1),  # type: ignore[call-arg]
        publisher_detection=True,
    )
    for n in range(3):
        publisher.put(str(n))
    with place.run("z_advanced_sub", "-n", 3) as process:
        shown = [f">> Received SampleKind.PUT ('{KEY}': '{n}')" for n in range(3)]
        assert output(process) == shown


def test_bytes(place: Place) -> None:
    if place._way == "aio":
        return
    with place.run("z_bytes") as process:
        shown = output(process)
    assert len(shown) == 10
    assert "int: -42 in 4 bytes" in shown
