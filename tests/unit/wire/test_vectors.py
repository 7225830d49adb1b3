"""Every vector is read, and written, as it says; and there are enough of them."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import recorded, vectors
from tests.strategies import label, message_specs, specs
from tests.vectors import ROOT, Vector, bad, directory, good
from zenwire.errors import DecodeError, Fault
from zenwire.wire import compress_batch, decode, expand_batch
from zenwire.wire.define import BitsField, Plain, Spec, Unknown, spec_of

ENOUGH = 2


def name(vector: Vector) -> str:
    return vector.name


@pytest.mark.parametrize("vector", good(), ids=name)
def test_fields(vector: Vector) -> None:
    assert vectors.plain(vector.decode()) == vector.fields


@pytest.mark.parametrize("vector", good(), ids=name)
def test_written(vector: Vector) -> None:
    written = vectors.write(vector.scope, vector.message, vector.decode())
    assert written.hex() == vector.written.hex()
    if vector.message == "compressed":
        assert expand_batch(compress_batch(written)) == written
        return
    assert len(written) <= len(vector.raw)
    again = vectors.read(vector.scope, vector.message, written)
    assert vectors.plain(again) == vector.fields


@pytest.mark.parametrize("vector", bad(), ids=name)
def test_fault(vector: Vector) -> None:
    with pytest.raises(DecodeError) as caught:
        vector.decode()
    e = caught.value
    assert {"fault": e.fault.name, "offset": e.offset, "message": e.message} == vector.fault


@pytest.mark.parametrize("vector", good(), ids=name)
def test_cut_anywhere_is_no_other_error(vector: Vector) -> None:
    for n in range(min(len(vector.raw), 300)):
        try:
            vectors.read(vector.scope, vector.message, vector.raw[:n])
        except DecodeError as e:
            assert 0 <= e.offset <= n  # noqa: PT017 # most parts fault, some are whole


@pytest.mark.parametrize(
    "vector",
    [v for v in good() if v.source.endswith(".pcap")],
    ids=name,
)
def test_captured_bytes_are_in_the_capture(vector: Vector) -> None:
    path = Path(recorded.__file__).parent.parent / vector.source
    assert any(vector.raw in batch.data for batch in recorded.batches(path))


def test_no_vector_stands_twice() -> None:
    places = Counter((v.scope, v.message, v.hex) for v in (*good(), *bad()))
    assert [place for place, n in places.items() if n > 1] == []


def test_every_directory_belongs_to_a_definition() -> None:
    known = {(s.scope or "struct", directory(s)) for s in specs()}
    known |= {("linkstate", "list")} | {(s.scope, "unknown") for s in message_specs()}
    kinds = ("plain", "low_latency", "compressed", "stream", "low_latency_stream")
    known |= {("batch", kind) for kind in kinds}
    found = {(path.parent.parent.name, path.parent.name) for path in ROOT.rglob("*.json")}
    assert found - known == set()


def directly(spec: Spec) -> list[Any]:
    """The messages of a definition's own vectors; a struct's may be inside others."""
    place = (spec.scope, directory(spec))
    decoded = [v.decode() for v in good() if not spec.scope or (v.scope, v.message) == place]
    if spec.scope:
        return [message for message in decoded if type(message) is spec.cls]
    return [part for whole in decoded for part in parts(whole) if type(part) is spec.cls]


def parts(whole: Any) -> Iterator[Any]:
    """Everything inside a message, and itself."""
    if isinstance(whole, list | tuple):
        for item in whole:
            yield from parts(item)
    elif dataclasses.is_dataclass(whole):
        yield whole
        for f in dataclasses.fields(whole):
            yield from parts(getattr(whole, f.name))


@pytest.mark.parametrize("spec", specs(), ids=label)
def test_every_definition_has_enough_vectors(spec: Spec) -> None:
    found = directly(spec)
    assert len(found) >= ENOUGH
    few = {}
    for e in spec.fields:
        if isinstance(e, Plain) and e.when is None:
            continue
        absent = () if isinstance(e, Unknown) else e.default
        n = sum(getattr(message, e.name) != absent for message in found)
        if n < ENOUGH:
            few[e.name] = n
    assert few == {}


@pytest.mark.parametrize("spec", message_specs(), ids=label)
def test_every_message_has_a_bad_vector(spec: Spec) -> None:
    assert [v for v in bad() if (v.scope, v.message) == (spec.scope, directory(spec))]


@pytest.mark.parametrize("spec", specs(), ids=label)
def test_every_member_of_an_enumeration_of_bits_has_a_vector(spec: Spec) -> None:
    for e in spec.fields:
        if isinstance(e, BitsField):
            wanted = {False, True} if e.type is bool else set(e.type)  # type: ignore[call-overload] # an enumeration
            assert {getattr(message, e.name) for message in directly(spec)} == wanted


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
def test_every_fault_has_enough_vectors(fault: Fault) -> None:
    assert sum((v.fault or {})["fault"] == fault.name for v in bad()) >= ENOUGH


def test_a_vector_can_be_added(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vectors, "ROOT", tmp_path)
    for case, text in {"good": "83 07 21 05", "bad": "03"}.items():
        path = vectors.add(f"transport/close/{case}", text, "made by hand")
        added = vectors.load(path)
        assert (added.hex, added.source) == (text.replace(" ", ""), "made by hand")
        if case == "good":
            assert added.fields == {"message": "CLOSE", "reason": 7}
            assert decode(added.written, "transport") == added.decode()
            assert added.canonical == "0307"
        else:
            assert added.fault == {"fault": "TRUNCATED", "offset": 1, "message": "CLOSE"}
    assert spec_of(type(vectors.read("transport", "close", b"\x03\x07"))).name == "CLOSE"
