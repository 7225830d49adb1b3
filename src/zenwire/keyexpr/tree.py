"""A tree of key expressions, for finding the few that concern a key among very many.

Each node stands for a chunk. A lookup with a plain key follows, at each node, the one plain
child with the key's chunk and the wildcard children that match it; its cost depends on the key
and on the wildcards that lie on its way, not on how many expressions there are. Chunks with `$*`
are indexed by their literals (`patterns.py`). No walk recurses, so the depth of an expression is
limited by memory only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar, overload

from zenwire.keyexpr.canon import validate
from zenwire.keyexpr.nodes import Node
from zenwire.keyexpr.walk import Relation, including, related

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zenwire.keyexpr.expression import KeyExpr

__all__ = ["KeyExprTree"]

V = TypeVar("V")
D = TypeVar("D")

# `including` is several times faster on keys of usual length, but quadratic: beyond this many
# chunks, a stored `**/a/a/a/...` would cost more than the general walk.
_SHORT = 64


class KeyExprTree(Generic[V]):
    """Maps key expressions to values, and finds those that match a key expression.

    Keys are canonical texts or `KeyExpr`; answers have texts. `insert` checks a text and
    raises `KeyExprError`. A text that is not canonical is never stored, so `get`, `in` and
    `remove` do not find it; the searches must not be given one. The tree must not change while an iterator is in use.
    """

    __slots__ = ("_root", "_size")

    def __init__(self) -> None:
        self._root: Node[V] = Node()
        self._size = 0

    def insert(self, key: KeyExpr | str, value: V) -> None:
        """Map the key to the value, in place of the value it had."""
        text = str(key)
        if isinstance(key, str):
            validate(text)
        node = self._root
        for chunk in text.split("/"):
            node = node.grow(chunk)
        if node.key is None:
            self._size += 1
            node.key = text
        node.value = value

    def remove(self, key: KeyExpr | str) -> V:
        """Forget the key, and the nodes only it needed; its value. `KeyError` if absent."""
        path: list[tuple[Node[V], str]] = []
        node: Node[V] | None = self._root
        for chunk in str(key).split("/"):
            if node is None:
                break
            path.append((node, chunk))
            node = node.child(chunk)
        if node is None or node.key is None:
            raise KeyError(str(key))
        value = node.value
        node.key = None
        del node.value
        self._size -= 1
        while path and node.is_bare():
            node, chunk = path.pop()
            node.drop(chunk)
        return value

    @overload
    def get(self, key: KeyExpr | str) -> V | None: ...
    @overload
    def get(self, key: KeyExpr | str, default: D) -> V | D: ...
    def get(self, key: KeyExpr | str, default: D | None = None) -> V | D | None:
        """The value of exactly this key, or the default."""
        node = self._find(str(key))
        return default if node is None else node.value

    def __contains__(self, key: KeyExpr | str) -> bool:
        return self._find(str(key)) is not None

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items())

    def items(self) -> Iterator[tuple[str, V]]:
        """All keys with their values, in no particular order."""
        stack = [self._root]
        while stack:
            node = stack.pop()
            if node.key is not None:
                yield node.key, node.value
            stack.extend(node.children())

    def intersecting(self, key: KeyExpr | str) -> Iterator[tuple[str, V]]:
        """The stored expressions that share a key with this one, each once, in no order."""
        text = str(key)
        if "*" not in text:
            # To share the only key of a plain text is to include it.
            return self.including(text)
        return _entries(related(self._root, text.split("/"), Relation.INTERSECTING))

    def including(self, key: KeyExpr | str) -> Iterator[tuple[str, V]]:
        """The stored expressions that include this one, each once, in no order."""
        chunks = str(key).split("/")
        if len(chunks) <= _SHORT:
            return _entries(including(self._root, chunks))
        return _entries(related(self._root, chunks, Relation.INCLUDING))

    def included_by(self, key: KeyExpr | str) -> Iterator[tuple[str, V]]:
        """The stored expressions that this one includes, each once, in no order."""
        return _entries(related(self._root, str(key).split("/"), Relation.INCLUDED))

    def _find(self, text: str) -> Node[V] | None:
        node: Node[V] | None = self._root
        for chunk in text.split("/"):
            if node is None:
                return None
            node = node.child(chunk)
        return node if node is not None and node.key is not None else None


def _entries(nodes: Iterable[Node[V]]) -> Iterator[tuple[str, V]]:
    for node in nodes:
        if node.key is not None:
            yield node.key, node.value
