from __future__ import annotations

import socket
from ipaddress import ip_address

from zenwire.links import interfaces as module
from zenwire.links.interfaces import interfaces, names_of, route_source


def test_loopback_is_there_with_its_address_and_the_systems_name() -> None:
    loopback = [interface for interface in interfaces() if interface.loopback]
    assert any(ip_address("127.0.0.1") in interface.addresses for interface in loopback)
    for interface in interfaces():
        assert socket.if_indextoname(interface.index) == interface.name


def test_an_address_has_the_name_of_its_interface() -> None:
    (name,) = names_of(ip_address("127.0.0.1"))
    assert names_of(ip_address("::ffff:127.0.0.1")) == (name,)
    assert names_of(ip_address("203.0.113.77")) == ()
    assert name in names_of(ip_address("0.0.0.0"))


def test_the_source_towards_loopback_is_loopback() -> None:
    assert route_source(("127.0.0.1", 9)) == "127.0.0.1"
    assert route_source(("::1", 9, 0, 0)) == "::1"


def test_without_the_systems_list_there_is_a_guess() -> None:
    for interface in module._guessed():
        assert interface.name == ""
        assert len(interface.addresses) == 1
