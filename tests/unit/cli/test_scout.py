"""What other nodes say of themselves, in the lines of ``scout``."""

from __future__ import annotations

import json

from zenwire import aio
from zenwire.cli import scout
from zenwire.cli.escaping import escape

HOSTILE = "\x1b]0;owned\x07\x9b\u202e\n"


def test_locators_of_others_are_escaped() -> None:
    where = f"tcp/host{HOSTILE}:7447"
    hello = aio.Hello(aio.WhatAmI.ROUTER, aio.ZenohId(b"\1"), [where])
    line = scout._line(hello, as_json=False)
    assert "\\x1b]0;owned" in line
    assert escape(line[:-1]) == line[:-1]
    line = scout._line(hello, as_json=True)
    assert escape(line[:-1]) == line[:-1]
    assert json.loads(line)["locators"] == [where]
