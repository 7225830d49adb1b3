from __future__ import annotations

import pytest

from zenwire.wire import VERSION, decode, encode
from zenwire.wire.locator import Locator
from zenwire.wire.scouting import Hello, Scout
from zenwire.wire.values import WhatAmI, WhatAmIMatcher, ZenohId

AA09 = ZenohId.parse("aa09")


@pytest.mark.parametrize("what", [WhatAmIMatcher(bits) for bits in range(8)])
def test_scout_asks_by_bitmap(what: WhatAmIMatcher) -> None:
    raw = encode(Scout(version=VERSION, what=what))
    assert raw == bytes([0x01, 0x09, what])
    assert decode(raw, "scouting").what == what


def test_scout_may_name_its_sender() -> None:
    raw = encode(Scout(version=VERSION, zid=AA09, what=WhatAmIMatcher.ROUTER))
    assert raw.hex() == "0109" + "19" + "09aa"
    assert decode(raw, "scouting").zid == AA09


@pytest.mark.parametrize(("index", "whatami"), list(enumerate(WhatAmI)))
def test_hello_answers_by_index(index: int, whatami: WhatAmI) -> None:
    raw = encode(Hello(version=VERSION, zid=AA09, whatami=whatami))
    assert raw == bytes([0x02, 0x09, 0x10 | index]) + AA09.raw
    assert decode(raw, "scouting").whatami is whatami


def test_hello_says_where() -> None:
    locators = (Locator("tcp", "h:1"), Locator("udp", "h:2"))
    raw = encode(Hello(version=9, zid=AA09, whatami=WhatAmI.PEER, locators=locators))
    assert raw[0] == 0x22
    assert raw.endswith(b"\x02\x07tcp/h:1\x07udp/h:2")
    assert decode(raw, "scouting").locators == locators


def test_the_version_is_for_others_to_check() -> None:
    assert decode(b"\x01\x08\x07", "scouting").version == 8
