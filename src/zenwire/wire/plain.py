"""Messages as plain JSON types, for people, logs and test vectors.

The form follows from the definition, and nothing that the wire carries is lost:

- a message is an object with ``"message"``, its protocol name, and its fields by name; where
  two messages share a name, ``"variant"`` is the class (``InitSyn``, ``InitAck``)
- a struct is an object with its fields by name
- bytes are lowercase hexadecimal; text, numbers and booleans are themselves, whatever their size
- enumerations are names (``"DATA_HIGH"``); a WhatAmIMatcher is the list of its names
- a ZenohID and a locator are their text
- a WireExpr is ``{"scope", "suffix", "mapping"}``
- a QoS is ``{"priority", "congestion_control", "express"}``, and has ``"raw"`` besides if its
  byte has bits that these do not tell
- a Resolution is ``{"frame_sn", "request_id"}``, in bits
- an Encoding is ``{"id", "name", "schema"}``; the name follows from the id
- a Timestamp is ``{"time", "id"}``, the time as NTP64

Fields that have their default are left out, unless they are asked for.
"""

from __future__ import annotations

import dataclasses
from enum import IntEnum
from typing import Any

from zenwire.wire.define import Spec, Unknown, spec_of
from zenwire.wire.encoding import Encoding
from zenwire.wire.locator import Locator
from zenwire.wire.values import QoS, Resolution, WhatAmIMatcher, ZenohId

__all__ = ["PlainValue", "plain_value", "to_plain"]

PlainValue = bool | int | str | list["PlainValue"] | dict[str, "PlainValue"] | None


def to_plain(message: object, *, full: bool = False) -> dict[str, PlainValue]:
    """A message or struct as JSON types; ``full`` includes fields that have their default.

    Raises TypeError for anything else.
    """
    try:
        spec = spec_of(type(message))
    except KeyError:
        raise TypeError(f"{type(message).__name__} is not a message or struct") from None
    plain: dict[str, PlainValue] = {}
    if spec.scope:
        plain["message"] = spec.name
    if spec.variant[0]:
        plain["variant"] = spec.cls.__name__
    for name, default in _defaults(spec):
        value = getattr(message, name)
        if full or value != default:
            plain[name] = plain_value(value, full=full)
    return plain


def _defaults(spec: Spec) -> list[tuple[str, Any]]:  # Any: defaults are of the fields' types
    return [(e.name, () if isinstance(e, Unknown) else e.default) for e in spec.fields]


def plain_value(value: object, *, full: bool = False) -> PlainValue:
    """One field's value. Raises TypeError for what no field can hold."""
    match value:
        case None | bool() | str():
            return value
        case WhatAmIMatcher():
            return [str(member.name) for member in value]
        case IntEnum():
            return value.name
        case int():
            return value
        case bytes():
            return value.hex()
        case ZenohId() | Locator():
            return str(value)
        case tuple():
            return [plain_value(item, full=full) for item in value]
        case QoS():
            return _qos(value)
        case Resolution():
            return {"frame_sn": value.frame_sn, "request_id": value.request_id}
        case Encoding():
            schema = None if value.schema is None else value.schema.hex()
            return {"id": value.id, "name": value.name, "schema": schema}
    try:
        return to_plain(value, full=full)
    except TypeError:
        if not dataclasses.is_dataclass(value):
            raise
    names = [f.name for f in dataclasses.fields(value)]
    return {name: plain_value(getattr(value, name), full=full) for name in names}


def _qos(value: QoS) -> PlainValue:
    told = QoS.of(value.priority, value.congestion_control, value.express)
    plain: dict[str, PlainValue] = {
        "priority": value.priority.name,
        "congestion_control": value.congestion_control.name,
        "express": value.express,
    }
    if told != value:
        plain["raw"] = value.raw
    return plain
