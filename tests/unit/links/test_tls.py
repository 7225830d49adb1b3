from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.links.ends import Ends, listening, pair
from zenwire.links import EndpointError, LinkError, connect, listen
from zenwire.links.tls import TlsLink


def own(folder: Path, name: str = "server", side: str = "listen") -> str:
    return (
        f"{side}_certificate_file={folder}/{name}.pem;{side}_private_key_file={folder}/{name}.key"
    )


def inline(path: Path, form: str) -> str:
    content = path.read_bytes()
    return content.decode() if form == "raw" else base64.b64encode(content).decode()


@pytest.mark.parametrize("form", ["raw", "base64"])
def test_certificates_and_keys_may_be_inline(certificates: Path, form: str) -> None:
    """Nothing of them is read from a file, or written to one."""
    ours = (
        f"listen_certificate_{form}={inline(certificates / 'server.pem', form)};"
        f"listen_private_key_{form}={inline(certificates / 'server.key', form)};"
        f"root_ca_certificate_{form}={inline(certificates / 'ca.pem', form)};enable_mtls=true"
    )
    theirs = (
        f"#connect_certificate_{form}={inline(certificates / 'client.pem', form)};"
        f"connect_private_key_{form}={inline(certificates / 'client.key', form)};"
        f"root_ca_certificate_{form}={inline(certificates / 'ca.pem', form)};enable_mtls=true"
    )

    async def scenario() -> None:
        async with pair(f"tls/127.0.0.1:0#{ours}", theirs) as (here, there, _):
            assert isinstance(here.link, TlsLink)
            assert isinstance(there.link, TlsLink)
            assert here.link.facts.common_name == "the-server"
            assert there.link.facts.common_name == "the-client"
            cipher = here.link.transport.get_extra_info("cipher")
            assert cipher[1] == "TLSv1.3"

    asyncio.run(scenario())


def test_a_listener_keeps_the_name_that_its_certificate_has(certificates: Path) -> None:
    async def scenario() -> None:
        async with listening(f"tls/localhost:0#{own(certificates)}") as (listener, _):
            (locator,) = listener.locators()
            assert str(locator).startswith("tls/localhost:")
        async with listening(f"tls/[::1]:0#{own(certificates)}") as (listener, _):
            (locator,) = listener.locators()
            assert str(locator).startswith("tls/[::1]:")

    asyncio.run(scenario())


def test_the_name_is_verified_unless_that_is_off(certificates: Path) -> None:
    ca = f"root_ca_certificate_file={certificates}/ca.pem"

    async def scenario() -> None:
        async with listening(f"tls/127.0.0.1:0#{own(certificates, 'elsewhere')}") as (listener, _):
            here = Ends()
            with pytest.raises(LinkError, match="certificate is not accepted") as e:
                await connect(f"{listener.endpoint.locator}#{ca}", here.attach)
            assert "verify_name_on_connect=false" in e.value.hint
            await connect(
                f"{listener.endpoint.locator}#{ca};verify_name_on_connect=false", here.attach
            )
            # The chain still counts.
            with pytest.raises(LinkError, match="certificate is not accepted") as e:
                await connect(
                    f"{listener.endpoint.locator}#verify_name_on_connect=false", here.attach
                )
            assert "root_ca_certificate_file" in e.value.hint
            await here.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("client", "said"), [("", "enable_mtls=true"), ("other", "certificate is not accepted")]
)
def test_mtls_refuses_who_has_no_certificate_of_its_authority(
    certificates: Path, client: str, said: str
) -> None:
    ca = f"root_ca_certificate_file={certificates}/ca.pem"
    shows = f";enable_mtls=true;{own(certificates, client, 'connect')}" if client else ""

    async def scenario() -> None:
        where = f"tls/127.0.0.1:0#{own(certificates)};{ca};enable_mtls=true"
        async with listening(where) as (listener, there):
            here = Ends()
            # With TLS 1.3 a client is done before the server has looked at its certificate.
            await connect(f"{listener.endpoint.locator}#{ca}{shows}", here.attach)
            await here[0].end()
            assert len(there) == 0
            assert (listener.counters.accepted, listener.counters.failed) == (0, 1)
            assert said in str(listener.last_error)

    asyncio.run(scenario())


def test_a_plain_peer_is_told_apart(certificates: Path) -> None:
    ca = f"#root_ca_certificate_file={certificates}/ca.pem"

    async def scenario() -> None:
        async with listening("tcp/127.0.0.1:0") as (listener, there):

            async def answer() -> None:
                end = await there.get()
                await end.size(1)
                end.link.write(b"no TLS here, sorry" * 10)

            task = asyncio.ensure_future(answer())
            with pytest.raises(LinkError) as e:
                await connect(f"tls/{listener.endpoint.address}{ca}", Ends().attach)
            await task
            assert "does not speak TLS" in e.value.hint

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", "listening needs listen_certificate; set listen_certificate_file"),
        ("listen_certificate_file={d}/server.pem", "listening needs listen_private_key"),
        ("listen_certificate_file={d}/none.pem;listen_private_key_file={d}/server.key", "no such"),
        ("listen_certificate_base64=***;listen_private_key_file={d}/server.key", "not base64"),
        ("listen_certificate_raw=x;listen_private_key_file={d}/server.key", "do not fit"),
        (
            "listen_certificate_file={d}/server.pem;listen_private_key_file={d}/client.key",
            "not fit",
        ),
        (
            "listen_certificate_file={d}/server.pem;listen_private_key_file={d}/locked.key",
            "encrypt",
        ),
        ("{own};enable_mtls=true", "mTLS needs the authority"),
        ("{own};enable_mtls=true;root_ca_certificate_raw=x", "holds no certificate"),
    ],
)
def test_what_is_missing_or_wrong_is_said(certificates: Path, config: str, said: str) -> None:
    locked = ["openssl", "ec", "-in", "server.key", "-aes128", "-passout", "pass:x"]
    subprocess.run(
        [*locked, "-out", "locked.key"], cwd=certificates, check=True, capture_output=True
    )
    where = f"tls/127.0.0.1:0#{config.format(d=certificates, own=own(certificates))}".removesuffix(
        "#"
    )
    with pytest.raises(LinkError) as e:
        asyncio.run(listen(where, Ends().attach))
    assert said in str(e.value)


def test_mtls_of_a_client_needs_its_certificate() -> None:
    with pytest.raises(EndpointError, match="mTLS needs connect_certificate"):
        asyncio.run(connect("tls/127.0.0.1:1#enable_mtls=true", Ends().attach))


def test_a_link_can_end_with_its_certificate(certificates: Path) -> None:
    ca = f"#root_ca_certificate_file={certificates}/ca.pem;close_link_on_expiration=true"

    async def scenario() -> None:
        where = f"tls/127.0.0.1:0#{own(certificates)}"
        async with pair(where, ca) as (here, there, _):
            assert isinstance(here.link, TlsLink)
            assert here.link._expiration is not None
            assert isinstance(there.link, TlsLink)
            assert there.link._expiration is None
            here.link.watch(time.time() - 1)
            error = await here.end()
            assert error is not None
            assert "has expired" in error.reason

    asyncio.run(scenario())


def test_tls_below_1_2_is_not_spoken(certificates: Path) -> None:
    from zenwire.links.endpoint import options_of, parse_endpoint
    from zenwire.links.tls import client_context, server_context

    endpoint = parse_endpoint(f"tls/h:1#{own(certificates)}")
    for make in (client_context, server_context):
        context = make(endpoint, options_of(endpoint))
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
