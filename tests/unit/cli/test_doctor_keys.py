"""Keys that almost match, and why they do not."""

from __future__ import annotations

import pytest

from zenwire.cli.doctor_keys import misses, published_key
from zenwire.keyexpr import intersects


@pytest.mark.parametrize(
    ("wanted", "key", "why", "instead"),
    [
        ("sensor/temp", "robot1/sensor/temp", "namespace", "**/sensor/temp"),
        ("sensor/*", "a/b/sensor/temp", "namespace", "**/sensor/*"),
        ("robot1/sensor/temp", "sensor/temp", "not below 'robot1'", "sensor/temp"),
        ("Robot/*", "robot/temp", "case", "robot/temp"),
        ("robot", "robot/temp", "deeper", "robot/**"),
        ("robot/temp/raw", "robot/temp", "earlier", "robot/temp"),
        ("robot/temprature", "robot/temperature", "almost", "robot/temperature"),
        ("fleet/**", "fleet/@v1/gps", "@v1", "fleet/@v1/**"),
        ("**", "@ros2_lv/0/x", "@ros2_lv", "@ros2_lv/**"),
        ("fleet/*/gps", "fleet/@v1", "", ""),
    ],
)
def test_misses(wanted: str, key: str, why: str, instead: str) -> None:
    found = misses(wanted, [key, "entirely/other/things"])
    if not why:
        assert found == []
        return
    [miss] = found
    assert (miss.key, miss.instead) == (key, instead)
    assert why in miss.why
    assert intersects(miss.instead, key)


def test_what_matches_is_no_miss() -> None:
    assert misses("robot/**", ["robot/temp"]) == []


def test_the_likeliest_come_first_and_not_all() -> None:
    keys = [f"prefix{n}/robot/temp" for n in range(20)] + ["Robot/temp"]
    found = misses("robot/temp", keys)
    assert len(found) == 5
    assert found[0].key == "Robot/temp"


def test_publishers_by_their_tokens() -> None:
    token = (
        "@ros2_lv/0/zid/0/11/MP/%/%/talker/%ns%chatter/std_msgs::msg::dds_::String_/RIHS01_x/::,7"
    )
    assert published_key(token) == "0/ns/chatter/std_msgs::msg::dds_::String_/RIHS01_x"
    assert published_key(token.replace("/MP/", "/MS/")) is None
    assert published_key("robot/temp/@adv/pub/zid/1/_") == "robot/temp"
    assert published_key("robot/1") is None
