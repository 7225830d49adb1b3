"""Keys made by OpenSSL, whole and mutilated."""

from __future__ import annotations

import base64
import tomllib
from random import Random

import pytest

from tests.vectors import ROOT
from zenwire.errors import DecodeError
from zenwire.transport import PublicKey, read_private_key, read_public_keys

KEYS = tomllib.loads((ROOT / "transport_keys.toml").read_text())
PUBLIC = PublicKey(int(KEYS["modulus"], 16), KEYS["exponent"])


@pytest.mark.parametrize("form", ["pkcs1", "pkcs8"])
def test_private_keys(form: str) -> None:
    key = read_private_key("a comment\n" + KEYS[form])
    assert key.public == PUBLIC
    random = Random(1).randbytes
    assert key.decrypt(PUBLIC.encrypt(b"nonce", random)) == b"nonce"
    assert read_public_keys(KEYS[form]) == frozenset()


def test_public_keys() -> None:
    assert read_public_keys(KEYS["public_pkcs1"]) == {PUBLIC}
    assert read_public_keys(KEYS["public_x509"] + KEYS["public_pkcs1"]) == {PUBLIC}
    assert read_public_keys("no key at all") == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        KEYS["other_algorithm"],
        KEYS["public_pkcs1"],
        KEYS["pkcs1"] + KEYS["pkcs8"],
        KEYS["pkcs1"].replace("M", "*"),
        "x" * 100_000,
    ],
    ids=["none", "algorithm", "public", "two", "base64", "long"],
)
def test_what_is_no_private_key(text: str) -> None:
    with pytest.raises(DecodeError):
        read_private_key(text)


@pytest.mark.parametrize("form", ["pkcs1", "pkcs8", "public_pkcs1", "public_x509"])
def test_every_cut_and_many_changes_are_refused_or_another_key(form: str) -> None:
    head, *body, foot = KEYS[form].strip().splitlines()
    raw = base64.b64decode("".join(body))
    read = read_public_keys if "public" in form else read_private_key

    def text(data: bytes) -> str:
        return f"{head}\n{base64.b64encode(data).decode()}\n{foot}"

    read(text(raw))
    for n in range(len(raw)):
        with pytest.raises(DecodeError):
            read(text(raw[:n]))
    with pytest.raises(DecodeError):
        read(text(raw + b"\0"))
    random = Random(2)
    for _ in range(500):
        changed = bytearray(raw)
        changed[random.randrange(len(raw))] = random.randrange(256)
        try:
            read(text(bytes(changed)))
        except DecodeError:
            continue
