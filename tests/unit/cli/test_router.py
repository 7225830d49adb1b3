"""``zenwire router`` as a service: it starts, says where it is, and ends when it is told to."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zenwire import aio
from zenwire.cli import router
from zenwire.cli.main import parser_of

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_routes_until_it_is_told_to_end(number: signal.Signals) -> None:
    with running("-l", "tcp/127.0.0.1:0", "-i", "abcd") as (process, line):
        found = re.fullmatch(r"zenwire router: router abcd listens on (\S+)\n", line)
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
