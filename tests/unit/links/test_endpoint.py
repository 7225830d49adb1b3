from __future__ import annotations

import pytest

from zenwire.errors import ZError
from zenwire.links.endpoint import (
    CONFIG,
    PROTOCOLS,
    host_and_port,
    options_of,
    parse_endpoint,
    priorities_of,
    reliability_of,
    shown,
)
from zenwire.links.errors import EndpointError
from zenwire.wire.locator import EndPoint, Locator


def test_an_endpoint_has_four_parts_and_its_keys_are_sorted() -> None:
    endpoint = parse_endpoint("tcp/localhost:7447?rel=1;prio=1-3#so_sndbuf=9;bind=127.0.0.1:0")
    assert endpoint == EndPoint(
        "tcp", "localhost:7447", "prio=1-3;rel=1", "bind=127.0.0.1:0;so_sndbuf=9"
    )
    assert str(endpoint) == "tcp/localhost:7447?prio=1-3;rel=1#bind=127.0.0.1:0;so_sndbuf=9"


def test_options_are_typed_and_absent_ones_have_defaults() -> None:
    options = options_of(
        parse_endpoint("udp/224.0.0.1:1#ttl=3;join=224.0.0.2|224.0.0.3;dscp=0x04|0x10;iface=lo")
    )
    assert options.whole("ttl") == 3
    assert options.whole("so_sndbuf") is None
    assert options.texts("join") == ("224.0.0.2", "224.0.0.3")
    assert options.whole("dscp") == 0x14
    assert options.text("iface") == "lo"
    assert options.without("iface").text("iface") is None
    retry = options_of(
        parse_endpoint("tcp/h:1#retry_period_increase_factor=2.5;exit_on_failure=false")
    )
    assert retry.factor("retry_period_increase_factor") == 2.5
    assert retry.flag("exit_on_failure", default=True) is False
    assert retry.flag("enable_mtls", default=True) is True


def test_of_a_key_that_comes_twice_the_first_counts() -> None:
    assert options_of(parse_endpoint("tcp/h:1#so_sndbuf=1;so_sndbuf=2")).whole("so_sndbuf") == 1


@pytest.mark.parametrize(
    ("text", "part", "said"),
    [
        ("tcp", "endpoint", "it is protocol/address[?metadata][#config]; as in tcp/127.0.0.1:7447"),
        ("quic/h:1", "protocol", "no link here; supported are tcp, tls, udp, ws, unixsock-stream"),
        ("serial//dev/tty", "protocol", "no link here"),
        ("vsock/1:1", "protocol", "no link here"),
        ("unixpipe/x", "protocol", "no link here"),
        ("tpc/h:1", "protocol", "'tpc' is unknown; did you mean 'tcp'? supported are tcp"),
        ("tcp/h:1?pri=1", "metadata", "tcp has no key 'pri'; did you mean 'prio'?"),
        ("tcp/h:1?rel=2", "metadata", "rel=2: it is a number from 0 to 1"),
        ("tcp/h:1?prio=3-1", "metadata", "prio=3-1: it is a priority from 0 to 7, or a range"),
        ("tcp/h:1?prio=8", "metadata", "or a range as in 1-3"),
        ("udp/h:1?rel=1", "metadata", "runs over QUIC"),
        ("tcp/h:1#so_sendbuf=1", "config", "did you mean 'so_sndbuf'?"),
        ("tcp/h:1#xyzzy", "config", "there are bind, dscp, exit_on_failure"),
        ("tcp/h:1#so_sndbuf=big", "config", "so_sndbuf=big: it is a number from 1"),
        ("tcp/h:1#so_sndbuf=0", "config", "it is a number from 1"),
        ("tcp/h:1#bind=1.2.3.4:0;iface=a", "config", "iface and bind exclude each other"),
        ("tcp/h:1#iface", "config", "it must not be empty"),
        ("tcp/h:1#bind=x", "config", "bind=x: it is host:port"),
        ("tcp/h:1#dscp=0x1ff", "config", "below 256"),
        ("tcp/h:1#dscp=x", "config", "below 256"),
        ("tcp/h:1#retry_period_increase_factor=0.5", "config", "it is a number from 1.0 up"),
        ("tls/h:1#enable_mtls=yes", "config", "enable_mtls=yes: it is true or false"),
        ("udp/224.0.0.1:1#join=10.0.0.1", "config", "multicast addresses joined by |"),
        ("udp/224.0.0.1:1#join=x", "config", "multicast addresses joined by |"),
        ("udp/224.0.0.1:1#ttl=256", "config", "it is a number from 0 to 255"),
        ("tcp/h", "address", "it is host:port"),
        ("tcp/h:", "address", "the port '' is not a number"),
        ("tcp/h:65536", "address", "the port '65536' is not a number from 0 to 65535"),
        ("tcp/[::1:1", "address", "between brackets is an IPv6 address"),
        ("tcp/[1.2.3.4]:1", "address", "between brackets is an IPv6 address"),
        ("tcp/" + "h" * 300 + ":1", "endpoint", "255 bytes"),
        ("tcp/\udcff:1", "endpoint", ""),
    ],
)
def test_a_mistake_is_named_with_its_part_and_what_is_valid(
    text: str, part: str, said: str
) -> None:
    with pytest.raises(EndpointError) as e:
        parse_endpoint(text)
    assert isinstance(e.value, ZError)
    assert isinstance(e.value, ValueError)
    assert e.value.part == part
    assert said in str(e.value)
    assert e.value.endpoint == text


def test_every_protocol_knows_the_retry_keys() -> None:
    assert tuple(CONFIG) == PROTOCOLS
    for protocol in PROTOCOLS:
        assert {"retry_period_init_ms", "retry_period_max_ms"} <= set(CONFIG[protocol])


def test_unknown_metadata_of_another_node_is_no_mistake() -> None:
    locator = Locator.parse("tcp/h:1?future=1;prio=2")
    options_of(locator)
    assert priorities_of(locator) == (2, 2)
    assert reliability_of(locator) is None


@pytest.mark.parametrize(("text", "reliable"), [("rel=0", False), ("rel=1", True), ("", None)])
def test_reliability(text: str, reliable: bool | None) -> None:
    assert reliability_of(Locator("tcp", "h:1", text)) is reliable


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:7447", ("127.0.0.1", 7447)),
        ("[::1]:0", ("::1", 0)),
        ("::1:80", ("::1", 80)),
        ("[fe80::1%2]:80", ("fe80::1%2", 80)),
        ("a.b-c:65535", ("a.b-c", 65535)),
    ],
)
def test_host_and_port(text: str, found: tuple[str, int]) -> None:
    assert host_and_port(text) == found


def test_secrets_are_in_no_message() -> None:
    text = "tls/h:1#listen_private_key_raw=SECRET;listen_private_key_base64=U0VD;listen_certificate_raw=PEM"
    endpoint = parse_endpoint(text)
    assert shown(endpoint) == (
        "tls/h:1#listen_certificate_raw=...;"
        "listen_private_key_base64=***;listen_private_key_raw=***"
    )
    for bad in (f"{text};nonsense=1", f"tls/h#{text.partition('#')[2]}", f"x{text}"):
        with pytest.raises(EndpointError) as e:
            parse_endpoint(bad)
        assert "SECRET" not in str(e.value) + repr(e.value)
        assert "U0VD" not in str(e.value) + repr(e.value)
