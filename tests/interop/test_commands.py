"""The commands of the network as processes, with nodes of the reference around them."""

from __future__ import annotations

import base64
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.ports import free_port
from tests.unit.api.reference import reference

pytestmark = [pytest.mark.interop, pytest.mark.slow]

DOCS = Path(__file__).parents[2] / "docs" / "commands.md"
LIMIT = 60.0
"""Seconds that a command may take on a busy machine; none waits for it to pass."""
ZENWIRE = [sys.executable, "-X", "faulthandler", "-m", "zenwire"]


class World:
    """A router with an admin space, and a client that ticks, answers and is alive."""

    def __init__(self, router: zenoh.Session, client: zenoh.Session, port: int) -> None:
        self.router = router
        self.client = client
        self.where = f"tcp/127.0.0.1:{port}"
        self.flags = ["-m", "client", "-e", self.where, "--no-multicast-scouting"]

    def run(self, command: str, *args: str, said: bytes | None = None) -> tuple[int, str, str]:
        return run(command, *self.flags, *args, said=said)

    @contextmanager
    def running(self, ready: str, command: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
        with running(ready, command, *self.flags, *args) as process:
            yield process


def run(command: str, *args: str, said: bytes | None = None) -> tuple[int, str, str]:
    done = subprocess.run(
        [*ZENWIRE, command, *args], input=said, capture_output=True, timeout=LIMIT, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@contextmanager
def running(ready: str, command: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command that has said on stderr that it is ready."""
    process = subprocess.Popen(
        [*ZENWIRE, command, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline().decode()
            assert ready in said
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        # It says where it is.
        process.send_signal(signal.SIGABRT)
        raise AssertionError(process.communicate()[1].decode()) from None
    return process.returncode, out.decode(), err.decode()


def until(found: Callable[[], Any]) -> Any:
    ends = time.monotonic() + LIMIT
    while time.monotonic() < ends:
        result = found()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError("it did not come")


def _tick(session: zenoh.Session, over: threading.Event) -> None:
    block = zenoh.CongestionControl.BLOCK
    ticks = session.declare_publisher("demo/tick", congestion_control=block)
    binary = session.declare_publisher(
        "demo/binary", encoding=zenoh.Encoding.ZENOH_SERIALIZED, congestion_control=block
    )
    at = 0
    while not over.wait(0.02):
        ticks.put(f"tick {at}", encoding="text/plain", attachment=f"n={at}")
        binary.put(b"\x05hello")
        at += 1


def _answer(query: zenoh.Query) -> None:
    if "fail" in query.parameters:
        query.reply_err("cannot", encoding="text/plain")
    else:
        query.reply("demo/answer", f"42 {query.parameters}", encoding="text/plain")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    port, over, held = free_port(), threading.Event(), list[zenoh.Query]()
    with (
        reference("router", listen=port, adminspace__enabled=True, scouting__delay=0) as router,
        reference("client", connect=port) as client,
        client.declare_queryable("demo/answer", _answer),
        # Keeps queries, so that whoever asks waits.
        client.declare_queryable("demo/never", held.append),
        client.liveliness().declare_token("demo/alive"),
    ):
        ticking = threading.Thread(target=_tick, args=(client, over))
        ticking.start()
        try:
            yield World(router, client, port)
        finally:
            over.set()
            ticking.join()
            held.clear()


# Who is there.


def test_info(world: World) -> None:
    code, out, err = world.run("info", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)
    [node] = told["nodes"]
    assert (node["zid"], node["whatami"]) == (str(world.router.info.zid()), "router")
    assert node["links"][0]["dst"] == world.where
    assert node["agreed"]["qos"] is True
    assert node["agreed"]["batch_size"] > 1000


def test_scout() -> None:
    group, port = free_port(socket.SOCK_DGRAM), free_port()
    multicast = {"enabled": True, "address": f"224.0.0.224:{group}", "interface": "lo"}
    flags = [f"--cfg=scouting/multicast:{json.dumps(multicast)}", "--timeout", "20"]
    with reference("peer", listen=port, scouting__multicast=multicast) as theirs:
        code, out, _ = run("scout", *flags, "--count", "1", "--json", "--what", "peer")
        assert code == 0
        told = json.loads(out)
        assert (told["zid"], told["whatami"]) == (str(theirs.info.zid()), "peer")
        assert f"tcp/127.0.0.1:{port}" in told["locators"]
    code, out, err = run("scout", *flags[:-1], "0.2")
    assert (code, out) == (1, "")
    assert "nobody has answered" in err
    code, _, err = run("scout", "--no-multicast-scouting")
    assert (code, err.count("\n")) == (2, 1)


# Publishing.


@contextmanager
def taken(world: World, key: str) -> Iterator[list[zenoh.Sample]]:
    samples: list[zenoh.Sample] = []
    with world.router.declare_subscriber(key, samples.append):
        yield samples


def test_put_and_delete(world: World, tmp_path: Path) -> None:
    with taken(world, "put/**") as samples:
        quality = ["--priority", "data_high", "--express", "--congestion-control", "block"]
        more = ["--encoding", "application/json", "--attachment", "why", "--timestamp"]
        code, out, err = world.run("put", "-k", "put/a", "-p", '{"x": 1}', *quality, *more)
        assert (code, out) == (0, "")
        assert err == "zenwire put: put/a: 1 sent\n"
        first = until(lambda: samples and samples[0])
        assert (str(first.key_expr), first.payload.to_string()) == ("put/a", '{"x": 1}')
        assert first.encoding == zenoh.Encoding.APPLICATION_JSON
        assert first.attachment.to_string() == "why"
        assert first.priority == zenoh.Priority.DATA_HIGH
        assert first.express
        assert first.timestamp is not None

        (tmp_path / "bytes").write_bytes(bytes(range(256)))
        assert world.run("put", "-k", "put/f", "--file", str(tmp_path / "bytes"), "-q")[0] == 0
        assert until(lambda: len(samples) == 2 and samples[1]).payload.to_bytes() == bytes(
            range(256)
        )

        assert world.run("put", "-k", "put/l", "--lines", said=b"one\ntwo\nthree")[0] == 0
        until(lambda: len(samples) == 5)
        assert [one.payload.to_string() for one in samples[2:]] == ["one", "two", "three"]

        flags = ["--count", "3", "--rate", "200"]
        assert world.run("delete", "-k", "put/a", *flags)[0] == 0
        until(lambda: len(samples) == 8)
        assert all(one.kind == zenoh.SampleKind.DELETE for one in samples[5:])


def test_put_waits_for_a_subscriber(world: World) -> None:
    code, _, err = world.run("put", "-k", "put/nobody", "-p", "x", "--wait", "0.2")
    assert code == 124
    assert "nobody subscribed" in err
    flags = ["-k", "late/a", "-p", "x", "--wait"]
    with (
        world.running("waiting for", "put", *flags) as process,
        taken(world, "late/a") as samples,
    ):
        assert ended(process)[0] == 0
        until(lambda: samples)


def test_put_to_nobody() -> None:
    code, _, err = run("put", "-k", "a", "-p", "x", "--no-multicast-scouting")
    assert (code, err.count("\n")) == (1, 1)
    assert "connected to nobody" in err


def test_what_is_refused_is_said_in_a_line() -> None:
    code, out, err = run("put", "-k", "a", "-p", "x", "-e", f"tcp/127.0.0.1:{free_port()}")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "Connection refused; nothing listens there" in err


# Receiving.


def test_sub_prints_lines(world: World) -> None:
    code, out, err = world.run("sub", "-k", "demo/**", "-k", "demo/tick", "-n", "6")
    assert code == 0
    lines = out.splitlines()
    assert len(lines) == 6
    # Two expressions match a tick, and it comes once.
    assert len(set(lines) - {"PUT demo/binary <6 bytes: 0568656c6c6f>"}) == 3
    assert all(re.match(r"PUT demo/(tick tick \d+|binary <6 bytes: \w+>)$", one) for one in lines)
    assert "6 samples" in err


def test_sub_as_json(world: World) -> None:
    code, out, _ = world.run("sub", "-k", "demo/*", "-n", "8", "--jsonl")
    assert code == 0
    told = {one["key"]: one for one in map(json.loads, out.splitlines())}
    tick, binary = told["demo/tick"], told["demo/binary"]
    assert (tick["payload_is"], tick["encoding"], tick["kind"]) == ("text", "text/plain", "PUT")
    assert tick["payload"].startswith("tick ")
    assert tick["attachment"] == tick["payload"].replace("tick ", "n=")
    assert tick["timestamp"].endswith("Z")
    assert (binary["payload_is"], binary["encoding"]) == ("base64", "zenoh/serialized")
    assert base64.b64decode(binary["payload"]) == b"\x05hello"


def test_sub_by_template_and_raw(world: World) -> None:
    template = r"{key}\t{size} {{{hex}}}"
    code, out, _ = world.run("sub", "-k", "demo/binary", "-n", "1", "--format", template)
    assert (code, out) == (0, "demo/binary\t6 {0568656c6c6f}\n")
    code, out, _ = world.run("sub", "-k", "demo/binary", "-n", "2", "--raw")
    assert (code, out) == (0, "\x05hello\x05hello")


def test_sub_ends_in_time(world: World) -> None:
    assert world.run("sub", "-k", "nothing/here", "--timeout", "0.2")[0] == 1
    assert world.run("sub", "-k", "nothing/here", "--timeout", "0.2", "-n", "1")[0] == 124


@pytest.mark.parametrize(
    ("what", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["Ctrl-C", "SIGTERM"]
)
def test_sub_ends_when_told(world: World, what: signal.Signals, code: int) -> None:
    with world.running("subscribed", "sub", "-k", "demo/tick") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"PUT demo/tick ")
        process.send_signal(what)
        ending, _, err = ended(process)
    assert ending == code
    assert err.startswith("zenwire sub: ")
    assert "Traceback" not in err


def test_a_reader_that_goes_away(world: World) -> None:
    with world.running("subscribed", "sub", "-k", "demo/tick") as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(LIMIT) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


# Asking.


def test_get(world: World) -> None:
    code, out, _ = world.run("get", "-s", "demo/answer?unit=m")
    assert (code, out) == (0, "PUT demo/answer 42 unit=m\n")
    code, out, _ = world.run("get", "-s", "demo/answer", "--jsonl")
    assert json.loads(out)["payload"] == "42 "
    assert json.loads(out)["replier"]["zid"] == str(world.client.info.zid())


def test_get_without_an_answer(world: World) -> None:
    code, out, err = world.run("get", "-s", "nothing/here")
    assert (code, out, err.count("\n")) == (1, "", 1)
    code, out, err = world.run("get", "-s", "demo/answer?fail")
    assert (code, out, err) == (1, "", "zenwire get: error: cannot\n")
    code, out, err = world.run("get", "-s", "demo/answer?fail", "--jsonl")
    assert (code, json.loads(out)["error"]) == (1, "cannot")
    code, out, err = world.run("get", "-s", "demo/never", "--timeout", "0.3")
    assert (code, out) == (124, "")
    assert "within 0.3 s" in err


def _asked(world: World, selector: str, payload: str | None = None) -> str:
    # What it declared may still be on its way; nobody is asked then.
    [reply] = until(lambda: list(world.router.get(selector, payload=payload, timeout=LIMIT)))
    if reply.ok is not None:
        return f"{reply.ok.key_expr}={reply.ok.payload.to_string()}"
    assert reply.err is not None
    return f"!{reply.err.payload.to_string()}"


def test_queryable(world: World) -> None:
    answering = "answering for"
    with world.running(answering, "queryable", "-k", "q/echo", "--echo", "-n", "1") as process:
        assert _asked(world, "q/echo?x=1", "hi") == "q/echo=hi"
        code, out, _ = ended(process)
        assert (code, out) == (0, "q/echo?x=1 hi\n")
    command = 'test -n "$ZENWIRE_PARAMETERS" || { echo no >&2; exit 3; }; cat; echo $ZENWIRE_KEY'
    flags = ["-k", "q/**", "--exec", command, "-n", "3", "--jsonl"]
    with world.running(answering, "queryable", *flags) as process:
        assert _asked(world, "q/run?x", "in ") == "q/run=in q/run\n"
        assert _asked(world, "q/run") == "!no"
        assert _asked(world, "q/*?x").startswith("!q/** has no one key")
        code, out, _ = ended(process)
        assert (code, len(out.splitlines())) == (0, 3)
    assert world.run("queryable", "-k", "q", "-p", "x", "--timeout", "0.1", "-n", "1")[0] == 124


def test_liveliness(world: World) -> None:
    code, out, _ = world.run("liveliness", "-k", "demo/*", "--get")
    assert (code, out) == (0, "alive demo/alive\n")
    assert world.run("liveliness", "-k", "none/*", "--get")[0] == 1
    flags = ["-k", "robot/*", "--watch", "--history", "-n", "2", "--jsonl"]
    token = world.client.liveliness().declare_token("robot/1")
    with world.running("watching", "liveliness", *flags) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["alive"] is True
        token.undeclare()  # type: ignore[no-untyped-call] # its stub says nothing of it
        code, out, _ = ended(process)
        assert (code, json.loads(out)["alive"]) == (0, False)
    with world.running("is alive", "liveliness", "-k", "robot/2") as process:
        until(lambda: list(world.router.liveliness().get("robot/2", timeout=LIMIT)))
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 130
    until(lambda: not list(world.router.liveliness().get("robot/2", timeout=LIMIT)))


# Measuring.


def test_rates(world: World) -> None:
    code, out, err = world.run("hz", "-k", "demo/tick", "-n", "10")
    assert code == 0
    assert re.search(
        r"demo/tick\naverage rate: [\d.]+\n"
        r"\tmin: [\d.]+s max: [\d.]+s std dev: [\d.]+s window: 10\n$",
        out,
    )
    assert "receiving side" in err
    code, out, err = world.run("bw", "-k", "demo/binary", "-n", "10")
    assert code == 0
    assert re.search(r"\d B/s from 10 messages\n\tMessage size mean: 6 B min: 6 B max: 6 B\n$", out)
    assert "receiving side" in err
    code, out, err = world.run("delay", "-k", "demo/tick", "-n", "10", "--jsonl")
    assert code == 0
    told = json.loads(out.splitlines()[-1])
    assert (told["key"], told["window"]) == ("demo/tick", 10)
    # The router stamped it, on this machine.
    assert -1 < told["min_s"] <= told["mean_s"] <= told["max_s"] < LIMIT
    assert "clocks" in err


def test_delay_without_timestamps(world: World) -> None:
    port = free_port()
    with reference("peer", listen=port) as theirs, ExitStack() as stack:
        over = threading.Event()
        ticking = threading.Thread(target=_tick, args=(theirs, over))
        ticking.start()
        stack.callback(ticking.join)
        stack.callback(over.set)
        flags = ["-e", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting"]
        code, out, err = run("delay", "-k", "demo/tick", "-n", "5", *flags)
    assert (code, out) == (1, "")
    assert "without a timestamp" in err


def test_ping_with_a_pong_of_theirs(world: World) -> None:
    block = zenoh.CongestionControl.BLOCK
    back = world.client.declare_publisher("test/pong", congestion_control=block, express=True)
    flags = ["-n", "5", "--warmup", "0.05"]
    with world.client.declare_subscriber("test/ping", lambda sample: back.put(sample.payload)):
        code, out, _ = world.run("ping", *flags)
        assert code == 0
        assert out.startswith("64 bytes: seq=0 rtt=")
        assert "5 sent, 0 lost" in out
        code, out, _ = world.run("ping", *flags, "--json")
        told = json.loads(out)
        assert 0 < told["rtt_min_us"] <= told["rtt_p50_us"] <= told["rtt_max_us"]
    back.undeclare()  # type: ignore[no-untyped-call] # its stub says nothing of it
    assert world.run("ping", *flags, "--timeout", "0.2")[0] == 124


def test_pong_with_a_ping_of_theirs(world: World) -> None:
    came: list[bytes] = []
    with (
        world.running("answering test/ping", "pong", "-n", "1") as process,
        world.client.declare_subscriber("test/pong", lambda s: came.append(s.payload.to_bytes())),
        world.client.declare_publisher("test/ping") as pings,
    ):
        # A status, which the stub calls a bool.
        until(lambda: getattr(pings.matching_status, "matching"))  # noqa: B009
        pings.put(b"there")
        until(lambda: came == [b"there"])
        assert ended(process)[0] == 0


def test_bench(world: World) -> None:
    code, out, err = run("bench", "-n", "3000", "--size", "100", "--json")
    assert code == 0, err
    told = json.loads(out)
    assert (told["messages"], told["size"], told["lost"]) == (3000, 100, 0)
    assert told["messages_per_s"] > 0
    with taken(world, "test/thr") as samples:
        code, out, _ = world.run("bench", "--pub", "-n", "500", "--json")
        assert (code, json.loads(out)["messages"]) == (0, 500)
        until(lambda: len(samples) == 500)


# The documentation.


def test_the_examples_of_the_documentation(world: World) -> None:
    [block] = re.findall(r"```sh\n(.*?)```", DOCS.read_text(), re.DOTALL)
    lines = block.splitlines()
    assert len(lines) > 10

    def tried(line: str) -> str:
        command = line.replace("-e tcp/localhost:7447", " ".join(world.flags))
        command = re.sub(r"\bzenwire\b", " ".join(ZENWIRE), command, count=1)
        done = subprocess.run(
            command, shell=True, capture_output=True, timeout=LIMIT, text=True, check=False
        )
        return f"{line}: {done.stderr}" if done.returncode else ""

    with ThreadPoolExecutor(3) as tries:
        assert not list(filter(None, tries.map(tried, lines)))
