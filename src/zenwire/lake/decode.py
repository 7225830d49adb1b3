"""Payloads that SQL cannot read, as JSON text: CBOR, ROS 2 CDR and ``zenoh/serialized``.

JSON and text stay in ``payload`` alone: every SQL engine reads them there.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zenwire.columns.samples import DELETE
from zenwire.lake.payloads.messages import Definitions
from zenwire.lake.payloads.values import CBOR, CDR, SERIALIZED, VALUES, values
from zenwire.wire.encoding import ENCODINGS

__all__ = ["decoded"]

_DECODED: Final = pa.array([ENCODINGS.index(name) for name in (CBOR, CDR, SERIALIZED)], pa.int32())
_BYTES: Final = 0
"""Number of ``zenoh/bytes``, which is also the encoding of a message that names none."""
_ROS: Final = re.compile(r"/(\w+::\w+::dds_::\w+_)(?:/|$)")
"""The type name that rmw_zenoh writes into the key of a topic."""


def decoded(batch: pa.RecordBatch, definitions: Definitions) -> pa.StructArray:
    """``json`` and ``fault`` of each payload of a spool's batch, null where nothing is decoded."""
    keys = batch.column("key").dictionary_encode()
    types = [_ros_type(key) for key in keys.dictionary.to_pylist()]
    numbers = pc.fill_null(batch.column("encoding"), _BYTES)
    wanted = pc.is_in(numbers, value_set=_DECODED)
    if any(types):
        of_ros = pa.array([name is not None for name in types]).take(keys.indices)
        wanted = pc.or_(wanted, pc.and_(of_ros, pc.equal(numbers, _BYTES)))
    wanted = pc.and_(wanted, pc.not_equal(batch.column("kind"), DELETE))
    at = np.flatnonzero(np.asarray(wanted))
    if not len(at):
        return pa.nulls(batch.num_rows, VALUES)
    rows = pa.array(at)
    encodings = [CDR if n == _BYTES else ENCODINGS[n] for n in numbers.take(rows).to_pylist()]
    schemas = [
        sent.decode(errors="replace") if sent else types[key]
        for sent, key in zip(
            batch.column("encoding_schema").take(rows).to_pylist(),
            keys.indices.take(rows).to_pylist(),
            strict=True,
        )
    ]
    found = values(
        pa.array(encodings),
        pa.array(schemas, pa.string()),
        batch.column("payload").take(rows),
        definitions,
    )
    # Scatter the decoded rows among nulls.
    place = np.full(batch.num_rows, -1, np.int64)
    place[at] = np.arange(len(at))
    return found.take(pa.array(place, mask=place < 0))


def _ros_type(key: str) -> str | None:
    found = _ROS.search(key)
    return None if found is None else found[1]
