"""What bytes are taken for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded import CAPTURES, _streams
from tests.unit.wire.inspect.test_dissect import assert_covered, faults
from zenwire.wire.inspect.dissect import Form
from zenwire.wire.inspect.guess import guess


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_recorded_streams(path: Path) -> None:
    for stream in _streams(path).values():
        assert guess(stream).form is Form.STREAM


@pytest.mark.parametrize(
    ("digits", "form"),
    [
        ("c1091207cc0ac8ff812701", Form.BATCH),
        ("0b00c1091207cc0ac8ff812701", Form.STREAM),
        ("01 09 07", Form.SCOUTING),
        ("02 09 12 09cc", Form.SCOUTING),
        ("62 0a cafcd65d", Form.BATCH),
        ("42 0a f6c3cc15 01 00", Form.BATCH),
        ("04", Form.BATCH),
        ("0300", Form.BATCH),
        ("020003 00", Form.STREAM),
        ("0200 0000 0300", Form.LOWLATENCY),
        ("7d0003662f31010a41414141414141414141", Form.NETWORK),
        ("12000000 7d0003662f31010a41414141414141414141", Form.LOWLATENCY),
        ("01ef25f6c3cc157d0003792f3101286101000e60616161616161", Form.COMPRESSED),
        ("00 25 f6c3cc15 7d0003792f31 010161", Form.COMPRESSED),
        ("0f00 00 25 f6c3cc15 7d0003792f31 010161", Form.COMPRESSED_STREAM),
        ("26ecc98b21414141", Form.BATCH),
        ("df0121080100", Form.NETWORK),
    ],
)
def test_guess(digits: str, form: Form) -> None:
    found = guess(bytes.fromhex(digits))
    assert found.form is form
    assert found.why == "all of it decodes as such"
    assert not faults(assert_covered(bytes.fromhex(digits), form))


def test_guess_tells_what_fits_as_well() -> None:
    assert guess(bytes.fromhex("020000000300")).others == (Form.BATCH,)


@pytest.mark.parametrize(
    ("digits", "form", "others"),
    [
        ("0105706c61696e", Form.BATCH, (Form.DATA,)),
        ("c1091207cc0ac8ff8127", Form.BATCH, ()),
        ("0b00c1091207cc0ac8ff8127", Form.STREAM, ()),
        ("7d0003662f31010a4141", Form.NETWORK, ()),
    ],
)
def test_a_guess_where_nothing_fits_gets_furthest(
    digits: str, form: Form, others: tuple[Form, ...]
) -> None:
    found = guess(bytes.fromhex(digits))
    assert (found.form, found.others) == (form, others)
    assert "nothing decodes completely" in found.why
