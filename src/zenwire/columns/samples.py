"""Samples as columns: what a columnar subscriber gives, ``put_batch`` takes and a spool keeps.

The names and types are those of the scan (``zenwire.columns.arrow``), with the key in full. Numbers
are the wire's: ``qos`` is the QoS byte, ``timestamp`` an NTP64, ``encoding`` an id.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["DELETE", "PUT", "SAMPLES"]

PUT: Final = 0
DELETE: Final = 1

SAMPLES: Final = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("kind", pa.int8(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("encoding", pa.int32()),
        pa.field("encoding_schema", pa.binary()),
        pa.field("timestamp", pa.int64()),
        pa.field("timestamp_id", pa.binary()),
        pa.field("source_zid", pa.binary()),
        pa.field("source_eid", pa.int64()),
        pa.field("source_sn", pa.int64()),
        pa.field("attachment", pa.binary()),
        pa.field("qos", pa.int32()),
        pa.field("reliable", pa.bool_(), nullable=False),
        pa.field("time", pa.int64(), nullable=False),
    ]
)
"""``kind`` is PUT or DELETE, ``reliable`` that of the lane, ``time`` when it was received, in
nanoseconds since 1970. Null is what the message did not have: no encoding is zenoh/bytes, no QoS the
default one."""
