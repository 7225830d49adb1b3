"""Column functions. Those that Spark's own expressions can say run in the JVM."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType

from zenwire.keyexpr import includes, intersects, is_canonical, validate
from zenwire.lake.payloads.serialized import column_of, parse_type
from zenwire.spark.schema import type_of
from zenwire.wire.encoding import CUSTOM, ENCODINGS

__all__ = ["deserialize", "encoding_name", "hlc_time", "ke_includes", "ke_intersects"]


def hlc_time(ntp64: Column | str) -> Column:
    """The time of a 64-bit NTP stamp (a bigint that keeps its bits) as a TIMESTAMP."""
    stamp = _column(ntp64)
    seconds = F.shiftrightunsigned(stamp, 32)
    fraction = stamp.bitwiseAND(F.lit(0xFFFF_FFFF))
    micros = F.shiftrightunsigned(fraction * 1_000_000, 32)
    return F.timestamp_micros(seconds * 1_000_000 + micros)


def encoding_name(number: Column | str) -> Column:
    """The registered name of an encoding id; empty for custom ones, ``unknown(N)`` for others."""
    i = _column(number)
    names = F.array(*map(F.lit, ENCODINGS))
    return (
        F.when(i.between(0, len(ENCODINGS) - 1), F.get(names, i))
        .when(i == CUSTOM, F.lit(""))
        .when(i.isNotNull(), F.concat(F.lit("unknown("), i.cast("string"), F.lit(")")))
    )


def deserialize(payload: Column | str, kind: str) -> Column:
    """A ``zenoh/serialized`` payload as a column of that type; null where it is no such value.

    ``kind`` is written ``u32``, ``str``, ``[f64]``, ``{str: i64}``, ``(u8, str)`` and so on: the
    bytes do not say it. Unsigned numbers have the next larger type, ``u64`` DECIMAL(20, 0), and
    numbers of 128 bits are text; a tuple is a struct of ``_1``, ``_2`` and so on. Bytes that are
    left over make it null too. Raises ValueError for a text that is no type.
    """
    return _deserializer(kind)(_column(payload))


@cache
def _deserializer(kind: str) -> Callable[[Column], Column]:
    parsed = parse_type(kind)

    def values(payloads: pa.Array) -> pa.Array:
        return column_of(parsed, payloads)

    udf: Callable[[Column], Column] = arrow_udf(values, type_of(parsed.arrow))  # type: ignore[call-overload] # its stubs want the type of function named
    return udf


def ke_intersects(a: Column | str, b: Column | str) -> Column:
    """Whether some key belongs to both; null where one is null or no key expression.

    A ``str`` on the left is a column, on the right a key expression.
    """
    return _matcher(intersects)(_column(a), _expression(b))


def ke_includes(a: Column | str, b: Column | str) -> Column:
    """Whether every key of ``b`` belongs to ``a``; null where one is null or no key expression.

    A ``str`` on the left is a column, on the right a key expression.
    """
    return _matcher(includes)(_column(a), _expression(b))


def _column(column: Column | str) -> Column:
    return F.col(column) if isinstance(column, str) else column


def _expression(value: Column | str) -> Column:
    if isinstance(value, str):
        validate(value)
        return F.lit(value)
    return value


@cache
def _matcher(match: Callable[[str, str], bool]) -> Callable[[Column, Column], Column]:
    def matched(a: pa.Array, b: pa.Array) -> pa.Array:
        return match_pairs(match, a, b)

    # Spark takes the type of function from the hints above, and warns if it is named here.
    udf: Callable[[Column, Column], Column] = arrow_udf(matched, BooleanType())  # type: ignore[call-overload] # its stubs want it named
    return udf


def match_pairs(match: Callable[[str, str], bool], a: pa.Array, b: pa.Array) -> pa.Array:
    """Asked once for each pair that occurs: traffic repeats its keys."""
    left, right = a.dictionary_encode(), b.dictionary_encode()
    if not len(left.dictionary) or not len(right.dictionary):
        return pa.nulls(len(a), pa.bool_())
    width = len(right.dictionary)
    wide = pc.multiply(left.indices.cast(pa.int64()), width)
    pairs = pc.add(wide, right.indices.cast(pa.int64())).dictionary_encode()
    lefts = [text if is_canonical(text) else None for text in left.dictionary.to_pylist()]
    rights = [text if is_canonical(text) else None for text in right.dictionary.to_pylist()]
    answers = []
    for pair in pairs.dictionary.to_pylist():
        x, y = lefts[pair // width], rights[pair % width]
        answers.append(None if x is None or y is None else match(x, y))
    return pa.array(answers, pa.bool_()).take(pairs.indices)
