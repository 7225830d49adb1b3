"""What payloads are made of: bytes, text, and values of types that other languages know too."""

from __future__ import annotations

import json
from typing import Any

import zenwire as zenoh


def main() -> None:
    # Bytes and text are given as they are, and read as either.
    payload = zenoh.ZBytes("text")
    assert payload.to_string() == "text"
    assert payload.to_bytes() == b"text"

    # Whatever else can be made bytes is for the program to make.
    settings = {"speed": 3, "modes": ["slow", "fast"]}
    payload = zenoh.ZBytes(json.dumps(settings))
    assert json.loads(payload.to_string()) == settings

    # Numbers, text, and collections of them have a format of their own; types say how large.
    values: list[tuple[Any, Any]] = [
        (bool, True),
        (int, -42),
        (zenoh.ext.UInt16, zenoh.ext.UInt16(65_535)),
        (zenoh.ext.Float32, zenoh.ext.Float32(0.5)),
        (str, "text"),
        (bytes, b"bytes"),
        (list[str], ["a", "b"]),
        (tuple[int, str], (1, "one")),
        (dict[str, list[int]], {"primes": [2, 3, 5], "squares": [1, 4, 9]}),
        (list[tuple[str, dict[int, float]]], [("one", {1: 0.5}), ("none", {})]),
    ]
    for kind, value in values:
        payload = zenoh.ext.z_serialize(value)
        read = zenoh.ext.z_deserialize(kind, payload)
        assert read == value
        print(f"{getattr(kind, '__name__', kind)}: {value!r} in {len(payload)} bytes")


if __name__ == "__main__":
    main()
