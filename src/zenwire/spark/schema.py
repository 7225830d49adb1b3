"""Arrow schemas as Spark's."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import types as t

__all__ = ["struct_of"]

_TYPES: Final[dict[pa.DataType, t.DataType]] = {
    pa.bool_(): t.BooleanType(),
    pa.int8(): t.ByteType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.string(): t.StringType(),
    pa.binary(): t.BinaryType(),
}


def struct_of(schema: pa.Schema) -> t.StructType:
    """The same columns for Spark. Raises KeyError for a type that our tables do not have."""
    return t.StructType(
        [t.StructField(field.name, _TYPES[field.type], field.nullable) for field in schema]
    )
