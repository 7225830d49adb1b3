"""Completion: what shells are told is what the parser knows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from zenwire.cli.main import COMMANDS, main


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def completed(path: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    program = f"source {path}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _zenwire; "
    program += 'printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_bash(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "zenwire.bash"
    path.write_text(script(capsys, "bash"))
    assert set(completed(path, "zenwire", "")) == {*COMMANDS, "--help", "--version"}
    assert completed(path, "zenwire", "doc") == ["doctor"]
    assert completed(path, "zenwire", "sub", "--form") == ["--format"]
    assert completed(path, "zenwire", "put", "-m", "") == ["peer", "client", "router"]
    assert completed(path, "zenwire", "put", "--priority", "data_") == ["data_high", "data_low"]
    assert completed(path, "zenwire", "put", "-k", "") == []
    assert completed(path, "zenwire", "completion", "") == ["bash", "zsh", "fish"]
    (tmp_path / "zenoh.json5").touch()
    file = str(tmp_path / "zenoh")
    assert completed(path, "zenwire", "sub", "-c", file) == [f"{file}.json5"]
    # What only the command itself uses is not offered.
    assert "--until-eof" not in completed(path, "zenwire", "bench", "--")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_others_have_every_command_and_flag(
    capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    text = script(capsys, shell)
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", text)
    for flag in ("format", "congestion-control", "no-multicast-scouting"):
        assert f"-l {flag} " in text if shell == "fish" else f"--{flag}[" in text
