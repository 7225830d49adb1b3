"""Locator and EndPoint: where a node is reached, ``proto/address[?metadata][#config]``."""

from __future__ import annotations

from dataclasses import dataclass

from zenwire.errors import EncodeError
from zenwire.wire.buffer import utf8
from zenwire.wire.limits import LOCATOR_MAX

__all__ = ["EndPoint", "Locator", "pairs"]


@dataclass(frozen=True, slots=True)
class Locator:
    """What nodes tell each other: a protocol, an address, and metadata such as ``prio=1-3``."""

    protocol: str
    address: str
    metadata: str = ""

    def __post_init__(self) -> None:
        if not self.protocol or not self.address:
            raise EncodeError(f"a locator is protocol/address, not {self.protocol}/{self.address}")
        text = Locator.__str__(self)
        if "#" in text:
            raise EncodeError("a locator has no '#' part: that is local configuration")
        if "/" in self.protocol or "?" in self.address:
            raise EncodeError(f"{text!r} would be read as another locator")
        if len(utf8(text)) > LOCATOR_MAX:
            raise EncodeError(f"a locator has at most {LOCATOR_MAX} bytes")

    @classmethod
    def parse(cls, text: str) -> Locator:
        """``tcp/127.0.0.1:7447?prio=1-3``. Raises EncodeError."""
        protocol, slash, rest = text.partition("/")
        if not slash:
            raise EncodeError(f"a locator is protocol/address, as in tcp/127.0.0.1:7447: {text!r}")
        address, _, metadata = rest.partition("?")
        return Locator(protocol, address, metadata)

    def __str__(self) -> str:
        metadata = f"?{self.metadata}" if self.metadata else ""
        return f"{self.protocol}/{self.address}{metadata}"


@dataclass(frozen=True, slots=True)
class EndPoint(Locator):
    """A Locator with what this node alone needs to know of it, such as certificates."""

    config: str = ""

    @classmethod
    def parse(cls, text: str) -> EndPoint:
        """``tls/host:7447?rel=1#enable_mtls=true``. Raises EncodeError."""
        where, _, config = text.partition("#")
        locator = Locator.parse(where)
        return EndPoint(locator.protocol, locator.address, locator.metadata, config)

    @property
    def locator(self) -> Locator:
        """The part that may be told to others."""
        return Locator(self.protocol, self.address, self.metadata)

    def __str__(self) -> str:
        config = f"#{self.config}" if self.config else ""
        return Locator.__str__(self) + config


def pairs(text: str) -> dict[str, str]:
    """``k=v;k2=v2`` of metadata or configuration. A key without ``=`` has an empty value."""
    found = (pair.partition("=") for pair in text.split(";") if pair)
    return {key: value for key, _, value in found}
