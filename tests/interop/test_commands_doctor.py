"""``zenwire doctor`` in networks of the reference that work, and in those that do not."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import zenoh

from tests.ports import free_port
from tests.unit.api.reference import reference
from zenwire.wire.objects import decode, encode
from zenwire.wire.transport import InitAck, InitSyn
from zenwire.wire.values import WhatAmI, ZenohId

pytestmark = [pytest.mark.interop, pytest.mark.slow]

LIMIT = 60.0
Told = dict[str, Any]


def doctor(*args: str) -> tuple[int, Told]:
    command = [sys.executable, "-m", "zenwire", "doctor", "--json", "-q", *args]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    assert done.stderr == b""
    return done.returncode, json.loads(done.stdout)


def said(told: Told, step: str, mark: str) -> str:
    """What was found at a step, and what to try."""
    return "\n".join(
        f"{one['text']} => {one['hint']}"
        for one in told["checks"]
        if (one["step"], one["mark"]) == (step, mark)
    )


@contextmanager
def ticking(session: zenoh.Session, key: str) -> Iterator[None]:
    over = threading.Event()

    def tick() -> None:
        with session.declare_publisher(key) as publisher:
            while not over.wait(0.02):
                publisher.put("tick")

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def where() -> Iterator[str]:
    port = free_port()
    with (
        reference("router", listen=port, adminspace__enabled=True, scouting__delay=0),
        reference("client", connect=port) as client,
        ticking(client, "robot1/sensor/temp"),
        client.declare_publisher("quiet/one"),
        client.declare_queryable("store/**", lambda query: query.reply("store/a", "x")),
    ):
        yield f"tcp/127.0.0.1:{port}"


def test_it_comes(where: str) -> None:
    flags = ["-e", where, "--no-multicast-scouting"]
    code, told = doctor(*flags, "-k", "robot1/**", "--timeout", "10")
    assert (code, told["ok"]) == (0, True)
    assert told["verdict"].startswith("It comes: ")
    assert "router" in said(told, "reach", "ok")
    assert "qos" in said(told, "reach", "ok")
    declared = said(told, "declared", "info")
    assert "robot1/sensor/temp" in declared
    assert "queryables on store/**" in declared


def test_it_would_come(where: str) -> None:
    flags = ["-m", "client", "-e", where, "--no-multicast-scouting"]
    code, told = doctor(*flags, "-k", "quiet/*", "--timeout", "0.5")
    assert (code, told["verdict"][:14]) == (0, "It would come:")


@contextmanager
def our_router(message: str, flow: str) -> Iterator[int]:
    """A router of ours that refuses such messages on demo/**."""
    port = free_port()
    access = {
        "enabled": True,
        "default_permission": "allow",
        "rules": [
            {
                "id": "no",
                "messages": [message],
                "flows": [flow],
                "permission": "deny",
                "key_exprs": ["demo/**"],
            }
        ],
        "subjects": [{"id": "all"}],
        "policies": [{"rules": ["no"], "subjects": ["all"]}],
    }
    command = [sys.executable, "-m", "zenwire", "router", "--no-multicast-scouting"]
    command += ["-l", f"tcp/127.0.0.1:{port}", "--cfg", f"access_control:{json.dumps(access)}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as router:
        try:
            assert router.stderr is not None
            assert b"listens on" in router.stderr.readline()
            yield port
        finally:
            router.terminate()


@pytest.mark.parametrize(
    ("message", "flow", "why"),
    [
        ("put", "ingress", "a publisher on demo/a: "),
        ("put", "egress", "refuses to send us what comes: "),
        ("declare_subscriber", "ingress", "refuses our subscription (access_control)"),
    ],
)
def test_what_the_access_control_of_a_router_refuses(message: str, flow: str, why: str) -> None:
    with (
        our_router(message, flow) as port,
        reference("client", connect=port) as client,
        ticking(client, "demo/a"),
        client.declare_publisher("other/quiet"),
    ):
        flags = ["-m", "client", "-e", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting"]
        code, told = doctor(*flags, "-k", "demo/*", "--timeout", "1")
        assert (code, told["ok"]) == (1, False)
        assert told["verdict"] == "It does not come: nodes on the way refuse it."
        assert why in said(told, "filter", "bad")
        assert "zenwire acl explain" in said(told, "filter", "bad")
        if flow == "egress":
            # What is refused is something else.
            code, told = doctor(*flags, "-k", "other/*", "--timeout", "0.5")
            assert (code, told["verdict"][:14]) == (0, "It would come:")
            assert "cannot be known" not in told["verdict"]


def test_a_router_that_does_not_tell_what_it_refuses(where: str) -> None:
    flags = ["-m", "client", "-e", where, "--no-multicast-scouting"]
    code, told = doctor(*flags, "-k", "quiet/*", "--timeout", "0.5")
    assert code == 0
    assert "refuses it cannot be known from here." in told["verdict"]
    assert "does not tell what it refuses" in said(told, "filter", "info")


def test_near_misses(where: str) -> None:
    flags = ["-m", "client", "-e", where, "--no-multicast-scouting", "--timeout", "0.5"]
    keys = ["sensor/temp", "robot1/Sensor/*", "robot1/sensor", "store/a"]
    code, told = doctor(*flags, *(f"-k{key}" for key in keys))
    assert code == 1
    assert told["verdict"] == "Connected, but what is published there does not match."
    wrong = said(told, "match", "bad")
    assert "something before it (a namespace?) => -k '**/sensor/temp'" in wrong
    assert "upper and lower case differ => -k 'robot1/sensor/temp'" in wrong
    assert "goes deeper => -k 'robot1/sensor/**'" in wrong
    assert "zenwire get -s 'store/a'" in said(told, "match", "warn")


def test_another_namespace(where: str) -> None:
    flags = ["-m", "client", "-e", where, "--no-multicast-scouting", "--timeout", "0.5"]
    code, told = doctor(*flags, "-k", "sensor/temp", "--cfg", 'namespace:"robot2"')
    assert code == 1
    assert "robot1/sensor/temp would match, but not below the namespace robot2" in said(
        told, "match", "bad"
    )


class _Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nobody wants to know."""


@contextmanager
def http_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"tcp/127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server for one connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):  # nobody came, and it is shut down
                link, _ = server.accept()
                with link:
                    answer(link)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"tcp/127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def newer(link: socket.socket) -> None:
    """A node that speaks another version of the protocol."""
    size = int.from_bytes(link.recv(2), "little")
    asked = decode(link.recv(size), "transport")
    assert isinstance(asked, InitSyn)
    ack = InitAck(
        version=asked.version + 1,
        zid=ZenohId(b"\x01" * 16),
        whatami=WhatAmI.ROUTER,
        resolution=asked.resolution,
        batch_size=asked.batch_size,
        cookie=b"cookie",
    )
    raw = encode(ack)
    link.sendall(len(raw).to_bytes(2, "little") + raw)
    while link.recv(1024):
        pass


def test_what_is_at_an_endpoint(where: str, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("alice:secret\n")
    port, nothing = free_port(), f"tcp/127.0.0.1:{free_port()}"
    locked = {"dictionary_file": str(users), "user": "alice", "password": "secret"}
    with (
        reference("router", listen=port, transport__auth__usrpwd=locked, scouting__delay=0),
        http_server() as page,
        served(newer) as other,
    ):
        guarded = f"tcp/127.0.0.1:{port}"
        wrong = [nothing, "tcp/no-such-host.invalid:7447", page, other, guarded]
        wrong.append(where.replace("tcp/", "tls/"))
        flags = [f"-e{one}" for one in wrong]
        code, told = doctor(*flags, "--no-multicast-scouting", "--timeout", "1")
    assert code == 1
    assert told["verdict"] == "No endpoint leads to a Zenoh node: nothing can come."
    found = said(told, "reach", "bad").splitlines()
    assert len(found) == len(wrong)
    hints = [
        "nothing listens there",
        "check the host name",
        "no Zenoh node but an HTTP server",
        "different versions",
        "user and password",
        f"without TLS: -e {where}",
    ]
    for endpoint, hint, line in zip(wrong, hints, found, strict=True):
        assert line.startswith(endpoint)
        assert hint in line


def test_a_client_without_anybody() -> None:
    code, told = doctor("-m", "client", "--no-multicast-scouting")
    assert (code, told["verdict"]) == (1, "Connected to nobody: nothing can come.")
    assert "set connect/endpoints" in said(told, "session", "bad")


def test_a_peer_that_the_router_does_not_serve() -> None:
    port = free_port()
    with (
        reference("router", listen=port, scouting__delay=0),
        # It listens nowhere, so that other peers cannot reach it.
        reference("peer", connect=port) as theirs,
        ticking(theirs, "robot1/sensor/temp"),
    ):
        flags = ["-e", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting", "--timeout", "1"]
        flags += ["--cfg", "scouting/gossip/enabled:false"]
        code, told = doctor(*flags, "-k", "robot1/**")
    assert code == 1
    assert told["verdict"] == "As a client it comes, as a peer it does not."
    assert said(told, "mode", "bad").endswith("=> -m client")


def test_times_of_the_future() -> None:
    port, over = free_port(), threading.Event()
    with reference("peer", listen=port) as theirs:

        def tick() -> None:
            later = datetime.now(UTC) + timedelta(hours=1)
            while not over.wait(0.02):
                theirs.put("robot1/temp", "x", timestamp=zenoh.Timestamp(later, b"\x01"))

        thread = threading.Thread(target=tick)
        thread.start()
        try:
            flags = ["-e", f"tcp/127.0.0.1:{port}", "--no-multicast-scouting", "--timeout", "10"]
            code, told = doctor(*flags, "-k", "robot1/*")
        finally:
            over.set()
            thread.join()
    assert code == 0
    assert "ahead of this machine's clock => set the clocks" in said(told, "filter", "warn")


def test_nobody_answers_to_scouting() -> None:
    where = f"224.0.0.224:{free_port(socket.SOCK_DGRAM)}"
    multicast = {"enabled": True, "address": where, "interface": "lo"}
    flags = ["--cfg", f"scouting/multicast:{json.dumps(multicast)}", "--timeout", "0.2"]
    code, told = doctor(*flags, "--cfg", "listen/endpoints:[]")
    assert (code, told["verdict"]) == (1, "Connected to nobody: nothing can come.")
    assert f"nobody answers to multicast scouting on udp/{where}" in said(told, "scout", "warn")


def test_for_people(where: str) -> None:
    command = [sys.executable, "-X", "utf8", "-m", "zenwire", "doctor", "-m", "client"]
    command += ["-e", where, "-k", "sensor/temp", "--timeout", "0.5", "--no-multicast-scouting"]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 1
    assert lines[1].startswith(f"✓ {where}: router ")
    assert "✗ nothing on sensor/temp within 0.5 s" in lines
    assert "    try: -k '**/sensor/temp'" in lines
    assert lines[-2:] == ["", "Connected, but what is published there does not match."]


def test_what_is_no_key() -> None:
    code, told = doctor("-k", "/robot1/x")
    assert (code, told["ok"]) == (1, False)
    assert "=> -k 'robot1/x': keys do not begin or end with a slash" in said(told, "key", "bad")
