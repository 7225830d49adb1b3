"""Samples as text, by a template, and as JSON."""

from __future__ import annotations

import base64
import json

import pytest

from zenwire import aio
from zenwire.cli.shown import FIELDS, Template, TemplateError, json_of, text_of, value_of
from zenwire.wire.data import Del, Put


def sample(
    payload: bytes = b"hello", encoding: str = "", attachment: bytes | None = None
) -> aio.Sample:
    return aio.Sample(
        "demo/a",
        Put(encoding=aio.Encoding(encoding).wire, attachment=attachment, payload=payload),
    )


@pytest.mark.parametrize(
    ("payload", "encoding", "text"),
    [
        (b"hello\n\tworld", "", "hello\n\tworld"),
        ("grün".encode(), "zenoh/bytes", "grün"),
        (b"a\x00b", "", None),
        (b"\xff\xfe", "", None),
        (b"a\x00b", "text/plain", "a\x00b"),
        (b"\xff", "text/plain", None),
        (b"{}", "application/json;schema", "{}"),
        (b"hello", "zenoh/serialized", None),
        (b"hello", "application/octet-stream", None),
        (b"hello", "my/own", None),
        (b"", "", ""),
    ],
)
def test_what_is_text(payload: bytes, encoding: str, text: str | None) -> None:
    assert value_of(payload, encoding) == text


def test_bytes_for_people() -> None:
    assert text_of(b"\x00\x01", "") == "<2 bytes: 0001>"
    assert text_of(bytes(100), "") == f"<100 bytes: {'00' * 32}...>"


def test_json_tells_text_from_bytes() -> None:
    told = json.loads(json_of(sample(), 5, more=1))
    assert (told["payload"], told["payload_is"]) == ("hello", "text")
    assert (told["key"], told["kind"], told["received_ns"], told["more"]) == ("demo/a", "PUT", 5, 1)
    assert told["timestamp"] is None
    assert "attachment" not in told
    told = json.loads(json_of(sample(b"\xff\x00", "zenoh/serialized", b"\xfe")))
    assert base64.b64decode(told["payload"]) == b"\xff\x00"
    assert base64.b64decode(told["attachment"]) == b"\xfe"
    assert (told["payload_is"], told["attachment_is"]) == ("base64", "base64")
    assert json.loads(json_of(aio.Sample("a", Del())))["kind"] == "DELETE"


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{kind} {key} {payload}", "PUT demo/a hello"),
        (r"{key}\t{size}\n\\{{{hex}}}", "demo/a\t5\n\\{68656c6c6f}"),
        ("{base64}|{attachment}|{source}|{timestamp}", "aGVsbG8=|why||"),
        ("{priority} {congestion_control} {express} {reliability}", "data drop false reliable"),
        ("{received}", "1.000000002"),
        ("{encoding}", "zenoh/bytes"),
        ("", ""),
        (r"\x", r"\x"),
    ],
)
def test_templates(template: str, shown: str) -> None:
    assert Template(template).show(sample(attachment=b"why"), 1_000_000_002) == shown


def test_every_field_can_be_shown() -> None:
    for name in FIELDS:
        Template(f"{{{name}}}").show(sample(), 1)


@pytest.mark.parametrize("template", ["{nothing}", "{", "}", "{key", "{key.__class__}", "{}"])
def test_templates_that_are_none(template: str) -> None:
    with pytest.raises(TemplateError, match="there are key, kind"):
        Template(template)
