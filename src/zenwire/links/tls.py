"""tls/host:port: TLS 1.2 and 1.3 over tcp; 1.3 only where both sides show certificates."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import os
import ssl
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from zenwire.links import tcp
from zenwire.links.base import Attach, Link, Listener
from zenwire.links.endpoint import Options, host_and_port, options_of, shown
from zenwire.links.errors import EndpointError, LinkError, link_error
from zenwire.links.sockets import is_wildcard
from zenwire.links.stream import StreamLink, carry
from zenwire.wire.locator import EndPoint

__all__ = ["TlsLink", "client_context", "connect", "listen", "server_context"]

HANDSHAKE_TIMEOUT_MS: Final = 10_000
_EXPIRATION_CHECK: Final = 600.0
"""Seconds between looks at the wall clock, which may be set while a link lives."""


class TlsLink(StreamLink):
    """A link that knows the certificate of the other side."""

    _expiration: asyncio.TimerHandle | None = None

    def watch(self, expires: float) -> None:
        """End the link when the certificate of the other side does (seconds since 1970)."""
        left = expires - time.time()
        if left <= 0:
            reason = f"the certificate of {self.dst} has expired"
            self.abort(LinkError(shown(self.endpoint), reason, "renew it and connect again"))
            return
        loop = asyncio.get_running_loop()
        wait = min(left, _EXPIRATION_CHECK)
        self._expiration = loop.call_later(wait, self.watch, expires)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._expiration is not None:
            self._expiration.cancel()
        super().connection_lost(exc)


async def connect(endpoint: EndPoint, attach: Attach) -> Link:
    """Connect, and verify the other side. Raises LinkError."""
    options = options_of(endpoint)
    # Reading the public authorities takes a tenth of a second.
    context = await asyncio.to_thread(client_context, endpoint, options)
    link = TlsLink(endpoint, attach, _describe)
    sock = await tcp.dial(endpoint, options)
    host, _ = host_and_port(endpoint.address)
    try:
        async with asyncio.timeout(_handshake_timeout(options)):
            await carry(link, sock, context, server_name=host)
    except (OSError, ValueError) as e:
        raise link_error(shown(endpoint), "TLS handshake", e) from e
    return link


async def listen(endpoint: EndPoint, attach: Attach) -> Listener:
    """Listen with a certificate. Raises LinkError."""
    options = options_of(endpoint)
    listener = await tcp.start_listener(
        endpoint,
        attach,
        lambda attach: TlsLink(endpoint, attach, _describe),
        server_context(endpoint, options),
        _handshake_timeout(options),
    )
    # The certificate names a host; the address it resolved to would not verify.
    host, _ = host_and_port(endpoint.address)
    _, port = host_and_port(listener.endpoint.address)
    if not is_wildcard(host):
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        listener.endpoint = EndPoint(endpoint.protocol, address, endpoint.metadata, endpoint.config)
    return listener


def client_context(endpoint: EndPoint, options: Options) -> ssl.SSLContext:
    """How this node connects: the public authorities and the configured one are trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.check_hostname = options.flag("verify_name_on_connect", default=True)
    context.load_default_certs()
    _trust(context, endpoint, options)
    if options.flag("enable_mtls", default=False):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        _identify(context, endpoint, options, "connect")
    return context


def server_context(endpoint: EndPoint, options: Options) -> ssl.SSLContext:
    """How this node lets others connect; with mTLS, only those with a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _identify(context, endpoint, options, "listen")
    if options.flag("enable_mtls", default=False):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        if not _trust(context, endpoint, options):
            reason = "mTLS needs the authority that signs the certificates of others"
            raise EndpointError(shown(endpoint), "config", reason, "set root_ca_certificate_file")
    return context


def _handshake_timeout(options: Options) -> float:
    given = options.whole("tls_handshake_timeout_ms")
    return (HANDSHAKE_TIMEOUT_MS if given is None else given) / 1000


def _describe(link: StreamLink) -> None:
    tcp.describe(link)
    certificate = link.transport.get_extra_info("peercert") or {}
    names = [
        value
        for attributes in certificate.get("subject", ())
        for key, value in attributes
        if key == "commonName"
    ]
    link.facts = replace(link.facts, common_name=names[0] if names else None)
    expires = certificate.get("notAfter")
    watched = options_of(link.endpoint).flag("close_link_on_expiration", default=False)
    if expires is not None and watched and isinstance(link, TlsLink):
        link.watch(ssl.cert_time_to_seconds(expires))


def _trust(context: ssl.SSLContext, endpoint: EndPoint, options: Options) -> bool:
    """Trust the configured authority, which may itself be signed by another."""
    pem = _pem(endpoint, options, "root_ca_certificate")
    if pem is None:
        return False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError) as e:
        reason = f"root_ca_certificate holds no certificate in PEM ({e})"
        raise EndpointError(shown(endpoint), "config", reason) from None
    return True


def _identify(context: ssl.SSLContext, endpoint: EndPoint, options: Options, side: str) -> None:
    """Load this node's own certificate and private key."""
    name = shown(endpoint)
    parts = []
    for what in (f"{side}_certificate", f"{side}_private_key"):
        pem = _pem(endpoint, options, what)
        if pem is None:
            verb = "listening" if side == "listen" else "mTLS"
            raise EndpointError(name, "config", f"{verb} needs {what}", f"set {what}_file")
        parts.append(pem)
    with _as_file(parts[0]) as certificate, _as_file(parts[1]) as key:
        try:
            context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, OSError, ValueError) as e:
            said = getattr(e, "reason", None) or e
            reason = f"{side}_certificate and {side}_private_key do not fit or are no PEM ({said})"
            raise EndpointError(name, "config", reason) from None


def _no_password() -> str:
    # Without this, OpenSSL would ask at the terminal and everything would stand still.
    raise ValueError("the private key is encrypted; zenoh takes plain ones only")


def _pem(endpoint: EndPoint, options: Options, what: str) -> bytes | None:
    """The content of a certificate or key, by whichever of its three keys is set."""
    raw = options.text(f"{what}_raw")
    if raw is not None:
        return raw.encode()
    encoded = options.text(f"{what}_base64")
    if encoded is not None:
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            reason = f"{what}_base64 is not base64"
            raise EndpointError(shown(endpoint), "config", reason) from None
    path = options.text(f"{what}_file")
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as e:
        raise link_error(shown(endpoint), f"reading {what}_file", e) from e


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path for OpenSSL, which reads files only. On Linux the bytes never leave memory."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("pem", os.MFD_CLOEXEC)
        try:
            os.write(fd, content)
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
        return
    handle, path = tempfile.mkstemp()  # readable by this user only
    try:
        os.write(handle, content)
        os.close(handle)
        yield path
    finally:
        Path(path).unlink()
