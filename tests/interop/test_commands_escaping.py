"""What hostile nodes send does not reach stdout or stderr as it is: every command that shows it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import zenoh

from tests.interop.test_commands import LIMIT, World, ended, until
from tests.ports import free_port
from tests.unit.api.reference import reference
from zenwire.cli.main import main
from zenwire.cli.shown import FIELDS

pytestmark = [pytest.mark.interop, pytest.mark.slow]

HOSTILE = "\x1b]0;owned\x07\nforged\r\x9b31m\x7f\u202e\u2066\u2028"
KEY = f"evil/{HOSTILE}"
UNSAFE = set(HOSTILE) - set("\n]0;owned forged31m")


def clean(code: int, out: str, err: str) -> str:
    """What was printed, which must have no control characters and no lines of others."""
    for text in (out, err):
        assert not UNSAFE & set(text), ascii(text)
        # Not what `splitlines` takes for the end of a line.
        assert not [line for line in text.split("\n") if line.startswith("forged")], ascii(text)
    assert "Traceback" not in err, code
    return out + err


def here(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    """Run a command in this process, which is quicker than one of its own."""
    code = main(list(args))
    out, err = capfd.readouterr()
    return code, out, err


def _answer(query: zenoh.Query) -> None:
    if "fail" in query.parameters:
        query.reply_err(HOSTILE, encoding=f"text/plain;{HOSTILE}")
    else:
        query.reply(KEY, HOSTILE, encoding=f"text/plain;{HOSTILE}", attachment=HOSTILE)


@contextmanager
def _publishing(session: zenoh.Session) -> Iterator[None]:
    over = threading.Event()

    def publish() -> None:
        while not over.wait(0.02):
            # Once by its encoding, once by its looks.
            session.put(KEY, HOSTILE, encoding=f"text/plain;{HOSTILE}", attachment=HOSTILE)
            session.put(KEY, "one\ntwo\u202e\x9b", attachment="one\nforged\u202e")

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Our router with a tap, and a hostile client of the reference."""
    port = free_port()
    tap = tmp_path_factory.mktemp("tap") / "tap.pcapng"
    command = [sys.executable, "-m", "zenwire", "router", "--no-multicast-scouting", "-vv"]
    command += ["-l", f"tcp/127.0.0.1:{port}", "--tap", str(tap), "--status", "1"]
    # A filter, so that the log of the router has keys in it.
    command += ["--cfg", "adminspace/permissions/write:false"]
    with (
        (tap.parent / "log").open("wb") as log,
        subprocess.Popen(command, stderr=log) as router,
        ExitStack() as stack,
    ):
        stack.callback(router.send_signal, signal.SIGTERM)
        log_file = tap.parent / "log"
        until(lambda: "listens on" in log_file.read_text())
        client = stack.enter_context(reference("client", connect=port))
        stack.enter_context(client.declare_queryable("evil/**", _answer))
        stack.enter_context(client.declare_publisher(KEY))
        stack.enter_context(client.liveliness().declare_token(KEY))
        stack.enter_context(_publishing(client))
        made = World(client, client, port)
        made.tap, made.log = tap, log_file  # type: ignore[attr-defined] # of this module alone
        yield made


@pytest.mark.parametrize(
    "line",
    [
        ["sub", "-k", "evil/*", "-n", "4"],
        ["sub", "-k", "evil/*", "-n", "4", "--jsonl"],
        ["sub", "-k", "evil/*", "-n", "4", "--format", " ".join(f"{{{name}}}" for name in FIELDS)],
        ["get", "-s", "evil/**", "-n", "1"],
        ["get", "-s", "evil/**", "-n", "1", "--jsonl"],
        ["get", "-s", "evil/**", "--format", " ".join(f"{{{name}}}" for name in FIELDS)],
        ["get", "-s", "evil/**?fail"],
        ["get", "-s", "evil/**?fail", "--jsonl"],
        ["liveliness", "-k", "evil/*", "--get"],
        ["liveliness", "-k", "evil/*", "--get", "--json"],
        ["liveliness", "-k", "evil/*", "--watch", "--history", "-n", "1"],
        ["hz", "-k", "evil/*", "-n", "4"],
        ["hz", "-k", "evil/*", "-n", "4", "--jsonl"],
        ["bw", "-k", "evil/*", "-n", "4"],
        ["delay", "-k", "evil/*", "-n", "4"],
        ["doctor", "-k", "evil/*", "--timeout", "0.5"],
        ["doctor", "-k", "evil/*", "--timeout", "0.5", "--json"],
        # A near miss, so that keys of others are in the hints.
        ["doctor", "-k", "Evil/*", "--timeout", "0.5"],
        ["doctor", "-k", "Evil/*", "--timeout", "0.5", "--json"],
        # What was typed is shown, too.
        ["sub", "-k", KEY, "-n", "1"],
        ["get", "-s", "none/\x1b\u202e"],
        ["sub", "-k", "/\x1b\u202e"],
    ],
    ids=lambda line: " ".join(line)[:40].encode("unicode_escape").decode(),
)
def test_it_is_escaped(world: World, line: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    code, out, err = here(capfd, line[0], *world.flags, *line[1:])
    told = clean(code, out, err)
    assert "owned" in told or "\\x1b\\u202e" in told or "\\u001b\\u202e" in told
    if "--jsonl" in line:
        for one in out.splitlines():
            assert HOSTILE in json.loads(one).values() or KEY in json.loads(one).values()


def test_raw_is_raw(world: World, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def printed(command: str, *args: str) -> str:
        assert main([command, *world.flags, *args, "-n", "1", "--raw"]) == 0
        return capfdbinary.readouterr().out.decode()

    both = {HOSTILE, "one\ntwo\u202e\x9b"}
    assert printed("sub", "-k", "evil/*") in both
    assert printed("get", "-s", "evil/**") == HOSTILE
    shown = printed("sub", "-k", "evil/*", "--format", "{key} {payload}|")
    assert shown in {f"{KEY} {text}|\n" for text in both}


@pytest.mark.parametrize("more", [[], ["--jsonl"]], ids=["lines", "JSON"])
def test_queries(world: World, more: list[str]) -> None:
    def asked() -> list[zenoh.Reply]:
        selector, encoding = f"asked/{HOSTILE}?a={HOSTILE}", f"text/plain;{HOSTILE}"
        replies = world.client.get(
            selector, timeout=LIMIT, payload=HOSTILE, encoding=encoding, attachment=HOSTILE
        )
        return list(replies)

    flags = ["-k", "asked/**", "-p", "x", "-n", "1", *more]
    with world.running("answering", "queryable", *flags) as process:
        until(asked)
        assert "owned" in clean(*ended(process))


@pytest.mark.skipif("ZENWIRE_WITHOUT_FAST" in os.environ, reason="captures need the extra")
def test_captures_and_the_log(
    world: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The tap has all of the above in it, in both directions."""
    # Refused, which the router says in its log.
    world.client.put(f"@/{_router(world)}/router/config/{HOSTILE}", "{}")
    log: Path = world.log  # type: ignore[attr-defined] # of this module
    until(lambda: "adminspace/permissions/write" in log.read_text())
    clean(0, "", log.read_text())
    assert "owned" in log.read_text()
    # As it is: the router goes on writing.
    tap = tmp_path / "tap.pcapng"
    tap.write_bytes(world.tap.read_bytes())  # type: ignore[attr-defined] # of this module
    for more in ([], ["--json"]):
        assert "owned" in clean(*here(capfd, "inspect", str(tap), *more))


def _router(world: World) -> str:
    [zid] = [str(one) for one in world.client.info.routers_zid()]
    return zid
