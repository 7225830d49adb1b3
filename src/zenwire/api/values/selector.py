"""What a query asks for: a key expression, and parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TypeAlias

from zenwire.keyexpr import KeyExpr

__all__ = ["IntoKeyExpr", "IntoParameters", "IntoSelector", "Parameters", "Selector", "key_expr_of"]

IntoKeyExpr: TypeAlias = KeyExpr | str


def key_expr_of(value: IntoKeyExpr) -> KeyExpr:
    """The KeyExpr that an argument stands for. Raises TypeError and KeyExprError."""
    if isinstance(value, KeyExpr):
        return value
    if not isinstance(value, str):
        raise TypeError(f"key_expr is a KeyExpr or str, not {type(value).__name__}")
    return KeyExpr(value)


class Parameters:
    """``k=v;k2=v2;flag``: kept as the text that was given, without separators at its end."""

    __slots__ = ("_text",)

    _text: str

    def __init__(self, parameters: IntoParameters | None = None) -> None:
        if isinstance(parameters, Parameters):
            self._text = str(parameters)
        elif isinstance(parameters, Mapping):
            if not all(isinstance(part, str) for pair in parameters.items() for part in pair):
                raise TypeError("keys and values of parameters are text")
            self._text = _joined(parameters.items())
        elif parameters is None or isinstance(parameters, str):
            self._text = (parameters or "").rstrip(";=|")
        else:
            raise TypeError(f"parameters are text or a dict, not {type(parameters).__name__}")

    @classmethod
    def of(cls, value: IntoParameters | None) -> Parameters:
        """The Parameters that an argument stands for; those of others are not shared."""
        return cls(value)

    def is_empty(self) -> bool:
        """Return True if there are no parameters."""
        return not self._text

    def get(self, key: str, default: str | None = None) -> str | None:
        """The first value of a key. A key without one has the empty text."""
        return next((v for k, v in self if k == key), default)

    def values(self, key: str) -> list[str]:
        """The values of a key, which are separated by ``|``."""
        found = self.get(key)
        return [] if found is None else found.split("|")

    def insert(self, key: str, value: str) -> str | None:
        """Set the value of a key. Returns the one before."""
        before = self.get(key)
        self._text = _joined([*((k, v) for k, v in self if k != key), (key, value)])
        return before

    def remove(self, key: str) -> str | None:
        """Take a key away. Returns its value."""
        before = self.get(key)
        self._text = _joined((k, v) for k, v in self if k != key)
        return before

    def extend(self, parameters: IntoParameters) -> None:
        """Take those of others too; their values win."""
        others = list(Parameters(parameters))
        names = {key for key, _ in others}
        self._text = _joined([*((k, v) for k, v in self if k not in names), *others])

    def is_ordered(self) -> bool:
        """Whether the keys are in the order of their bytes."""
        keys = [key.encode() for key, _ in self]
        return all(a <= b for a, b in pairwise(keys))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __contains__(self, item: str) -> bool:
        return self.get(item) is not None

    def __getitem__(self, item: str) -> str | None:
        return self.get(item)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        split = (pair.partition("=") for pair in self._text.split(";") if pair)
        return ((key, value) for key, _, value in split)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Parameters):
            return self._text == other._text
        return self._text == other if isinstance(other, str) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # they can change

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__


IntoParameters: TypeAlias = Parameters | Mapping[str, str] | str


def _joined(pairs: Iterable[tuple[str, str]]) -> str:
    return ";".join(f"{key}={value}" if value else key for key, value in pairs if key)


class Selector:
    """``key/expr?parameters``. With ``parameters`` given, the first argument is the key alone."""

    __slots__ = ("_key_expr", "_parameters")

    def __init__(self, arg: IntoKeyExpr, /, parameters: IntoParameters | None = None) -> None:
        if not isinstance(arg, KeyExpr | str):
            raise TypeError(f"a selector is text or a KeyExpr, not {type(arg).__name__}")
        if parameters is None and isinstance(arg, str):
            arg, _, parameters = arg.partition("?")
        self._key_expr = key_expr_of(arg)
        self._parameters = Parameters(parameters)

    @classmethod
    def of(cls, value: IntoSelector) -> Selector:
        """The Selector that an argument stands for."""
        return value if isinstance(value, Selector) else cls(value)

    @property
    def key_expr(self) -> KeyExpr:
        """Key expression before the ``?``."""
        return self._key_expr

    @key_expr.setter
    def key_expr(self, key_expr: IntoKeyExpr) -> None:
        self._key_expr = key_expr_of(key_expr)

    @property
    def parameters(self) -> Parameters:
        """A copy, as in the reference: set it to change it."""
        return Parameters(self._parameters)

    @parameters.setter
    def parameters(self, parameters: IntoParameters) -> None:
        self._parameters = Parameters(parameters)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self._key_expr == other._key_expr and self._parameters == other._parameters

    __hash__ = None  # type: ignore[assignment] # it can change

    def __str__(self) -> str:
        return f"{self._key_expr}?{self._parameters}" if self._parameters else str(self._key_expr)

    def __repr__(self) -> str:
        return f'sel"{self}"'


IntoSelector: TypeAlias = Selector | KeyExpr | str
