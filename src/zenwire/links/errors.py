"""What can go wrong with a link, as one error that says what, where, and what to try.

- ``LinkError``: a link that cannot be opened, or that broke; has endpoint, reason, hint
    - ``EndpointError``: an endpoint that is written wrongly; has part
"""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Final

from zenwire.errors import ZError

__all__ = ["EndpointError", "LinkError", "link_error"]


class LinkError(ZError):
    """A link that cannot be opened, or that broke.

    ``endpoint`` is its text without secrets, ``hint`` what to try, or empty.
    """

    def __init__(self, endpoint: str, reason: str, hint: str = "") -> None:
        super().__init__(endpoint, reason, hint)
        self.endpoint = endpoint
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.endpoint}: {self.reason}{hint}"


class EndpointError(LinkError, ValueError):
    """An endpoint that is written wrongly, or that asks for what is not there.

    ``part`` is one of endpoint, protocol, address, metadata, config.
    """

    def __init__(self, endpoint: str, part: str, reason: str, hint: str = "") -> None:
        super().__init__(endpoint, reason, hint)
        self.args = (endpoint, part, reason, hint)
        self.part = part

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.part} of {self.endpoint!r}: {self.reason}{hint}"


_HINTS: Final = {
    errno.EADDRINUSE: "another program listens there: choose another port, or 0 for a free one",
    errno.EADDRNOTAVAIL: "no interface of this machine has that address",
    errno.EACCES: "this user may not: ports below 1024 and some files need more rights",
    errno.EPERM: "this user may not: binding to an interface needs CAP_NET_RAW",
    errno.ECONNREFUSED: "nothing listens there: is the node running, and the port right?",
    errno.ENETUNREACH: "there is no route: check the address, and for IPv6 that it is on",
    errno.EHOSTUNREACH: "the host does not answer: check the address and firewalls",
    errno.EAFNOSUPPORT: "this machine has no such addresses: try 0.0.0.0 in place of [::]",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.ENFILE: "the machine is out of open files",
    errno.ENODEV: "there is no such interface",
    errno.ENOENT: "there is no such file",
    errno.EMSGSIZE: "the datagram is larger than the interfaces on its way carry",
}


def link_error(endpoint: str, doing: str, error: BaseException) -> LinkError:
    """An exception of the system, the TLS library or asyncio, as a LinkError."""
    if isinstance(error, LinkError):
        return error
    if isinstance(error, socket.gaierror):
        reason = f"{doing}: the name cannot be resolved ({error.strerror})"
        return LinkError(endpoint, reason, "check the host name, or write an address")
    if isinstance(error, ssl.SSLError):
        return LinkError(endpoint, f"{doing}: {_tls_reason(error)}", _tls_hint(error))
    if isinstance(error, TimeoutError) and error.errno is None:
        return LinkError(endpoint, f"{doing}: no answer in time", "check the address and firewalls")
    if isinstance(error, OSError) and error.errno is not None:
        hint = _HINTS.get(error.errno, "")
        return LinkError(endpoint, f"{doing}: {error.strerror or error}", hint)
    return LinkError(endpoint, f"{doing}: {str(error) or type(error).__name__}")


def _tls_reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not accepted ({_verify_message(error)})"
    return f"TLS failed ({_reason(error) or error})"


def _tls_hint(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        said = _verify_message(error)
        if "mismatch" in said or "valid for" in said:
            return (
                "connect by a name that is in the certificate, or set verify_name_on_connect=false"
            )
        return "root_ca_certificate_file must hold the authority that signed it"
    reason = _reason(error)
    if reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
        return "the other side does not speak TLS: is it a tcp/ endpoint?"
    if "CERTIFICATE_REQUIRED" in reason or "PEER_DID_NOT_RETURN_A_CERTIFICATE" in reason:
        return "mTLS: set enable_mtls=true, connect_certificate_file and connect_private_key_file"
    if "UNKNOWN_CA" in reason or "BAD_CERTIFICATE" in reason:
        return "the other side does not trust our certificate: check its root_ca_certificate_file"
    return ""


# Those that Python makes itself, and not from OpenSSL's queue, lack these attributes.


def _reason(error: ssl.SSLError) -> str:
    return str(getattr(error, "reason", None) or "")


def _verify_message(error: ssl.SSLCertVerificationError) -> str:
    return str(getattr(error, "verify_message", None) or error)
