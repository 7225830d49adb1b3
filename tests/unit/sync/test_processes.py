"""What becomes of processes: Ctrl-C, an end without close, fork."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import zenwire
from tests.ports import free_port
from tests.unit.sync.places import TIMEOUT, config, until

PREFIX = """
import os, signal, sys, threading, time, zenwire
settings = {
    "scouting": {"multicast": {"enabled": False}},
    "listen": {"endpoints": []},
    "connect": {"endpoints": [f"tcp/127.0.0.1:{port}" for port in sys.argv[1:]]},
}
"""


@contextmanager
def started(program: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(  # our own program
        [sys.executable, "-c", PREFIX + program, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=TIMEOUT)
    return process.returncode, out, err


WAITS = {
    "recv": "session.declare_subscriber('a').recv()",
    "iteration": "list(session.declare_subscriber('a'))",
    "replies": "q = session.declare_queryable('a'); list(session.get('a', timeout=600))",
    "put": (
        "lane = session.access.lane(zenwire.Priority.DATA)\n"
        "    lane._used = 10_000\n"
        "    session.put('a', 'x')"
    ),
    "scout": "zenwire.scout(config={'scouting': {'multicast': {'enabled': False}}}).recv()",
    "open": "zenwire.open({'mode': 'client', 'connect': {'endpoints': ['tcp/127.0.0.1:1'], "
    "'timeout_ms': -1, 'exit_on_failure': False}})",
}


@pytest.mark.parametrize("what", sorted(WAITS))
def test_ctrl_c(what: str) -> None:
    program = f"""
signal.signal(signal.SIGINT, signal.default_int_handler)
session = zenwire.open(settings)
try:
    print("ready", flush=True)
    {WAITS[what]}
except KeyboardInterrupt:
    # Others may come, until it is known that this one did.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("interrupted", flush=True)
assert session.declare_keyexpr("a") == "a"
session.close()
"""
    with started(program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert ended(process) == (0, "interrupted\n", "")


def test_an_end_without_close() -> None:
    """Nothing hangs, what was put is sent, and others learn of the end."""
    port = free_port()
    with zenwire.open(config(listen=port)) as session:
        subscriber = session.declare_subscriber("a")
        program = """
session = zenwire.open(settings)
publisher = session.declare_publisher("a")
while not publisher.matching_status.matching:
    time.sleep(0.01)
kept = session.declare_subscriber("b", lambda sample: None)
token = session.liveliness().declare_token("alive")
for number in range(100):
    publisher.put(str(number))
print("end")
"""
        with started(program, port) as process:
            assert ended(process) == (0, "end\n", "")
        heard = [int(subscriber.recv().payload.to_string()) for _ in range(100)]
        assert heard == list(range(100))
        until(lambda: not session.info.transports())


def test_an_end_by_an_exception_or_while_threads_wait() -> None:
    program = """
session = zenwire.open(settings)
subscriber = session.declare_subscriber("a")
threading.Thread(target=subscriber.recv, daemon=True).start()
session.declare_subscriber("a", lambda sample: time.sleep(600))
session.put("a", "x"); session.put("a", "y")
raise SystemExit(3)
"""
    with started(program) as process:
        assert ended(process)[0] == 3


def test_fork() -> None:
    """The child is told at once that the session is not its own, and opens one that works."""
    port = free_port()
    with zenwire.open(config(listen=port)) as session:
        subscriber = session.declare_subscriber("a")
        program = """
session = zenwire.open(settings)
subscriber, publisher = session.declare_subscriber("b"), session.declare_publisher("a")
handler, held = subscriber.handler, []
queryable = session.declare_queryable("q", held.append)
child = os.fork()
if child == 0:
    calls = [
        lambda: session.put("a", "x"),
        lambda: publisher.put("x"),
        lambda: session.get("a"),
        lambda: session.declare_subscriber("c"),
        lambda: session.info.transports(),
        subscriber.recv,
        handler.try_recv,
        publisher.undeclare,
        session.close,
    ]
    for call in calls:
        try:
            call()
        except zenwire.ForkedSession as e:
            assert "forked" in str(e)
        else:
            os._exit(9)
    del subscriber, publisher, queryable
    with zenwire.open(settings) as own:
        own.declare_subscriber("c", lambda sample: held.append(sample))
        own.put("c", "to myself")
        sending = own.declare_publisher("a")
        while not (sending.matching_status.matching and held):
            time.sleep(0.01)
        sending.put("from the child")
    sys.exit(0)
_, status = os.waitpid(child, 0)
while not publisher.matching_status.matching:
    time.sleep(0.01)
publisher.put(f"from the parent {os.waitstatus_to_exitcode(status)}")
session.close()
"""
        with started(program, port) as process:
            code, _, err = ended(process)
            assert (code, err) == (0, "")
        heard = [subscriber.recv().payload.to_string() for _ in range(2)]
        assert heard == ["from the child", "from the parent 0"]


def test_a_forked_child_keeps_no_socket() -> None:
    """While it lives, its parent can end a session, and listen again where it did."""
    program = f"""
settings["listen"]["endpoints"] = ["tcp/127.0.0.1:{free_port()}"]
session = zenwire.open(settings)
ours, theirs = os.pipe()
begun, begins = os.pipe()
child = os.fork()
if child == 0:
    os.close(theirs)
    os.write(begins, b"x")
    os.read(ours, 1)
    os._exit(0)
os.read(begun, 1)
subscriber = session.declare_subscriber("a")
session.put("a", "x")
assert subscriber.recv().payload.to_string() == "x"
session.close()
with zenwire.open(settings) as again:
    connects = {{**settings, "listen": {{"endpoints": []}}, "connect": settings["listen"]}}
    with zenwire.open(connects) as other:
        while not (again.info.transports() and other.info.transports()):
            time.sleep(0.01)
os.close(theirs)
os.waitpid(child, 0)
"""
    with started(program) as process:
        assert ended(process) == (0, "", "")


def test_fork_through_multiprocessing() -> None:
    program = """
import multiprocessing
session = zenwire.open(settings)

def work(number):
    with zenwire.open(settings) as own:
        subscriber = own.declare_subscriber("a")
        own.put("a", str(number))
        return subscriber.recv().payload.to_string()

with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, range(4)) == list("0123")
session.close()
"""
    with started(program) as process:
        code, _, err = ended(process)
        assert (code, err) == (0, "")


def test_puts_that_block_wait_for_a_peer_that_does_not_read() -> None:
    """What waits is bounded, and nothing is lost."""
    port, count = free_port(), 1000
    program = f"""
heard = []
session = zenwire.open(settings)
session.declare_subscriber("a", lambda sample: heard.append(int(sample.payload.to_bytes()[:8])))
print("ready", flush=True)
while len(heard) < {count}:
    time.sleep(0.01)
print(heard == list(range({count})))
"""
    with zenwire.open(config(listen=port)) as session, started(program, port) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        block = zenwire.CongestionControl.BLOCK
        publisher = session.declare_publisher("a", congestion_control=block)
        until(lambda: publisher.matching_status.matching)
        sent: list[int] = []

        def publish() -> None:
            for number in range(count):
                publisher.put(f"{number:08}".encode() + bytes(64 * 1024))
                sent.append(number)

        process.send_signal(signal.SIGSTOP)
        thread = threading.Thread(target=publish)
        thread.start()
        until(lambda: publisher._lane._waiting)
        assert len(sent) < count
        # Others have room: these need no link.
        other = session.declare_subscriber("b")
        session.put("b", "x", priority=zenwire.Priority.REAL_TIME)
        assert other.recv().payload.to_string() == "x"
        process.send_signal(signal.SIGCONT)
        thread.join(TIMEOUT)
        assert len(sent) == count
        assert ended(process) == (0, "True\n", "")


def test_a_close_that_ctrl_c_interrupts_goes_on() -> None:
    port = free_port()
    program = """
session = zenwire.open(settings)
session.declare_subscriber("a", lambda sample: None)
print("ready", flush=True)
time.sleep(600)
"""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    session = zenwire.open(config(listen=port))
    with started(program, port) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        publisher = session.declare_publisher("a")
        until(lambda: publisher.matching_status.matching)
        process.send_signal(signal.SIGSTOP)
        for _ in range(200):
            publisher.put(bytes(64 * 1024))
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(KeyboardInterrupt):
                session.close()
        finally:
            signal.signal(signal.SIGALRM, before)
        process.kill()
        session.close()
        assert session.is_closed()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
