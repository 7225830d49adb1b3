from __future__ import annotations

import hmac

from zenwire.wire import decode, encode
from zenwire.wire.auth import (
    AuthInitAck,
    AuthInitSyn,
    AuthOpenAck,
    AuthOpenSyn,
    EncryptedNonce,
    PublicKey,
    PublicKeyAndNonce,
    UserPassword,
)
from zenwire.wire.transport import OpenSyn

KEY = PublicKey(modulus=b"\x23", exponent=b"\x03")


def test_user_and_password_take_four_steps() -> None:
    assert encode(AuthInitSyn(user_password=True)).hex() == "02"
    assert encode(AuthInitAck(user_password=4426082428759385126)).hex() == "22a6c8b486ccd0a6b63d"
    proof = AuthOpenSyn(user_password=UserPassword(user=b"u1", tag=bytes(32)))
    assert encode(proof).hex() == "4224" + "027531" + "20" + "00" * 32
    assert encode(AuthOpenAck(user_password=True)).hex() == "02"


def test_the_tag_is_a_keyed_hash_of_the_password() -> None:
    nonce = 4426082428759385126
    tag = hmac.digest(nonce.to_bytes(8, "little"), b"p1", "sha3_256")
    assert tag.hex() == "704ea64f923318c9c516a95b131d632e6c05b13e8df65ab40809d73df2527472"


def test_public_keys_take_four_steps() -> None:
    assert encode(AuthInitSyn(public_key=KEY)).hex() == "4104" + "0123" + "0103"
    challenge = PublicKeyAndNonce(modulus=b"\x23", exponent=b"\x03", nonce=b"\x05")
    assert encode(AuthInitAck(public_key=challenge)).hex() == "4106" + "0123" + "0103" + "0105"
    answer = AuthOpenSyn(public_key=EncryptedNonce(nonce=b"\x05"))
    assert encode(answer).hex() == "4102" + "0105"
    assert encode(AuthOpenAck(public_key=True)).hex() == "01"


def test_the_inner_chain_fills_the_extension() -> None:
    auth = AuthOpenSyn(
        public_key=EncryptedNonce(nonce=b"\x05"),
        user_password=UserPassword(user=b"u", tag=b"t"),
    )
    raw = encode(OpenSyn(lease=10_000, initial_sn=0, cookie=b"", auth=auth))
    inner = "c1020105" + "4204" + "0175" + "0174"
    assert raw.hex() == "c20a0000" + "43" + f"{len(inner) // 2:02x}" + inner
    assert decode(raw, "transport").auth == auth


def test_an_empty_chain_is_no_bytes() -> None:
    raw = encode(OpenSyn(lease=10_000, initial_sn=0, cookie=b"", auth=AuthOpenSyn()))
    assert raw.hex() == "c20a0000" + "4300"
    assert decode(raw, "transport").auth == AuthOpenSyn()
