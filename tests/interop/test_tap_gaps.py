"""``zenwire inspect`` of a router's tap: what is lost, and what nobody had subscribed to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interop.tapped import PART, come_and_go, tap
from zenwire.cli.main import main

pytestmark = pytest.mark.interop


def test_numbers_are_lost_only_while_somebody_had_subscribed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "traffic.pcapng"
    tap(path, come_and_go)
    capsys.readouterr()
    assert main(["inspect", str(path), "--json", "--kind", "loss,not_sent"]) == 0
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    found = [(row["kind"], row[row["kind"]]["reason"], row[row["kind"]]["from_sn"]) for row in told]
    # On the link to the router, and on the link from it.
    assert found == [("loss", "gap", PART)] * 2 + [("not_sent", "not sent here", 2 * PART)] * 2
    assert "2 losses (2 source); 2 gaps not sent here;" in err
