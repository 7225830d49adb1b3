"""The key-expression language: canonical form, matching, and a tree for many of them.

Everything here is pure computation on text. `KeyExpr` is the checked value;
`intersects` and `includes` work on text that is already canonical.
"""

from zenwire.keyexpr.canon import canonize, is_canonical, validate
from zenwire.keyexpr.expression import KeyExpr, SetIntersectionLevel
from zenwire.keyexpr.match import includes, intersects
from zenwire.keyexpr.tree import KeyExprTree

__all__ = [
    "KeyExpr",
    "KeyExprTree",
    "SetIntersectionLevel",
    "canonize",
    "includes",
    "intersects",
    "is_canonical",
    "validate",
]
