"""``zenwire queryable --exec`` with queries that no program can be started for, and its end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.interop.test_commands import LIMIT, World, _asked, ended, until
from tests.ports import free_port
from tests.unit.api.reference import reference

pytestmark = [pytest.mark.interop, pytest.mark.slow]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    port = free_port()
    with (
        reference("router", listen=port, scouting__delay=0) as router,
        reference("client", connect=port) as client,
    ):
        yield World(router, client, port)


def test_parameters_that_no_environment_can_hold(world: World) -> None:
    flags = ["-k", "q/x", "--exec", "echo ran"]
    with (
        world.running("answering for", "queryable", *flags) as process,
        ThreadPoolExecutor(1) as reading,
    ):
        assert process.stdout is not None
        # More than a pipe holds is printed.
        printed = reading.submit(process.stdout.read)
        assert "NUL" in _asked(world, "q/x?a=\0b")
        assert "too long" in _asked(world, f"q/x?a={'b' * 200_000}")
        # Later queries are answered.
        assert _asked(world, "q/x?a=b") == "q/x=ran\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT) == 143
        assert len(printed.result()) > 200_000
        assert process.stderr is not None
        assert process.stderr.read() == b""


def _alive(pid: int) -> bool:
    try:
        # A killed child of a container without an init stays as a zombie.
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def _ask_until(world: World, begun: Path) -> None:
    """Ask, perhaps several times, until a program has begun: the queryable may be unknown yet."""

    def asked() -> bool:
        world.router.get("q/x", timeout=300)
        return begun.exists()

    until(asked)


@pytest.mark.parametrize(
    "what", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=["SIGTERM", "Ctrl-C", "SIGHUP"]
)
def test_the_end_ends_the_programs(world: World, tmp_path: Path, what: signal.Signals) -> None:
    """Also one that ignores SIGTERM, and one that a shell has started in the background."""
    pids = [tmp_path / "shell", tmp_path / "background"]
    command = (
        f"trap '' TERM; sleep 300 & echo $! > {pids[1]}.new; echo $$ > {pids[0]}.new; "
        f"mv {pids[1]}.new {pids[1]}; mv {pids[0]}.new {pids[0]}; wait; sleep 300"
    )
    with world.running("answering for", "queryable", "-k", "q/x", "--exec", command) as process:
        _ask_until(world, pids[0])
        started = [int(path.read_text()) for path in pids]
        assert all(map(_alive, started))
        try:
            process.send_signal(what)
            code, _, err = ended(process)
            until(lambda: not any(map(_alive, started)))
        finally:
            for pid in filter(_alive, started):
                os.kill(pid, signal.SIGKILL)
    assert code == {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}[what]
    assert "Traceback" not in err


def test_a_program_that_ends_on_sigterm_is_not_killed(world: World, tmp_path: Path) -> None:
    begun, cleaned = tmp_path / "begun", tmp_path / "cleaned"
    command = f"trap 'echo done > {cleaned}; exit' TERM; touch {begun}; sleep 300 & wait"
    with world.running("answering for", "queryable", "-k", "q/x", "--exec", command) as process:
        _ask_until(world, begun)
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 143
    assert cleaned.read_text() == "done\n"
