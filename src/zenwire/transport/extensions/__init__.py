"""The negotiated extensions of INIT and OPEN, each in a file of its own, with one interface."""

from zenwire.transport.extensions.auth_pubkey import AuthPubkey
from zenwire.transport.extensions.auth_usrpwd import AuthUsrpwd
from zenwire.transport.extensions.base import Agreed, Extension, Fields, Negotiation
from zenwire.transport.extensions.compression import Compression
from zenwire.transport.extensions.lowlatency import LowLatency
from zenwire.transport.extensions.multilink import MultiLink
from zenwire.transport.extensions.patch import Patch
from zenwire.transport.extensions.qos import Qos
from zenwire.transport.extensions.qoslink import QosLink
from zenwire.transport.extensions.region import Region

__all__ = [
    "ACCEPTING",
    "ADMITTING",
    "CONCLUDING",
    "CONFIRMING",
    "EXTENSIONS",
    "OFFERING",
    "Agreed",
    "Extension",
    "Fields",
    "Negotiation",
]

EXTENSIONS: tuple[Extension, ...] = (
    Qos(),
    QosLink(),
    AuthPubkey(),
    AuthUsrpwd(),
    MultiLink(),
    LowLatency(),
    Compression(),
    Patch(),
    Region(),
)
"""All there are. Shared memory is not: it is never offered, and skipped when it comes."""


def _having(step: str) -> tuple[Extension, ...]:
    """Those that have something to do in a step."""
    usual = getattr(Extension, step)
    return tuple(e for e in EXTENSIONS if getattr(type(e), step) is not usual)


OFFERING = _having("offer")
ACCEPTING = _having("accept")
CONFIRMING = _having("confirm")
ADMITTING = _having("admit")
CONCLUDING = _having("conclude")
