"""Arrow schemas as Spark's."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import types as t

__all__ = ["struct_of", "type_of"]

_TYPES: Final[dict[pa.DataType, t.DataType]] = {
    pa.bool_(): t.BooleanType(),
    pa.int8(): t.ByteType(),
    pa.int16(): t.ShortType(),
    pa.int32(): t.IntegerType(),
    pa.int64(): t.LongType(),
    pa.float32(): t.FloatType(),
    pa.float64(): t.DoubleType(),
    pa.string(): t.StringType(),
    pa.binary(): t.BinaryType(),
}


def struct_of(schema: pa.Schema) -> t.StructType:
    """The same columns for Spark. Raises KeyError for a type that our tables do not have."""
    return t.StructType([t.StructField(f.name, type_of(f.type), f.nullable) for f in schema])


def type_of(kind: pa.DataType) -> t.DataType:
    """The same type for Spark. Raises KeyError for one that our tables do not have."""
    if pa.types.is_struct(kind):
        return struct_of(pa.schema(list(kind)))
    if pa.types.is_map(kind):
        return t.MapType(type_of(kind.key_type), type_of(kind.item_type))
    if pa.types.is_list(kind):
        return t.ArrayType(type_of(kind.value_type))
    if pa.types.is_decimal(kind):
        return t.DecimalType(kind.precision, kind.scale)
    return _TYPES[kind]
