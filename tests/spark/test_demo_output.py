"""The demo's answers are whole, however long a text is."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"
REASON = f"the session with {'8b' * 16} is lost, and what it had for us perhaps"


def test_a_long_text_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    demo = runpy.run_path(str(DEMO))
    demo["print_table"](("kind", "reason", "times"), [("session", REASON, "2"), ("a", "", "-")])
    head, *lines = capsys.readouterr().out.splitlines()
    column = slice(head.index("reason"), head.index("times"))
    assert " ".join(line[column].strip() for line in lines).strip() == REASON
    assert [line.split()[-1] for line in (lines[0], lines[-1])] == ["2", "-"]
    assert max(map(len, lines)) <= 80
