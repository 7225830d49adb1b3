from __future__ import annotations

import pytest

from zenwire.errors import EncodeError
from zenwire.wire.locator import EndPoint, Locator, pairs


@pytest.mark.parametrize(
    ("text", "locator"),
    [
        ("tcp/127.0.0.1:7447", Locator("tcp", "127.0.0.1:7447")),
        ("udp/[::1]:7447?prio=1-3;rel=1", Locator("udp", "[::1]:7447", "prio=1-3;rel=1")),
        ("unixsock-stream//tmp/a/b", Locator("unixsock-stream", "/tmp/a/b")),
        ("tcp/h:1?a?b", Locator("tcp", "h:1", "a?b")),
    ],
)
def test_locator(text: str, locator: Locator) -> None:
    assert Locator.parse(text) == locator
    assert str(locator) == text


@pytest.mark.parametrize("text", ["", "tcp", "/h:1", "tcp/", "tcp/?a=1"])
def test_a_locator_has_a_protocol_and_an_address(text: str) -> None:
    with pytest.raises(EncodeError, match="protocol/address"):
        Locator.parse(text)


@pytest.mark.parametrize("text", ["tcp/h:1#iface=lo", "tcp/h:1?a=1#b", "t#cp/h"])
def test_a_locator_has_no_configuration(text: str) -> None:
    with pytest.raises(EncodeError, match="local configuration"):
        Locator.parse(text)


@pytest.mark.parametrize(("protocol", "address"), [("a/b", "c"), ("tcp", "h?1")])
def test_a_locator_is_read_as_it_was_made(protocol: str, address: str) -> None:
    with pytest.raises(EncodeError, match="another locator"):
        Locator(protocol, address)


def test_a_locator_has_255_bytes() -> None:
    assert len(str(Locator("tcp", "h" * 251))) == 255
    with pytest.raises(EncodeError, match="255 bytes"):
        Locator("tcp", "h" * 252)
    with pytest.raises(EncodeError, match="255 bytes"):
        Locator("tcp", "é" * 126)


def test_an_endpoint_is_a_locator_with_configuration() -> None:
    text = "tls/h:7447?rel=1#enable_mtls=true;bind=a#b"
    endpoint = EndPoint.parse(text)
    assert endpoint == EndPoint("tls", "h:7447", "rel=1", "enable_mtls=true;bind=a#b")
    assert str(endpoint) == text
    assert endpoint.locator == Locator.parse("tls/h:7447?rel=1")
    assert type(endpoint.locator) is Locator
    assert EndPoint.parse("tcp/h:1").config == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=1;b=2", {"a": "1", "b": "2"}),
        ("a=1=2;;flag", {"a": "1=2", "flag": ""}),
        ("join=224.0.0.1|224.0.0.2", {"join": "224.0.0.1|224.0.0.2"}),
    ],
)
def test_pairs(text: str, found: dict[str, str]) -> None:
    assert pairs(text) == found
