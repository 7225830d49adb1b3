"""A column of payloads, by their encodings, as JSON or why there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from zenwire.lake.payloads import cbor, cdr
from zenwire.lake.payloads.fault import Fault
from zenwire.lake.payloads.messages import Definitions
from zenwire.lake.payloads.serialized import Type, json_of, parse_type

__all__ = ["CBOR", "CDR", "PAYLOAD_MAX", "SERIALIZED", "VALUES", "values"]

CBOR: Final = "application/cbor"
CDR: Final = "application/cdr"
SERIALIZED: Final = "zenoh/serialized"
PAYLOAD_MAX: Final = 16 << 20
"""Larger payloads are not looked into: no VARIANT holds them."""
VALUES: Final = pa.struct([pa.field("json", pa.string()), pa.field("fault", pa.string())])

_LONG: Final = re.compile(r"\b(u|)(int|float)(8|16|32|64|128)\b")


def values(
    encodings: pa.Array, schemas: pa.Array, payloads: pa.Array, definitions: Definitions
) -> pa.Array:
    """``VALUES``; null where the encoding is none of these, or there is no payload."""
    found: list[dict[str, str | None] | None] = []
    for encoding, schema, payload in zip(
        encodings.to_pylist(), schemas.to_pylist(), payloads.to_pylist(), strict=True
    ):
        read = _READERS.get(encoding) if payload is not None else None
        if read is None:
            found.append(None)
            continue
        if len(payload) > PAYLOAD_MAX:
            found.append({"json": None, "fault": f"{encoding}: more than {PAYLOAD_MAX} bytes"})
            continue
        try:
            found.append({"json": read(payload, schema or "", definitions), "fault": None})
        except Fault as e:
            found.append({"json": None, "fault": f"{encoding}: {e}"})
    return pa.array(found, VALUES)


def _cbor(payload: bytes, schema: str, definitions: Definitions) -> str:  # noqa: ARG001 - as the others
    return json.dumps(cbor.decode(payload))


def _cdr(payload: bytes, schema: str, definitions: Definitions) -> str:
    if not schema:
        raise Fault("the type is not named, neither by the encoding's schema nor by the key")
    return json.dumps(cdr.decode(payload, schema, definitions))


def _serialized(payload: bytes, schema: str, definitions: Definitions) -> str | None:  # noqa: ARG001 - as the others
    kind = _type(schema)
    if kind is None:
        # Most have no schema: nothing is wrong then, nobody has said what they are.
        if schema:
            raise Fault(f"{schema!r} is no type")
        return None
    found = json_of(kind, payload)
    if found is None:
        raise Fault(f"is no {kind}")
    return found


@lru_cache(maxsize=1024)
def _type(schema: str) -> Type | None:
    """Also with numbers named as zenoh-python does: ``float64`` is ``f64``."""
    text = _LONG.sub(lambda m: f"{m[1] or m[2][0]}{m[3]}", schema.lower())
    try:
        return parse_type(text)
    except (ValueError, RecursionError):
        return None


_Reader = Callable[[bytes, str, Definitions], str | None]
_READERS: Final[dict[Any, _Reader]] = {CBOR: _cbor, CDR: _cdr, SERIALIZED: _serialized}
