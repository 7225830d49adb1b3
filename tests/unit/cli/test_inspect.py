"""``zenwire inspect``: input in all its shapes, text, JSON, exit codes, and what it says."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import shlex
import sqlite3
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcap.writer
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.recorded import CAPTURES, _streams
from tests.strategies import message_specs
from tests.unit.capture.writer import packets_of, pcapng
from tests.unit.spool.rows import samples
from zenwire.cli import inspect
from zenwire.cli.file_types import other_file
from zenwire.cli.main import main
from zenwire.spool import Writer
from zenwire.wire.batch import encode_batch, frame_stream
from zenwire.wire.data import Put
from zenwire.wire.inspect.dissect import Form
from zenwire.wire.inspect.guess import guess
from zenwire.wire.network import Push
from zenwire.wire.transport import Frame
from zenwire.wire.values import WireExpr

# Real bytes, of sessions of eclipse-zenoh 1.10.2: messages by their names.
SESSIONS = {
    "c1091207cc0ac8ff812701": ["INIT"],
    "e1091007aa0a00c02120" + "5a" * 32 + "812701": ["INIT"],
    "420af6c3cc152120" + "5a" * 32: ["OPEN"],
    "620acafcd65d": ["OPEN"],
    "c1091201cc0ac8ff81c2058a97d8cc042701": ["INIT"],
    "c20a9bd2b00b2120" + "5a" * 32 + "4212d389dc81918f909621010001020304050607": ["OPEN"],
    "e20af2aed3044209010001020304050607": ["OPEN"],
    "a59bd2b00b31009e21082001000664656d6f2f619e2108620101032f2a2a": ["FRAME", "DECLARE", "DECLARE"],
    "a59cd2b00b31009e21082002000864656d6f2f622f31f90253022108": ["FRAME", "DECLARE", "INTEREST"],
    "a5f2aed3043100be0221081a": ["FRAME", "DECLARE"],
    "259bd2b00b7d000864656d6f2f632f320105706c61696e": ["FRAME", "PUSH"],
    "259cd2b00b5d02010668656c6c6f325d02010178": ["FRAME", "PUSH", "PUSH"],
    "25f2aed3043d01032f7a7a21c0fee1e3a7bd81fd6a0201aa0b66726f6d20726f75746572": ["FRAME", "PUSH"],
    "259fd2b00bfc01000a64656d6f2f72712f2a2aa10d26b817e30307613d313b623d32c30508626f64794503617474": [
        "FRAME",
        "REQUEST",
    ],
    "25f4aed304fb01000964656d6f2f72712f31a10d43041001aa07040103727231": ["FRAME", "RESPONSE"],
    "25f5aed3049a01210d": ["FRAME", "RESPONSE_FINAL"],
    "a59dd2b00b31009e21082003000664656d6f2f719e2108e40303032f2a2a2101": [
        "FRAME",
        "DECLARE",
        "DECLARE",
    ],
    "a5f6aed30431009e210887035f020000": ["FRAME", "DECLARE"],
    "a5e4cce3633100df01210812020700020202bb0200000301000202aa0200be0021081a": [
        "FRAME",
        "OAM",
        "DECLARE",
    ],
    "c1091207cc0ac8ff81c301022701": ["INIT"],
    "e6ebc98b21027d0003662f310196014141": ["FRAGMENT"],
    "0b00c1091221cc0ac8ff852701": ["INIT"],
    "120000007d0003662f31010a41414141414141414141": ["PUSH"],
    "020000000300": ["CLOSE"],
    "01ef25f6c3cc157d0003792f3101286101000e60616161616161": ["FRAME", "PUSH"],
    "010907": ["SCOUT"],
    "22091109aa02137463702f3132372e302e302e313a3137303830137564702f3132372e302e302e313a3137303830": [
        "HELLO"
    ],
    "02091209cc": ["HELLO"],
    "c1091207cc0ac8ff81a70148096d792d726567696f6e": ["INIT"],
    "e20acafcd65d2701": ["OPEN"],
}
PUT = "259bd2b00b7d000864656d6f2f632f320105706c61696e"


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = main(["inspect", *args])
    return (code, *capsys.readouterr())


def objects(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("digits", SESSIONS)
def test_real_bytes(capsys: pytest.CaptureFixture[str], digits: str) -> None:
    code, out, err = run(capsys, digits, "--json")
    assert code == 0
    assert [o["fields"]["message"] for o in objects(out)] == SESSIONS[digits]
    assert "zenwire inspect: taken for " in err
    code, out, _ = run(capsys, digits)
    assert code == 0
    for name in SESSIONS[digits]:
        assert f" {name}" in out


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_recorded_streams(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, path: Path, options: tuple[str, ...]
) -> None:
    file = tmp_path / "stream.zenoh"
    for stream in _streams(path).values():
        file.write_bytes(stream)
        code, out, err = run(capsys, str(file), *options)
        assert code == 0
        assert out
        assert "taken for a stream" in err
        if options:
            objects(out)


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, PUT)
    assert code == 0
    assert out.splitlines() == [
        "0000  25                                FRAME  R  reliable",
        "0001  9b d2 b0 0b                         sn  23865627",
        "0005  7d                                  PUSH  M|N",
        '0006  00 08 64 65 6d 6f 2f 63 2f 32         key  "demo/c/2"',
        "0010  01                                    PUT",
        '0011  05 70 6c 61 69 6e                       payload  5 bytes  "plain"',
    ]
    took = "taken for a batch, or a datagram of a session: all of it decodes as such"
    assert err.splitlines() == [
        f"zenwire inspect: {took}",
        "zenwire inspect: 23 bytes, 2 messages",
    ]


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, PUT, "--json")
    assert code == 0
    assert objects(out) == [
        {
            "offset": 0,
            "end": 5,
            "layer": "transport",
            "fields": {"message": "FRAME", "reliable": True, "sn": 23865627},
            "spans": {"sn": [1, 5]},
        },
        {
            "offset": 5,
            "end": 23,
            "layer": "network",
            "fields": {
                "message": "PUSH",
                "key": {"scope": 0, "suffix": "demo/c/2", "mapping": "SENDER"},
                "body": {"message": "PUT", "payload": "706c61696e"},
            },
            "spans": {"key": [6, 16], "body.payload": [17, 23]},
        },
    ]


def test_json_of_streams_says_which_batch(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "0100 04 0100 04", "--json")
    assert [(o["batch"], o["offset"]) for o in objects(out)] == [(1, 2), (2, 5)]


def test_json_has_link_state_and_places_in_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "df0121080a010300020202bb020101", "--json", "--as", "network")
    (told,) = objects(out)
    assert told["linkstate"]["entries"][0]["zid"] == "bb02"
    assert told["spans"]["body.entries[0].zid"] == [9, 12]


def test_json_of_what_was_made(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "000300", "--as", "compressed", "--json")
    (told,) = objects(out)
    assert told["derived"] == "expanded batch"
    assert told["offset"] == 0


def test_full(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, PUT, "--json", "--full")
    assert objects(out)[1]["fields"]["body"]["timestamp"] is None
    digits = "0132" + "00" * 50
    _, short, _ = run(capsys, digits, "--as", "data")
    _, full, _ = run(capsys, digits, "--as", "data", "--full")
    assert (short.count("\n"), full.count("\n")) == (2, 7)


@pytest.mark.parametrize(
    "given",
    [
        ["01 09 07"],
        ["01", "09", "07"],
        ["01:09:07"],
        ["0x010907"],
        ["0x01,0x09,0x07"],
        ["0x1", "0x9", "0x7"],
        ["01\n09\n07\n"],
        ["010907 "],
    ],
)
def test_hexadecimal(capsys: pytest.CaptureFixture[str], given: list[str]) -> None:
    code, out, _ = run(capsys, *given, "--json")
    assert code == 0
    assert objects(out)[0]["fields"]["message"] == "SCOUT"


@pytest.mark.parametrize("content", [b"\x01\x09\x07", b"010907\n", b"01 09\n0x07\n"])
@pytest.mark.parametrize("source", ["file", "-"])
def test_files_and_standard_input(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    content: bytes,
    source: str,
) -> None:
    path = tmp_path / "datagram"
    path.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    code, out, err = run(capsys, "-" if source == "-" else str(path), "--json")
    assert code == 0
    assert objects(out)[0]["fields"]["message"] == "SCOUT"
    assert ("is read as hexadecimal text" in err) == (len(content) > 3)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ([], "give bytes in hexadecimal, a file, or -"),
        ([""], "no bytes were given"),
        (["xyz"], "'xyz' is neither a file nor hexadecimal"),
        (["no/such/file.bin"], "is neither a file nor hexadecimal"),
        (["12", "3"], "3 hexadecimal digits: the last byte is half"),
        (["--layout", "NOPE"], "no message is called 'NOPE'; there are SCOUT, HELLO,"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], given: list[str], text: str) -> None:
    code, out, err = run(capsys, *given)
    assert (code, out) == (2, "")
    assert err.startswith("zenwire inspect: ")
    assert text in err


def test_arguments_that_do_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["--as", "nothing", "00"], ["--limit", "many", "00"], ["--nope"]):
        with pytest.raises(SystemExit) as stop:
            main(["inspect", *args])
        assert stop.value.code == 2


@pytest.mark.parametrize(("name", "content"), [("empty", b""), ("folder", None)])
def test_files_that_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, content: bytes | None
) -> None:
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    code, out, err = run(capsys, str(path))
    assert (code, out) == (2 if content is not None else 1, "")
    assert str(path) in err


@pytest.mark.parametrize("magic", ["d4c3b2a1", "4d3cb2a1", "0a0d0d0a"])
def test_a_capture_from_standard_input_is_refused_with_a_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, magic: str
) -> None:
    given = io.TextIOWrapper(io.BytesIO(bytes.fromhex(magic) + bytes(40)))
    monkeypatch.setattr(sys, "stdin", given)
    code, out, err = run(capsys, "-")
    assert (code, out) == (2, "")
    assert "is a capture: write it to a file, and inspect that" in err


def _mcap(path: Path) -> Path:
    with (path / "made").open("wb") as file:
        writer = mcap.writer.Writer(file)
        writer.start()
        writer.finish()  # type: ignore[no-untyped-call] # its stub says nothing of it
    return path / "made"


def _parquet(path: Path) -> Path:
    pq.write_table(pa.table({"a": [1]}), path / "made")
    return path / "made"


def _spool(path: Path) -> Path:
    with Writer.open(path / "spool") as writer:
        writer.append(samples(range(3)))
    return path / "spool"


def _segment(path: Path) -> Path:
    (found,) = (_spool(path) / "samples").glob("*.arrow")
    return found


def _index(path: Path) -> Path:
    (found,) = (_spool(path) / "samples").glob("*.index")
    return found


def _sqlite(path: Path) -> Path:
    with contextlib.closing(sqlite3.connect(path / "made")) as made:
        made.execute("CREATE TABLE a (b)")
    return path / "made"


def _gzip(path: Path) -> Path:
    (path / "made").write_bytes(gzip.compress(b"no capture"))
    return path / "made"


def _zip(path: Path) -> Path:
    with zipfile.ZipFile(path / "made", "w") as made:
        made.writestr("a", "b")
    return path / "made"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (_mcap, "is an MCAP file: the mcap command"),
        (_parquet, "is a Parquet file: pyarrow, pandas and Spark read it"),
        (_spool, "is a spool: zenwire ingest --spool DIR"),
        (_segment, "is an Arrow stream, as in a spool: zenwire ingest"),
        (_index, "is the index of a segment of a spool: zenwire ingest"),
        (_sqlite, "is an SQLite database"),
        (_gzip, "is compressed with gzip, and no capture: decompress it"),
        (_zip, "is a ZIP archive: decompress it"),
    ],
)
def test_files_of_other_formats_are_named(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    make: Callable[[Path], Path],
    what: str,
) -> None:
    path = make(tmp_path)
    code, out, err = run(capsys, str(path))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{path} {what}" in err
    if path.is_file():
        # Whoever says what it is knows better.
        code, _, err = run(capsys, str(path), "--as", "stream", "--limit", "1")
        assert what not in err


def test_standard_input_of_another_format(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = io.TextIOWrapper(io.BytesIO(_mcap(tmp_path).read_bytes()))
    monkeypatch.setattr(sys, "stdin", given)
    code, out, err = run(capsys, "-")
    assert (code, out) == (2, "")
    assert "standard input is an MCAP file" in err


def test_no_batch_begins_as_a_file_of_another_format() -> None:
    for digits in SESSIONS:
        assert other_file(bytes.fromhex(digits)) is None


@pytest.mark.parametrize("digits", SESSIONS)
def test_cut_at_every_byte(capsys: pytest.CaptureFixture[str], digits: str) -> None:
    """With the form that the whole was taken for."""
    raw = bytes.fromhex(digits)
    form = guess(raw).form
    whole = _boundaries(capsys, digits, form)
    for n in range(1, len(raw)):
        code, out, _ = run(capsys, raw[:n].hex(), "--as", form, "--json")
        *before, last = objects(out)
        if n in whole:
            assert code == 0
            continue
        assert code == 1
        assert last["fault"] in ("TRUNCATED", "COMPRESSION")
        assert last["offset"] <= n
        assert last.keys() >= {"fault", "offset", "message", "detail"}
        assert all("fields" in told for told in before)
        code, out, err = run(capsys, raw[:n].hex(), "--as", form)
        assert code == 1
        assert f"^^ {last['fault']} at {last['offset']:#06x}" in out
        assert "1 fault" in err


def _boundaries(capsys: pytest.CaptureFixture[str], digits: str, form: Form) -> set[int]:
    """Where a cut leaves whole messages. A fragment's payload may end anywhere."""
    if form not in (Form.BATCH, Form.NETWORK):
        return set()
    _, out, _ = run(capsys, digits, "--json")
    found = objects(out)
    ends = {told["end"] for told in found}
    if found[-1]["fields"]["message"] == "FRAGMENT":
        ends |= set(range(found[-1]["spans"]["payload"][0], found[-1]["end"]))
    return ends


@pytest.mark.parametrize("junk", ["ff" * 20, "1f", "00" * 40, "a5ffffffffffffffffff01", "6161"])
@pytest.mark.parametrize("form", ["auto", *Form])
def test_junk_is_shown_not_raised(capsys: pytest.CaptureFixture[str], junk: str, form: str) -> None:
    for options in ((), ("--json",), ("--full",)):
        code, out, _ = run(capsys, junk, "--as", form, *options)
        assert code in (0, 1)
        assert out or code == 0


def test_limit(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    push = Push(key=WireExpr(suffix="k"), body=Put(payload=b"x"))
    good = frame_stream(encode_batch([Frame(sn=1), push, push]))
    path = tmp_path / "stream"
    path.write_bytes(good * 5 + frame_stream(b"\x1f") + good)
    code, out, err = run(capsys, str(path), "--json", "--limit", "4")
    shown = objects(out)
    assert code == 1
    assert [o["fields"]["message"] for o in shown[:-1]] == ["FRAME", "PUSH", "PUSH", "FRAME"]
    assert shown[-1]["fault"] == "UNKNOWN_ID"
    assert "7 batches, 18 messages, 1 fault; 14 not shown (--limit 0 shows all)" in err
    _, out, err = run(capsys, str(path), "--json", "--limit", "0")
    assert len(objects(out)) == 19
    assert "not shown" not in err
    _, out, _ = run(capsys, str(path), "--limit", "1")
    assert out.count("FRAME") == 1
    assert out.count("batch ") == 1


def test_a_large_file_is_checked_whole_and_shown_in_part(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    push = Push(key=WireExpr(suffix="k"), body=Put(payload=bytes(60_000)))
    path = tmp_path / "stream"
    path.write_bytes(frame_stream(encode_batch([Frame(sn=1), push])) * 175)
    code, out, err = run(capsys, str(path), "--limit", "10")
    assert code == 0
    assert "10,5" in err
    assert "340 not shown" in err
    assert len(out) < 10_000


def test_what_it_took_the_bytes_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "010907")
    assert "taken for a scouting datagram: all of it decodes as such" in err
    _, _, err = run(capsys, "020000000300")
    assert "taken for a low-latency stream" in err
    assert "--as batch would fit" in err
    code, _, err = run(capsys, "0105706c61696e")
    assert code == 1
    assert "nothing decodes completely, and this gets furthest; --as data would fit" in err
    _, _, err = run(capsys, "010907", "--as", "scouting")
    assert "taken for" not in err


@pytest.mark.parametrize("spec", message_specs(), ids=lambda spec: spec.cls.__name__)
def test_layout(capsys: pytest.CaptureFixture[str], spec: Any) -> None:
    for name in (spec.name, spec.name.lower(), spec.cls.__name__):
        code, out, _ = run(capsys, "--layout", name)
        assert code == 0
        assert f"0x{spec.id:02X}" in out
        assert " 7 6 5 4 3 2 1 0\n+-+-+-+-+-+-+-+-+" in out


def test_layout_of_a_name_that_two_messages_have(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "--layout", "oam")
    assert out.count("OAM, a transport message") == out.count("OAM, a network message") == 1


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": ""}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colours(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["inspect", "03"]) == 1
    assert ("\x1b[" in terminal.getvalue()) == coloured


def test_no_colours_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b[" not in run(capsys, "03")[1]


def test_examples_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    # Ctrl-C ends what follows a capture: tests/unit/cli/test_inspect_capture.py does it for real.
    monkeypatch.setattr("zenwire.cli.inspect_capture._wait", lambda: False)
    for line in inspect.EXAMPLES:
        words = shlex.split(line)
        if "<" in words:
            datagram = io.BytesIO(Path(words.pop()).read_bytes())
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(datagram))
            words.pop()
        assert main(words[1:]) == 0
        assert capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    assert "examples:" in capsys.readouterr().out


def make_examples(path: Path) -> None:
    """The files that the examples name."""
    capture = CAPTURES[0].parent / "peer_query_reply.pcap"
    samples = (CAPTURES[0].parent / "client_router_pubsub.pcap").read_bytes()
    (path / "capture.pcap").write_bytes(samples)
    (path / "capture.pcap.gz").write_bytes(gzip.compress(samples))
    (path / "capture.pcapng").write_bytes(pcapng(packets_of(capture)))
    (path / "captures").mkdir()
    (path / "captures" / "one.pcap").write_bytes(samples)
    (path / "session.zenoh").write_bytes(
        (Path(__file__).parents[3] / "examples" / "data" / "publisher.zenoh").read_bytes()
    )
    (path / "datagram.bin").write_bytes(bytes.fromhex("010907"))
