from __future__ import annotations

from typing import Any

import pytest

from zenwire.wire import decode, encode
from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.encoding import Encoding
from zenwire.wire.structs import QueryBody, SourceInfo, Timestamp
from zenwire.wire.values import ConsolidationMode, ZenohId

CC14 = ZenohId.parse("cc14")
STAMP = Timestamp(time=1, id=CC14)
STAMPED = "010214cc"
SOURCE = SourceInfo(zid=CC14, eid=6, sn=300)
SOURCED = "061014cc06ac02"


def of(text: str) -> Any:
    return decode(bytes.fromhex(text), "data")


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (Put(payload=b""), "0100"),
        (Put(timestamp=STAMP, payload=b"x"), "21" + STAMPED + "0178"),
        (Put(encoding=Encoding(4), payload=b"x"), "41" + "08" + "0178"),
        (
            Put(timestamp=STAMP, encoding=Encoding(4, b"s"), payload=b"x"),
            "61" + STAMPED + "090173" + "0178",
        ),
        (Put(source_info=SOURCE, payload=b""), "81" + "41" + SOURCED + "00"),
        (Put(shm=True, payload=b""), "81" + "12" + "00"),
        (Put(attachment=b"a", payload=b""), "81" + "430161" + "00"),
        (Del(), "02"),
        (Del(timestamp=STAMP), "22" + STAMPED),
        (Del(source_info=SOURCE, attachment=b"a"), "82" + "c1" + SOURCED + "420161"),
        (Query(), "03"),
        (Query(consolidation=ConsolidationMode.LATEST), "2303"),
        (Query(parameters="a=1"), "43" + "03613d31"),
        (Query(consolidation=ConsolidationMode.NONE, parameters="a"), "63" + "01" + "0161"),
        (
            Query(body=QueryBody(encoding=Encoding(4), payload=b"body"), attachment=b"att"),
            "83" + "c30508626f6479" + "4503617474",
        ),
        (
            Query(shm=True, body=QueryBody(encoding=Encoding(), payload=b"")),
            "83" + "84" + "430100",
        ),
        (Reply(body=Del()), "0402"),
        (Reply(consolidation=ConsolidationMode.MONOTONIC, body=Put(payload=b"")), "2402" + "0100"),
        (Err(payload=b"bad"), "05" + "03626164"),
        (Err(encoding=Encoding(1), payload=b""), "45" + "02" + "00"),
        (Err(source_info=SOURCE, shm=True, payload=b""), "85" + "c1" + SOURCED + "12" + "00"),
    ],
)
def test_forms(message: Any, text: str) -> None:
    assert encode(message).hex() == text
    assert of(text) == message


@pytest.mark.parametrize("mode", ConsolidationMode)
def test_consolidation(mode: ConsolidationMode) -> None:
    assert of(f"23{mode:02x}").consolidation is mode
    assert of(f"24{mode:02x}02").consolidation is mode


@pytest.mark.parametrize("value", ["04", "7f", "8001"])
def test_an_unknown_consolidation_is_auto(value: str) -> None:
    assert of("23" + value) == Query()


def test_the_default_encoding_is_the_same_as_none() -> None:
    assert of("41" + "00" + "0178") == of("010178")


def test_put_and_del_have_their_attachment_at_different_ids() -> None:
    assert of("81" + "430161" + "00").attachment == b"a"
    assert of("82" + "420161").attachment == b"a"
    assert of("82" + "430161").attachment is None


def test_parameters_are_opaque_here() -> None:
    text = "a=1;b=2|3&_time=[now()..]"
    assert of(encode(Query(parameters=text)).hex()).parameters == text
