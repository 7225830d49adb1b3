"""Programs that end without `close`, on every version of Python that is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import zenwire
from tests.unit.sync.places import TIMEOUT

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
SOURCE = Path(zenwire.__file__).parent.parent

OPEN = """
import asyncio, sys, threading, time
import zenwire
from zenwire.handlers import Callback

alone = {"scouting": {"multicast": {"enabled": False}}, "listen": {"endpoints": []}}

def say(*words):
    # One write: others say something at the same time.
    sys.stdout.write(" ".join(words) + "\\n")

def told(name):
    return Callback(lambda item: say("got", name), drop=lambda: say("dropped", name))
"""


@cache
def interpreter(version: str) -> str | None:
    """A Python of this version: this one, one on the path, or one of pyenv."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places: list[str | None] = [shutil.which(f"python{version}")]
    places += (str(found) for found in root.glob(f"{version}.*/bin/python"))
    for place in filter(None, places):
        asked = [place, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(asked, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == version:
            return place
    return None


def output(version: str, program: str) -> list[str]:
    """What the program printed, sorted. It must end well, with nothing on stderr."""
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    ended = subprocess.run(  # our own program
        [python, "-c", OPEN + program],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return sorted(ended.stdout.splitlines())


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("put", [False, True])
def test_callbacks_get_what_waits_and_their_end(version: str, put: bool) -> None:
    program = f"""
async def coroutine(item):
    say("got", "coroutine")

session = zenwire.open(alone)
subscriber = session.declare_subscriber("a", told("subscriber"))
session.declare_subscriber("a", told("unnamed"))
queryable = session.declare_queryable("q", told("queryable"))
token = session.liveliness().declare_subscriber("l", told("liveliness"))
publisher = session.declare_publisher("b")
listener = publisher.declare_matching_listener(told("listener"))
looped = session.declare_subscriber(
    "a", Callback(coroutine, drop=lambda: say("dropped", "coroutine")))
direct = session.declare_subscriber(
    "a", Callback(lambda item: say("got", "direct"), lambda: say("dropped", "direct"),
                  indirect=False))
if {put}:
    session.put("a", "x")
"""
    samples = ("coroutine", "direct", "subscriber", "unnamed")
    others = ("listener", "liveliness", "queryable")
    expected = [f"dropped {name}" for name in samples + others]
    assert output(version, program) == sorted(
        expected + ([f"got {name}" for name in samples] if put else [])
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_one_that_hangs_keeps_nobody_from_its_end(version: str) -> None:
    program = """
running = threading.Event()

def hang(item):
    running.set()
    time.sleep(600)

session = zenwire.open(alone)
stuck = session.declare_subscriber("a", hang)
many = [session.declare_subscriber("a", told(str(number))) for number in range(20)]
session.put("a", "x")
running.wait()
"""
    names = range(20)
    assert output(version, program) == sorted(
        f"{what} {name}" for what in ("dropped", "got") for name in names
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_program_of_asyncio(version: str) -> None:
    program = """
from zenwire import aio

async def wait(item):
    say("got", "waiting")
    await asyncio.Event().wait()

async def main():
    session = await aio.open(alone)
    await session.declare_subscriber("a", told("plain"))
    await session.declare_subscriber("a", Callback(wait, drop=lambda: say("dropped", "waiting")))
    await session.put("a", "x")
    await asyncio.sleep(0.01)

asyncio.run(main())
"""
    assert output(version, program) == [
        "dropped plain",
        "dropped waiting",
        "got plain",
        "got waiting",
    ]
