from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tests.parity.rows import SCANNER, by_objects
from tests.recorded import CAPTURES, batches
from zenwire.columns import (
    MALFORMED,
    NETWORK,
    TRANSPORT,
    Spans,
    as_buffer,
    malformed,
    network,
    schema,
    transport,
)
from zenwire.errors import Fault
from zenwire.wire import encode_batch
from zenwire.wire.data import Del, Put, Query
from zenwire.wire.network import Interest, Push, Request, ResponseFinal
from zenwire.wire.structs import SourceInfo, Timestamp
from zenwire.wire.transport import Frame
from zenwire.wire.values import Priority, QoS, WireExpr, ZenohId

ZID = ZenohId(b"\x01\xaa")


def scan_of(*messages: object) -> pa.RecordBatch:
    data = encode_batch(
        [Frame(reliable=True, sn=2**32 - 1, priority=Priority.REAL_TIME), *messages]
    )
    (scan,) = SCANNER.scan(as_buffer(data), Spans.of_lengths([len(data)]))
    return network(scan)


def rows(*messages: object) -> list[dict[str, object]]:
    found = scan_of(*messages)
    found.validate(full=True)
    return [{k: v for k, v in row.items() if v is not None} for row in found.to_pylist()]


def test_a_rich_put() -> None:
    put = Put(
        timestamp=Timestamp(time=2**63 + 5, id=ZID),
        source_info=SourceInfo(zid=ZID, eid=2**32 - 1, sn=7),
        attachment=b"att",
        payload=b"payload",
    )
    (row,) = rows(Push(key=WireExpr(3, "/é"), qos=QoS(0x19), body=put))
    assert row == {
        "batch": 0,
        "offset": 8,
        "length": row["length"],
        "message": 0x1D,
        "body": 1,
        "body_offset": 16,
        "sn": 2**32 - 1,
        "reliable": True,
        "priority": 1,
        "key_scope": 3,
        "key_suffix": "/é",
        "key_mapping": True,
        "qos": 0x19,
        "node_id": 0,
        "timestamp": -(2**63) + 5,  # the same 64 bits
        "timestamp_id": b"\x01\xaa",
        "encoding": 0,
        "source_zid": b"\x01\xaa",
        "source_eid": 2**32 - 1,
        "source_sn": 7,
        "shm": False,
        "attachment": b"att",
        "payload": b"payload",
    }


def test_a_default_is_a_value_where_the_message_has_the_field_and_null_elsewhere() -> None:
    put, delete, final = scan_of(
        Push(key=WireExpr(1), body=Put(payload=b"")),
        Push(key=WireExpr(1), body=Del()),
        ResponseFinal(request_id=9),
    ).to_pylist()
    assert (put["qos"], put["encoding"], put["payload"]) == (5, 0, b"")
    assert (delete["qos"], delete["encoding"], delete["payload"]) == (5, None, None)
    assert (final["qos"], final["key_mapping"], final["body"]) == (5, None, None)
    assert final["request_id"] == 9


def test_interest_options_and_request() -> None:
    interest, request = scan_of(
        Interest(id=1, subscribers=True, key=WireExpr(0, "a/**")),
        Request(request_id=1, key=WireExpr(0, "k"), timeout=2**40, body=Query(parameters="a=1")),
    ).to_pylist()
    assert (interest["mode"], interest["subscribers"], interest["queryables"]) == (3, True, False)
    assert (interest["tokens"], request["tokens"]) == (False, None)
    assert (request["timeout"], request["parameters"], request["target"]) == (2**40, "a=1", 0)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda p: p.stem)
def test_recorded(path: Path) -> None:
    """Every payload, every suffix, in order; valid to Arrow's own full check."""
    for low_latency in (False, True):
        chosen = [b.data for b in batches(path) if b.lowlatency is low_latency]
        spans = Spans.of_lengths([len(data) for data in chosen])
        buffer = as_buffer(b"".join(chosen))
        expected = [
            row
            for data in chosen
            for row in by_objects(data, low_latency=low_latency).rows
            if row["scope"] == "network"
        ]
        found: list[dict[str, object]] = []
        for scan in SCANNER.scan(buffer, spans, low_latency=low_latency):
            for batch in (network(scan), transport(scan), malformed(scan)):
                batch.validate(full=True)
            assert malformed(scan).num_rows == 0
            found += network(scan, ["payload", "key_suffix", "message", "length"]).to_pylist()
        assert [f["payload"] for f in found] == [e.get("payload") for e in expected]
        assert [str(f["key_suffix"] or "").encode() for f in found] == [
            e.get("key_suffix", b"") for e in expected
        ]
        assert [f["length"] for f in found] == [e["end"] - e["at"] for e in expected]


def test_low_latency_rows_have_no_frame() -> None:
    data = encode_batch([Push(key=WireExpr(1), body=Put(payload=b"x"))])
    spans = Spans.of_lengths([len(data)] * 3)
    (scan,) = SCANNER.scan(as_buffer(data * 3), spans, low_latency=True)
    found = network(scan, ["batch", "offset", "sn", "reliable", "priority"])
    assert found.column("batch").to_pylist() == [0, 1, 2]
    assert found.column("offset").to_pylist() == [0, 0, 0]
    assert found.column("sn").null_count == 3


def test_malformed_batches_are_rows_and_spare_the_others() -> None:
    good = encode_batch([Frame(sn=1), Push(key=WireExpr(1), body=Put(payload=b"x"))])
    bad = good[:-1] + b"\x05"  # the payload's length says 5... and nothing is there
    bad = good[:-2] + b"\x05x"
    (scan,) = SCANNER.scan(as_buffer(good + bad + good), Spans.of_lengths([len(good)] * 3))
    assert malformed(scan).schema == MALFORMED
    assert malformed(scan).to_pylist() == [
        {"batch": 1, "fault": Fault.TRUNCATED, "offset": len(good) - 1, "message_offset": 2}
    ]
    assert network(scan, ["batch"]).column("batch").to_pylist() == [0, 2]


def test_chosen_columns() -> None:
    data = encode_batch([Frame(sn=1)])
    (scan,) = SCANNER.scan(as_buffer(data), Spans.of_lengths([len(data)]))
    assert network(scan, ["payload", "qos"]).schema.names == ["payload", "qos"]
    assert network(scan).schema == schema(NETWORK)
    assert transport(scan).schema == schema(TRANSPORT)
    with pytest.raises(KeyError):
        network(scan, ["no such column"])


def test_types_are_those_that_spark_takes() -> None:
    fine = {pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.string(), pa.binary()}
    for layout in (NETWORK, TRANSPORT):
        assert {field.type for field in schema(layout)} <= fine


def test_what_was_made_stays_when_the_scanner_goes_on() -> None:
    one, other = (
        encode_batch([Frame(sn=1), Push(key=WireExpr(1), body=Put(payload=payload))])
        for payload in (b"one", b"two")
    )
    (scan,) = SCANNER.scan(as_buffer(one), Spans.of_lengths([len(one)]))
    first = network(scan)
    list(SCANNER.scan(as_buffer(other), Spans.of_lengths([len(other)])))
    assert first.column("payload").to_pylist() == [b"one"]
