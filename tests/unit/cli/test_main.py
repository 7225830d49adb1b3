"""Dispatch and exit codes of the command; what the commands do is tested with each of them."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass

import pytest

from zenwire.cli import main as cli
from zenwire.errors import DecodeError, Fault


@dataclass
class Stub:
    outcome: int | BaseException
    SUMMARY: str = "a command for tests"
    EXAMPLES: tuple[str, ...] = ("zenwire stub --word hello",)
    word: str = ""

    def arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--word", required=True)

    def run(self, args: argparse.Namespace) -> int:
        self.word = args.word
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


def call(monkeypatch: pytest.MonkeyPatch, stub: Stub) -> int:
    monkeypatch.setitem(cli.COMMANDS, "stub", stub)
    return cli.main(["stub", "--word", "hello"])


@pytest.mark.parametrize("code", [0, 1, 3])
def test_the_command_gets_its_arguments_and_gives_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    stub = Stub(code)
    assert call(monkeypatch, stub) == code
    assert stub.word == "hello"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (DecodeError(Fault.TRUNCATED, 7, "PUT"), "zenwire stub: TRUNCATED at byte 7 in PUT\n"),
        (
            FileNotFoundError(2, "No such file", "x.bin"),
            "zenwire stub: [Errno 2] No such file: 'x.bin'\n",
        ),
    ],
)
def test_expected_errors_are_one_line_on_stderr(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    text: str,
) -> None:
    assert call(monkeypatch, Stub(error)) == 1
    assert capsys.readouterr() == ("", text)


def test_unexpected_errors_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError):
        call(monkeypatch, Stub(ZeroDivisionError()))


def test_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call(monkeypatch, Stub(KeyboardInterrupt())) == 130


def test_a_reader_that_goes_away_is_not_an_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "zenwire", "version"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 0


def test_command_help_has_its_examples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "stub", Stub(0))
    with pytest.raises(SystemExit) as stop:
        cli.main(["stub", "--help"])
    assert stop.value.code == 0
    assert "examples:\n  zenwire stub --word hello" in capsys.readouterr().out
