"""ROS 2 messages in CDR as JSON, by definitions; and bytes that mean harm."""

from __future__ import annotations

import contextlib
import json
import random
import struct
from pathlib import Path

import pytest

from zenwire.lake.payloads.cdr import BYTES_MAX, decode
from zenwire.lake.payloads.fault import Fault
from zenwire.lake.payloads.messages import DefinitionError, Field, load, parse, plain_name

LITTLE, BIG, XCDR2 = b"\0\1\0\0", b"\0\0\0\0", b"\0\7\0\0"
COMMON = load()


def test_a_message_of_messages() -> None:
    data = struct.pack("<6d", 1, 2, 3, 4, 5, 6)
    linear, angular = {"x": 1.0, "y": 2.0, "z": 3.0}, {"x": 4.0, "y": 5.0, "z": 6.0}
    found = decode(LITTLE + data, "geometry_msgs/msg/Twist", COMMON)
    assert found == {"linear": linear, "angular": angular}
    big = struct.pack(">6d", 1, 2, 3, 4, 5, 6)
    assert decode(BIG + big, "geometry_msgs/Twist", COMMON) == found


def test_alignment_strings_and_sequences() -> None:
    """header (two numbers, a text), texts, numbers: each at a multiple of its size."""
    body = struct.pack("<iI", 7, 8) + struct.pack("<I", 5) + b"base\0" + b"\0" * 3
    body += struct.pack("<I", 2) + struct.pack("<I", 2) + b"a\0" + b"\0\0"
    body += struct.pack("<I", 3) + b"bc\0" + b"\0"
    body += struct.pack("<I", 2) + (b"\0" * (-(len(body) + 4) % 8)) + struct.pack("<2d", 0.5, 1.5)
    body += struct.pack("<I", 0) + struct.pack("<I", 0)
    found = decode(LITTLE + body, "sensor_msgs/msg/JointState", COMMON)
    assert found == {
        "header": {"stamp": {"sec": 7, "nanosec": 8}, "frame_id": "base"},
        "name": ["a", "bc"],
        "position": [0.5, 1.5],
        "velocity": [],
        "effort": [],
    }


def test_xcdr2_aligns_to_four() -> None:
    kinds = parse("MSG: p/msg/T\nuint8 a\nfloat64 b\nstring[] c", "here")
    body = struct.pack("<B3xd", 1, 2.5)
    body += struct.pack("<II", 10, 1) + struct.pack("<I", 2) + b"x\0"
    assert decode(XCDR2 + body, "p/T", kinds) == {"a": 1, "b": 2.5, "c": ["x"]}
    wide = struct.pack("<B7xd", 1, 2.5) + struct.pack("<I", 1) + struct.pack("<I", 2) + b"x\0"
    assert decode(LITTLE + wide, "p/T", kinds) == {"a": 1, "b": 2.5, "c": ["x"]}


def test_bytes_are_text_and_large_ones_their_number() -> None:
    kinds = parse("MSG: p/msg/B\nuint8[] data", "here")

    def of(size: int) -> bytes:
        return LITTLE + struct.pack("<I", size) + b"\xab" * size

    assert decode(of(2), "p/B", kinds) == {"data": "abab"}
    assert decode(of(BYTES_MAX + 1), "p/B", kinds) == {"data": f"{BYTES_MAX + 1} bytes"}


def test_numbers_that_json_has_not() -> None:
    body = struct.pack("<d", float("nan"))
    assert decode(LITTLE + body, "std_msgs/Float64", COMMON) == {"data": "NaN"}


@pytest.mark.parametrize(
    ("data", "name", "why"),
    [
        (b"", "std_msgs/Bool", "ends too early"),
        (b"\0\1\0\0", "std_msgs/Bool", "ends too early"),
        (b"\0\3\0\0\1", "std_msgs/Bool", "representation"),
        (b"\0\1\0\0\1", "other_msgs/msg/Thing", "no definition of other_msgs/msg/Thing"),
        (LITTLE + b"\xff\xff\xff\xffabc", "std_msgs/String", "ends too early"),
        (LITTLE + b"\x02\0\0\0\xff\0", "std_msgs/String", "UTF-8"),
        (LITTLE + b"\0" * 9, "std_msgs/Bool", "8 bytes are left over"),
        (LITTLE + b"\0" * 12 + b"\xff\xff\xff\xff" * 2, "geometry_msgs/PoseArray", "elements"),
    ],
)
def test_what_is_no_such_message(data: bytes, name: str, why: str) -> None:
    with pytest.raises(Fault, match=why):
        decode(data, name, COMMON)


def test_random_bytes_give_a_value_or_a_fault() -> None:
    chance = random.Random(4)
    names = sorted(COMMON)
    for _ in range(20_000):
        data = chance.choice([LITTLE, BIG, XCDR2]) + chance.randbytes(chance.randrange(80))
        with contextlib.suppress(Fault):
            json.dumps(decode(data, chance.choice(names), COMMON))


def test_definitions_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "share" / "robot_msgs" / "msg"
    folder.mkdir(parents=True)
    (folder / "Arm.msg").write_text(
        "# an arm\nuint8 LEFT=0\nstring NAME='a # b'\nstring<=10 name\nJoint[<=3] joints\n"
        "float32[2] span [1.0, 2.0]\nbool on true\n"
    )
    (folder / "Joint.msg").write_text("float64 angle\n")
    kinds = load(tmp_path / "share")
    assert kinds["robot_msgs/msg/Arm"] == (
        Field("name", "string", None),
        Field("joints", "robot_msgs/msg/Joint", 0),
        Field("span", "float32", 2),
        Field("on", "bool", None),
    )
    for name in ("robot_msgs/Arm", "robot_msgs::msg::dds_::Arm_", "robot_msgs/msg/Arm"):
        assert plain_name(name) == "robot_msgs/msg/Arm"


@pytest.mark.parametrize(
    "text",
    [
        "uint8 a",
        "MSG: p/msg/A\nuint8",
        "MSG: p/msg/A\nuint8[99999999] a",
        "MSG: p/msg/A\nB b\nMSG: p/msg/B\nA[] a",
    ],
)
def test_what_is_no_definition(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.txt").write_text(text)
    with pytest.raises(DefinitionError):
        load(tmp_path / "x.txt")
