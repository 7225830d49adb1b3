"""Each example runs, with either API, and finds another."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import zenwire
from tests.unit.sync.places import TIMEOUT, config, free_port, until

EXAMPLES = Path(__file__).parents[3] / "examples"
either = pytest.mark.parametrize("api", [[], ["--asyncio"]], ids=["sync", "asyncio"])


@contextmanager
def example(name: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), "--no-multicast-scouting", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def output(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=TIMEOUT)
    assert err == ""
    assert process.returncode == 0
    return out.splitlines()


def test_they_are_short() -> None:
    found = sorted(EXAMPLES.glob("z_*.py"))
    assert len(found) == 9
    for path in found:
        assert len(path.read_text().splitlines()) < 60, path


@either
def test_publications(api: list[str]) -> None:
    port = free_port()
    here = f"tcp/127.0.0.1:{port}"
    with (
        example("z_sub.py", "-l", here, "-n", "3", *api) as subscriber,
        example("z_pub.py", "-e", here, "-n", "3", "--interval", "0", *api) as publisher,
    ):
        assert len(output(publisher)) == 3
        key = "demo/example/zenwire-pub"
        assert output(subscriber) == [
            f">> Received SampleKind.PUT ('{key}': '[{n:4}] Pub from zenwire!')" for n in range(3)
        ]


@either
def test_queries_puts_and_liveliness(api: list[str]) -> None:
    port = free_port()
    here = f"tcp/127.0.0.1:{port}"
    with zenwire.open(config(listen=port)) as session:
        session.declare_queryable("demo/*", lambda query: query.reply("demo/1", "yes"))
        with example("z_get.py", "-e", here, "-m", "client", "-s", "demo/*", *api) as process:
            assert output(process) == [">> Received ('demo/1': 'yes')"]
        subscriber = session.declare_subscriber("demo/**")
        with example("z_put.py", "-e", here, "-m", "client", "-p", "x", *api) as process:
            assert subscriber.recv().payload.to_string() == "x"
            assert len(output(process)) == 1
        token = session.liveliness().declare_token("group1/other")
        with example("z_liveliness.py", "-e", here, "-m", "client", "-n", "2", *api) as process:
            assert sorted(output(process)) == [
                ">> 'group1/other' is alive",
                ">> 'group1/zenwire' is alive",
            ]
        token.undeclare()
        with example("z_info.py", "-e", here, "-m", "client", *api) as process:
            assert f"peers: ['{session.zid()}']" in output(process)
        with example("z_queryable.py", "-e", here, "-m", "client", "-n", "1", *api) as process:
            until(lambda: [r for r in session.get("demo/example/zenwire-queryable") if r.ok])
            assert len(output(process)) == 1


@either
def test_scouting(api: list[str]) -> None:
    with example("z_scout.py", "--seconds", "0.1", *api) as process:
        assert output(process) == ["Found 0 nodes."]
