"""What entries of a conversation are called: one word for a message and what it carries."""

from __future__ import annotations

from typing import Final

from zenwire.wire.data import Del, Err, Put, Query, Reply
from zenwire.wire.define import messages, spec_of
from zenwire.wire.network import (
    Declare,
    Interest,
    Oam,
    Push,
    Request,
    Response,
    ResponseFinal,
)
from zenwire.wire.transport import (
    Close,
    Fragment,
    Frame,
    InitSyn,
    Join,
    KeepAlive,
    OpenSyn,
    TransportOam,
)

__all__ = ["DATA_KINDS", "KINDS", "NETWORK_KINDS", "QUIET", "TRANSPORT_KINDS", "kind_of"]


def _code(message: type, body: type | None = None) -> int:
    return spec_of(message).id << 5 | (spec_of(body).id if body else 0)


def _declares() -> dict[int, str]:
    """``undeclare`` for what the protocol calls U_SUBSCRIBER and the like."""
    return {
        _code(Declare, spec.cls): "undeclare" if spec.name.startswith("U_") else "declare"
        for spec in messages("declare")
    }


NETWORK_KINDS: Final[dict[int, str]] = {
    _code(Push, Put): "put",
    _code(Push, Del): "delete",
    _code(Request, Query): "query",
    _code(Response, Put): "reply",
    _code(Response, Del): "reply",
    _code(Response, Err): "error",
    _code(ResponseFinal): "final",
    _code(Interest): "interest",
    _code(Oam): "oam",
    **_declares(),
}
"""By the id of the message, shifted by five bits, and that of its innermost body."""

TRANSPORT_KINDS: Final[dict[int, str]] = {
    _code(InitSyn): "init",
    _code(OpenSyn): "open",
    _code(Close): "close",
    _code(KeepAlive): "keepalive",
    _code(Frame): "frame",
    _code(Fragment): "fragment",
    _code(Join): "join",
    _code(TransportOam): "link_oam",
}

DATA_KINDS: Final = [
    code for code, kind in NETWORK_KINDS.items() if kind in ("put", "delete", "reply", "error")
]
"""Those of which there are many, and that mean nothing to others."""

QUIET: Final = frozenset({"frame", "fragment", "keepalive"})
"""Told only if they are asked for: they carry what is told anyway."""

KINDS: Final = tuple(
    dict.fromkeys(
        [
            *NETWORK_KINDS.values(),
            *TRANSPORT_KINDS.values(),
            *(spec.name.lower() for spec in messages("scouting")),
            "loss",
            "not_sent",
            "malformed",
        ]
    )
)
"""All there are."""


def kind_of(message: object) -> str:
    """The word for a network message."""
    body = getattr(message, "body", None)
    if isinstance(body, Reply):
        body = body.body
    # An OAM has bytes or a number for a body.
    carried = None if isinstance(message, Oam) or body is None else type(body)
    return NETWORK_KINDS[_code(type(message), carried)]
