"""``zenwire router`` as a service: it starts, says where it is, and ends when it is told to."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zenwire import aio
from zenwire.capture.conversation import Conversation, Want, windows
from zenwire.cli import router
from zenwire.cli.inspect_capture import column_scan
from zenwire.cli.main import main, parser_of

TIMEOUT = 60


@contextmanager
def running(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A router in a process of its own, and what it says of itself."""
    command = [sys.executable, "-m", "zenwire", "router", "--no-multicast-scouting", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            yield process, process.stderr.readline()
        finally:
            process.kill()


def effective(*options: str) -> aio.Config:
    args = parser_of({"router": router}).parse_args(["router", *options])
    return router._config(args)  # what the flags mean


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_routes_until_it_is_told_to_end(number: signal.Signals) -> None:
    with running("-l", "tcp/127.0.0.1:0", "-i", "abcd") as (process, line):
        said = r"\S+Z INFO zenwire router: router abcd listens on (\S+)\n"
        found = re.fullmatch(said, line)
        assert found is not None, line

        async def main() -> None:
            settings = aio.Config.from_dict(
                {"mode": "client", "connect": {"endpoints": [found[1]]}}
            )
            async with (
                aio.open(settings) as one,
                aio.open(settings) as other,
                one.declare_subscriber("k") as subscriber,
                other.declare_publisher("k") as publisher,
            ):
                while not publisher.matching_status.matching:  # noqa: ASYNC110 # no event
                    await asyncio.sleep(0.005)
                await publisher.put("through")
                sample = await subscriber.recv()
                assert sample.payload == b"through"
                assert str(sample.timestamp).endswith("/abcd")

        asyncio.run(asyncio.wait_for(main(), TIMEOUT))
        process.send_signal(number)
        assert process.wait(TIMEOUT) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_its_end_is_told_to_those_who_are_connected(number: signal.Signals, tmp_path: Path) -> None:
    tapped = tmp_path / "tap.pcapng"
    with running("-l", "tcp/127.0.0.1:0", "--tap", str(tapped)) as (process, line):

        async def main() -> None:
            settings = aio.Config.from_dict(
                {"mode": "client", "connect": {"endpoints": [line.split()[-1]]}}
            )
            async with aio.open(settings):
                process.send_signal(number)
                assert await asyncio.to_thread(process.wait, TIMEOUT) == 0

        asyncio.run(asyncio.wait_for(main(), TIMEOUT))
    kinds = [
        entry.kind
        for window in windows(tapped)
        for entry in Conversation(column_scan(), Want()).feed(window)
    ]
    assert kinds[-1] == "close"


def test_sighup_is_ignored_under_nohup() -> None:
    command = "trap '' HUP; exec \"$@\""
    router = [sys.executable, "-m", "zenwire", "router", "--no-multicast-scouting"]
    options = ["-l", "tcp/127.0.0.1:0", "--status", "0.2"]
    with subprocess.Popen(
        ["sh", "-c", command, "sh", *router, *options], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            assert "listens on" in process.stderr.readline()
            process.send_signal(signal.SIGHUP)
            assert "nobody" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(TIMEOUT) == 0
        finally:
            process.kill()


def test_the_help_names_the_default_mode(capsys: pytest.CaptureFixture[str]) -> None:
    for command, mode in (("router", "router"), ("sub", "peer")):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"what to be (default: {mode})" in " ".join(capsys.readouterr().out.split())


STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (ERROR|WARNING|INFO|DEBUG) zenwire router: \S.*"


def test_every_line_has_a_time_and_a_level() -> None:
    notice = "transport/link/unixpipe/file_access_mask:7"
    options = ["-l", "tcp/127.0.0.1:0", "--status", "0.1", "-vv", "--cfg", notice]
    with running(*options, "-e", "tcp/127.0.0.1:1") as (process, line):
        assert process.stderr is not None
        lines = [line, *(process.stderr.readline() for _ in range(5))]
        process.send_signal(signal.SIGTERM)
        lines += process.stderr.read().splitlines()
    levels = set()
    for one in lines:
        found = re.fullmatch(STAMP, one.rstrip("\n"))
        assert found is not None, one
        levels.add(found[1])
    assert {"INFO", "WARNING"} <= levels


def test_what_it_ends_with_has_a_time_and_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["router", "-l", "tcp/127.0.0.1:none"]) == 1
    line = capsys.readouterr().err
    found = re.fullmatch(STAMP, line.rstrip("\n"))
    assert found is not None, line
    assert found[1] == "ERROR"


def test_the_flags_of_zenohd() -> None:
    config = effective(
        *("-i", "ab", "-l", "tcp/127.0.0.1:1", "-e", "tcp/127.0.0.1:2", "--no-timestamp"),
        *("--adminspace-permissions", "r", "--cfg", "scouting/delay:1"),
    ).effective
    assert config.mode.name == "ROUTER"
    assert str(config.settings.id) == "ab"
    assert [str(one) for one in config.listen.endpoints] == ["tcp/127.0.0.1:1"]
    assert not config.connect.retry.exit_on_failure
    assert not config.timestamping
    assert config.scouting.delay == 1
    permissions = config.settings.adminspace.permissions
    assert (permissions.read, permissions.write) == (True, False)


def test_a_file_may_say_that_it_is_no_router(tmp_path: Path) -> None:
    file = tmp_path / "zenoh.json5"
    file.write_text('{mode: "peer"}')
    assert effective("-c", str(file)).effective.mode.name == "PEER"
    assert effective("-c", str(file), "-m", "router").effective.mode.name == "ROUTER"
    assert [str(one) for one in effective().effective.listen.endpoints] == ["tcp/[::]:7447"]


def test_the_order_is_that_of_zenohd(tmp_path: Path) -> None:
    file = tmp_path / "zenoh.json5"
    file.write_text('{adminspace: {enabled: false}, id: "cd", metadata: "of the file"}')
    settings = effective("-c", str(file), "-i", "ab").settings
    # A router has an admin space, whatever the file says; what --cfg says comes last.
    assert settings.adminspace.enabled
    assert str(settings.id) == "ab"
    later = ("--cfg", "/id:'ef'", "--cfg", "adminspace/enabled:false")
    settings = effective("-i", "ab", *later).settings
    assert (str(settings.id), settings.adminspace.enabled) == ("ef", False)
    whole = effective("-c", str(file), "--cfg", ":{metadata: 'of the command'}").settings
    assert (whole.metadata, whole.id) == ("of the command", None)


def test_everything_that_is_wrong_is_told_at_once_and_nothing_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tapped = tmp_path / "tap.pcapng"
    options = [
        *("-l", "tcp/127.0.0.1:none", "-l", "udp/127.0.0.1:1", "-e", "pigeon/loft"),
        *("-i", "not hexadecimal", "--cfg", "timestamping/enabeld:true"),
        *("--cfg", "transport/link/protocols:['tcp']", "--tap", str(tapped)),
        *("--cfg", "downsampling:[{id:'a',flows:['egress'],rules:[]},{id:'a',rules:[]}]"),
    ]
    assert main(["router", *options]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("problems:")
    text = "\n".join(lines)
    for word in ("none", "pigeon", "udp/127.0.0.1:1", "ZenohID", "enabeld", "downsampling"):
        assert word in text, word
    assert int(lines[0].split()[-2]) == len(lines) - 1
    assert not tapped.exists()


def test_plugins_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["router", "-P", "rest"]) == 2
    assert main(["router", "--rest-http-port", "8000"]) == 2
    assert main(["router", "--tap-size", "1"]) == 2
    assert capsys.readouterr().err.count("zenwire router: ") == 3


def test_it_says_how_it_goes_and_what_was_lost(tmp_path: Path) -> None:
    tapped = tmp_path / "tap.pcapng"
    options = ("-l", "tcp/127.0.0.1:0", "-i", "abcd", "--status", "0.2", "--tap", str(tapped))
    with running(*options) as (process, line):
        place = line.split()[-1]
        assert process.stderr is not None

        async def talk() -> None:
            settings = aio.Config.from_dict({"mode": "client", "connect": {"endpoints": [place]}})
            async with aio.open(settings) as one:
                # Nobody may change how it is configured.
                await one.put("@/abcd/router/config/metadata", "{}")
                await one.put("k", bytes(1_000))
                await asyncio.to_thread(wait_for, "1 client; in ")
                await asyncio.to_thread(wait_for, "lost or refused: 1 admin space: write")

        def wait_for(text: str) -> None:
            assert process.stderr is not None
            while text not in (said := process.stderr.readline()):
                assert said, text

        asyncio.run(asyncio.wait_for(talk(), TIMEOUT))
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait(TIMEOUT) == 0
        assert re.search(r"router: the tap has \d+ packets with [\d,]+ bytes\n$", rest), rest
    kinds = Counter(
        entry.kind
        for window in windows(tapped)
        for entry in Conversation(column_scan(), Want()).feed(window)
    )
    assert kinds["put"] == 2
