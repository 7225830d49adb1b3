from __future__ import annotations

from typing import Any

import pytest

from zenwire.errors import EncodeError
from zenwire.wire import decode, encode
from zenwire.wire.declare import (
    DeclareFinal,
    DeclareKeyExpr,
    DeclareQueryable,
    DeclareSubscriber,
    DeclareToken,
    UndeclareKeyExpr,
    UndeclareQueryable,
    UndeclareSubscriber,
    UndeclareToken,
)
from zenwire.wire.values import Mapping, QueryableInfo, WireExpr

ENTITIES = [
    (DeclareSubscriber, UndeclareSubscriber, 0x02),
    (DeclareQueryable, UndeclareQueryable, 0x04),
    (DeclareToken, UndeclareToken, 0x06),
]


def of(text: str) -> Any:
    return decode(bytes.fromhex(text), "declare")


@pytest.mark.parametrize(("declare", "id"), [(d, id) for d, _, id in ENTITIES])
@pytest.mark.parametrize(
    ("key", "flags", "text"),
    [
        (WireExpr(0, "a"), 0x60, "000161"),
        (WireExpr(2), 0x40, "02"),
        (WireExpr(2, "/1", Mapping.RECEIVER), 0x20, "02022f31"),
        (WireExpr(2, "", Mapping.RECEIVER), 0x00, "02"),
    ],
)
def test_entities_have_an_id_and_a_key(
    declare: Any, id: int, key: WireExpr, flags: int, text: str
) -> None:
    declaration = declare(id=300, key=key)
    assert encode(declaration).hex() == f"{id | flags:02x}" + "ac02" + text
    assert of(encode(declaration).hex()) == declaration


@pytest.mark.parametrize(("undeclare", "id"), [(u, id) for _, u, id in ENTITIES])
@pytest.mark.parametrize(
    ("key", "text"),
    [
        (WireExpr(0, "", Mapping.RECEIVER), "5f020000"),
        (WireExpr(4), "5f020204"),
        (WireExpr(1, "/**"), "5f0503012f2a2a"),
        (WireExpr(1, "/**", Mapping.RECEIVER), "5f0501012f2a2a"),
    ],
)
def test_an_undeclaration_may_name_its_key(
    undeclare: Any, id: int, key: WireExpr, text: str
) -> None:
    """The suffix has no length: it reaches to the end of the extension."""
    undeclaration = undeclare(id=0, key=key)
    assert encode(undeclaration).hex() == f"{0x81 + id:02x}" + "00" + text
    assert of(encode(undeclaration).hex()) == undeclaration


@pytest.mark.parametrize(("undeclare", "id"), [(u, id) for _, u, id in ENTITIES])
def test_an_undeclaration_without_its_key_is_whole(undeclare: Any, id: int) -> None:
    assert of(f"{id + 1:02x}07") == undeclare(id=7)


def test_an_alias_has_no_mapping() -> None:
    assert (
        encode(DeclareKeyExpr(expr_id=1, key=WireExpr(0, "a/b"))).hex()
        == "20" + "01" + "0003612f62"
    )
    on_alias = DeclareKeyExpr(expr_id=1, key=WireExpr(2, "/x", Mapping.RECEIVER))
    assert encode(on_alias).hex() == "20" + "01" + "02022f78"
    assert of("200102022f78") == on_alias
    with pytest.raises(EncodeError, match="no mapping"):
        encode(DeclareKeyExpr(expr_id=1, key=WireExpr(2)))


def test_an_alias_is_released() -> None:
    assert encode(UndeclareKeyExpr(expr_id=65_535)).hex() == "01ffff03"
    with pytest.raises(EncodeError, match="wider than z16"):
        encode(UndeclareKeyExpr(expr_id=65_536))


@pytest.mark.parametrize(
    ("info", "text"),
    [
        (QueryableInfo(), "440102"),
        (QueryableInfo(True), "c401022101"),
        (QueryableInfo(True, 1), "c40102218102"),
        (QueryableInfo(False, 1), "c40102218002"),
    ],
)
def test_queryable_info_is_sent_unless_it_says_nothing(info: QueryableInfo, text: str) -> None:
    queryable = DeclareQueryable(id=1, key=WireExpr(2), info=info)
    assert encode(queryable).hex() == text
    assert of(text) == queryable


def test_final_is_a_header() -> None:
    assert encode(DeclareFinal()) == b"\x1a"
