"""Declarations: what DECLARE carries.

An undeclaration may name its key besides its id; between routers the id is 0 and the key alone
counts.
"""

from __future__ import annotations

from zenwire.wire import kinds as k
from zenwire.wire.define import ext, field, flag, message
from zenwire.wire.values import QueryableInfo, WireExpr

__all__ = [
    "DeclareFinal",
    "DeclareKeyExpr",
    "DeclareQueryable",
    "DeclareSubscriber",
    "DeclareToken",
    "UndeclareKeyExpr",
    "UndeclareQueryable",
    "UndeclareSubscriber",
    "UndeclareToken",
]


@message("D_KEYEXPR", scope="declare", id=0x00)
class DeclareKeyExpr:
    """From here on, scope ``expr_id`` of the sender's table stands for ``key``."""

    N = flag(5)

    expr_id: int = field(k.z16)
    key: WireExpr = field(k.WireExprKind(N, None))


@message("U_KEYEXPR", scope="declare", id=0x01)
class UndeclareKeyExpr:
    """``expr_id`` is free to be used again."""

    expr_id: int = field(k.z16)


@message("D_SUBSCRIBER", scope="declare", id=0x02)
class DeclareSubscriber:
    """The sender wants what is put on keys that intersect ``key``."""

    N = flag(5)
    M = flag(6)

    id: int = field(k.z32, column="entity_id")
    key: WireExpr = field(k.WireExprKind(N, M))


@message("U_SUBSCRIBER", scope="declare", id=0x03)
class UndeclareSubscriber:
    """The subscriber ``id`` is gone."""

    id: int = field(k.z32, column="entity_id")
    key: WireExpr | None = ext(0xF, k.wire_expr_ext, mandatory=True, default=None)


@message("D_QUERYABLE", scope="declare", id=0x04)
class DeclareQueryable:
    """The sender answers queries on keys that intersect ``key``."""

    N = flag(5)
    M = flag(6)

    id: int = field(k.z32, column="entity_id")
    key: WireExpr = field(k.WireExprKind(N, M))
    info: QueryableInfo = ext(
        0x1, k.queryable_info, default=QueryableInfo(), column="queryable_info"
    )


@message("U_QUERYABLE", scope="declare", id=0x05)
class UndeclareQueryable:
    """The queryable ``id`` is gone."""

    id: int = field(k.z32, column="entity_id")
    key: WireExpr | None = ext(0xF, k.wire_expr_ext, mandatory=True, default=None)


@message("D_TOKEN", scope="declare", id=0x06)
class DeclareToken:
    """A liveliness token: ``key`` is alive."""

    N = flag(5)
    M = flag(6)

    id: int = field(k.z32, column="entity_id")
    key: WireExpr = field(k.WireExprKind(N, M))


@message("U_TOKEN", scope="declare", id=0x07)
class UndeclareToken:
    """The token ``id`` is gone."""

    id: int = field(k.z32, column="entity_id")
    key: WireExpr | None = ext(0xF, k.wire_expr_ext, mandatory=True, default=None)


@message("D_FINAL", scope="declare", id=0x1A)
class DeclareFinal:
    """All current declarations that an INTEREST asked for have been sent."""
