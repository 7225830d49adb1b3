from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from zenwire.lake.payloads.serialized import DEPTH_MAX, column_of, json_of, parse_type
from zenwire.spark.functions import deserialize

GOOD: list[tuple[str, str, Any, str]] = [
    ("u8", "ff", 255, "255"),
    ("u16", "0201", 0x102, "258"),
    ("u32", "ffffffff", 2**32 - 1, "4294967295"),
    ("u64", "ff" * 8, 2**64 - 1, str(2**64 - 1)),
    ("i8", "ff", -1, "-1"),
    ("i16", "0080", -(2**15), "-32768"),
    ("i32", "2a000000", 42, "42"),
    ("i64", "feffffffffffffff", -2, "-2"),
    ("u128", "ff" * 16, str(2**128 - 1), f'"{2**128 - 1}"'),
    ("i128", "fb" + "ff" * 15, "-5", "-5"),
    ("f32", "0000003f", 0.5, "0.5"),
    ("f64", "000000000000f87f", pytest.approx(float("nan"), nan_ok=True), '"NaN"'),
    ("f64", "000000000000f0ff", float("-inf"), '"-Infinity"'),
    ("bool", "01", True, "true"),
    ("str", "02c3a9", "\u00e9", '"\\u00e9"'),
    ("bytes", "026162", b"ab", '"6162"'),
    ("[u8]", "03010203", [1, 2, 3], "[1, 2, 3]"),
    ("[u8]", "830001020300"[:8] + "03", [1, 2, 3], "[1, 2, 3]"),
    ("[[str]]", "0201016100", [["a"], []], '[["a"], []]'),
    ("{str: i32}", "0201610100000001620200" + "0000", [("a", 1), ("b", 2)], '{"a": 1, "b": 2}'),
    ("{str:u8}", "020161010161" + "02", [("a", 2)], '{"a": 2}'),
    ("{(u8, u8): bool}", "01010201", [({"_1": 1, "_2": 2}, True)], '{"[1, 2]": true}'),
    ("(u8, str)", "010178", {"_1": 1, "_2": "x"}, '[1, "x"]'),
    ("(u8, (f32, bool),)", "030000003f01", {"_1": 3, "_2": {"_1": 0.5, "_2": True}},
     "[3, [0.5, true]]"),
    ("(u64,)", "01" + "00" * 7, {"_1": 1}, "[1]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "data", "value", "json"), GOOD)
def test_values(text: str, data: str, value: Any, json: str) -> None:
    kind, raw = parse_type(text), bytes.fromhex(data)
    # In the middle of an array, with what is no value around it.
    payloads = pa.array([b"", b"x" * 50, raw, None, raw + b"\0", raw[:-1], raw]).slice(1)
    found = column_of(kind, payloads).to_pylist()
    assert found == [None, value, None, None, None, value]
    assert json_of(kind, raw) == json
    assert json_of(kind, raw + b"\0") is None
    assert parse_type(str(kind)) == kind


@pytest.mark.interop
def test_they_are_what_the_reference_writes() -> None:
    from zenoh import ext

    pairs = [
        ("u32", ext.UInt32(7)), ("i128", ext.Int128(-5)), ("str", "\u00e9"), ("bytes", b"ab"),
        ("[u16]", [ext.UInt16(1)] * 200), ("{str: i32}", {"a": 1}), ("f64", 1.5), ("bool", True),
        ("(u8, [str])", (ext.UInt8(1), ["x", ""])),
    ]  # fmt: skip
    plain = ["7", "-5", '"\\u00e9"', '"6162"', str([1] * 200), '{"a": 1}', "1.5", "true",
             '[1, ["x", ""]]']  # fmt: skip
    found = [json_of(parse_type(kind), bytes(ext.z_serialize(v))) for kind, v in pairs]
    assert found == plain


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("bool", "02"),
        ("str", "02ffff"),
        ("str", "05"),
        ("[u8]", "ff" * 9 + "0105"),
        ("[u8]", "ff" * 20),
        ("{u8: u8}", "0201"),
        ("(u8, bool)", "0102"),
        ("[(u8, u8)]", "020102"),
    ],
)
def test_bytes_that_are_no_such_value(text: str, data: str) -> None:
    kind, raw = parse_type(text), bytes.fromhex(data)
    assert json_of(kind, raw) is None
    assert column_of(kind, pa.array([raw])).to_pylist() == [None]


@pytest.mark.parametrize(
    "text",
    ["", "u7", "[u8", "u8]", "()", "(,)", "{u8}", "{u8: u8, u8}", "u8 u8", "U8", "[u8]x", "utf-8",
     "[" * (DEPTH_MAX + 2) + "u8" + "]" * (DEPTH_MAX + 2)],
)  # fmt: skip
def test_text_that_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="is no type"):
        parse_type(text)


def test_as_a_column(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(b"\1\1x",), (b"\1\1xx",), (None,)], "payload binary")
    kinds = {"a": "(u8, str)", "b": "bytes", "c": "{u8: bool}"}
    found = frame.select(*[deserialize("payload", kind).alias(n) for n, kind in kinds.items()])
    assert found.schema.simpleString() == (
        "struct<a:struct<_1:smallint,_2:string>,b:binary,c:map<smallint,boolean>>"
    )
    rows = found.select("a", "b", "c", F.to_variant_object("a").alias("v")).collect()
    assert [row.a and tuple(row.a) for row in rows] == [(1, "x"), None, None]
    assert rows[0].v.toPython() == {"_1": 1, "_2": "x"}
    with pytest.raises(ValueError, match="is no type"):
        deserialize("payload", "int")
