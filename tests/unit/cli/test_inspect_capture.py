"""``zenwire inspect CAPTURE``: lines, JSON, filters, limits, following, and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.recorded import CAPTURES
from tests.unit.capture.writer import Packet, packets_of, pcap
from tests.unit.cli.test_inspect import Terminal
from zenwire.cli.inspect_lines import preview
from zenwire.cli.main import main
from zenwire.wire import walk

BY_NAME = {path.stem: path for path in CAPTURES}
TRUTH = Path(__file__).parents[2] / "spark" / "truth"


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, str, str]:
    code = main(["inspect", *map(str, args)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_line_says_when_who_what_and_how_much(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, BY_NAME["peer_query_reply"])
    assert code == 0
    day, *lines = out.splitlines()
    assert day == "2026-11-15 UTC"
    assert all(re.match(r"\d\d:\d\d:\d\d\.\d{6}  \S+ \u2192 \S+  \w+", line) for line in lines)
    assert len(lines) == 93
    (query, reply) = [line for line in lines if " query " in line or " reply " in line][:2]
    assert "store/a/1" in query
    assert query.endswith('best_matching attachment "qa"')
    assert "151 B  zenoh/bytes  00000000 00000000" in reply
    assert re.search(r"after 3\d\d \u00b5s$", reply)
    assert "1 session; 93 messages (48 reply, 15 final, 15 query" in err
    assert "no losses; nothing malformed; 58 batches of 5,191 bytes; 1.410 s" in err


@pytest.mark.parametrize("name", ["client_router_pubsub", "compression", "lowlatency", "udp"])
def test_json_has_the_samples_that_the_application_saw(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    code, out, _ = run(capsys, BY_NAME[name], "--json", "--kind", "sample")
    assert code == 0
    links: dict[str, list[tuple[str, str, str | None]]] = {}
    for entry in objects(out):
        where = json.dumps([entry["flow"], entry["from"]])
        kind = entry["kind"].upper()
        links.setdefault(where, []).append((entry["key"], kind, entry.get("payload", "")))
    truth = json.loads((TRUTH / f"{name}.json").read_text())["samples"]
    expected = [(s["key"], s["kind"], s["payload"]) for s in truth]
    cut = [(k, kind, p if p is None or len(p) <= 8192 else None) for k, kind, p in expected]
    assert cut in [
        [(k, kind, p if p is None or len(p) <= 8192 else None) for k, kind, p in link]
        for link in links.values()
    ]


def test_json_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, BY_NAME["client_router_pubsub"], "--json", "--kind", "all")
    found = objects(out)
    assert {e["layer"] for e in found} == {"transport", "network"}
    assert all(e["fields"]["message"] for e in found)
    init = found[0]
    assert (init["kind"], init["from"]["mode"]) == ("init", "client")
    assert {"time", "capture", "flow", "connection", "sequence", "offset", "length"} <= init.keys()


def test_filters(capsys: pytest.CaptureFixture[str]) -> None:
    path = BY_NAME["client_router_pubsub"]
    _, out, _ = run(capsys, path, "--json", "--key", "fleet/*/once", "--kind", "put")
    keys = {e["key"] for e in objects(out)}
    assert keys
    assert all(key.endswith("/once") for key in keys)
    zid = objects(run(capsys, path, "--json")[1])[0]["from"]["zid"]
    _, out, _ = run(capsys, path, "--json", "--session", zid[:8].upper())
    found = objects(out)
    assert found
    assert all(zid in (e["from"]["zid"], e["to"]["zid"]) for e in found)
    assert len(found) < 368


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--kind", "nonsense"], "--kind nonsense: there are all, close,"),
        (["--key", "a//b"], "is not a key expression"),
        (["--session", "router"], "in hexadecimal"),
    ],
)
def test_filters_that_mean_nothing(
    capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    code, out, err = run(capsys, BY_NAME["udp"], *args)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_options_of_captures_with_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "010907", "--key", "a", "--follow")
    assert (code, out) == (2, "")
    assert "--key, --follow: for captures" in err


def test_limit(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = run(capsys, BY_NAME["udp"], "--limit", "5", "--json")
    assert len(objects(out)) == 5
    assert "stopped after 5 lines (--limit), the rest was not read" in err
    _, out, err = run(capsys, BY_NAME["udp"], "--limit", "0", "--json")
    assert len(objects(out)) == 90
    assert "stopped" not in err


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])
def test_compressed(capsys: pytest.CaptureFixture[str], tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x"
    with pa.CompressedOutputStream(str(path), codec) as out:
        out.write(BY_NAME["udp"].read_bytes())
    code, text, _ = run(capsys, path, "--json")
    assert code == 0
    assert len(objects(text)) == 90


def test_bytes_that_only_begin_as_compressed_ones_are_bytes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for i, content in enumerate([b"\x1f\x8b\x00", b"\x04\x22\x4d\x18\0"]):
        path = tmp_path / str(i)
        path.write_bytes(content)
        _, _, err = run(capsys, path)
        assert "taken for" in err


def test_a_directory(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("udp", "usrpwd"):
        (tmp_path / f"{name}.pcap").write_bytes(BY_NAME[name].read_bytes())
    (tmp_path / "notes.txt").write_text("none")
    code, out, err = run(capsys, tmp_path, "--json")
    assert code == 0
    assert {Path(e["capture"]).name for e in objects(out)} == {"udp.pcap", "usrpwd.pcap"}
    assert "3 sessions" in err


def test_losses_and_malformed_bytes_are_shown(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    packets = packets_of(BY_NAME["udp"])
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap([*packets[:30], *packets[34:]]))
    code, out, err = run(capsys, path, "--kind", "loss")
    assert code == 0
    assert re.search(r"loss .* sequence numbers \d+ to \d+: \d+ did not come", out)
    assert re.search(r"1 loss \(1 sequence\)|\d losses \(", err)
    entry = objects(run(capsys, path, "--kind", "loss", "--json")[1])[0]
    assert entry["loss"]["kind"] == "sequence"


def test_what_does_not_decode_is_shown_and_is_the_exit_code(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    packets = packets_of(BY_NAME["udp"])
    headers = 14 + 20 + 8
    one = packets[40]
    _, push = walk(one.data[headers:])
    at = headers + push.start
    # No message of any layer has this id.
    wrong = Packet(one.time, one.data[:at] + b"\x18" + one.data[at + 1 :])
    path = tmp_path / "bad.pcap"
    path.write_bytes(pcap([*packets[:40], wrong, *packets[41:]]))
    code, out, err = run(capsys, path, "--kind", "malformed")
    assert code == 1
    assert re.search(r" malformed .* unknown_id in ", out)
    assert "1 malformed" in err
    (entry,) = objects(run(capsys, path, "--kind", "malformed", "--json")[1])
    assert (entry["fault"], entry["bytes"][:2]) == ("unknown_id", "18")


def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["inspect", str(BY_NAME["udp"])]) == 0
    assert "\x1b[32mput" in terminal.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bytes.fromhex("d4c3b2a1") + bytes(3), "neither pcap nor pcapng"),
        (bytes.fromhex("0a0d0d0a") + bytes(40), "neither pcap nor pcapng"),
    ],
)
def test_captures_that_are_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(content)
    code, out, err = run(capsys, path)
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_capture_that_may_not_be_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(BY_NAME["udp"].read_bytes())
    path.chmod(0)
    code, _, err = run(capsys, path)
    assert code == 1
    assert "Permission denied" in err


def test_follow_ends_with_ctrl_c(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    whole = BY_NAME["udp"].read_bytes()
    path.write_bytes(whole[:100_000])
    with subprocess.Popen(
        [sys.executable, "-m", "zenwire", "inspect", str(path), "--follow", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        lines = [process.stdout.readline()]
        with path.open("ab") as file:
            file.write(whole[100_000:])
        while len(lines) < 90:
            lines.append(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert {json.loads(line)["kind"] for line in lines} >= {"init", "put"}
    assert "1 session; 90 messages" in err


def test_previews() -> None:
    assert preview(b"hello") == '"hello"'
    assert preview(b"a\nb") == '"a\\nb"'
    assert preview(b"\x00\x01") == "0001"
    assert preview("\u00e9".encode()) == '"\u00e9"'
    assert preview(b"\xff" * 100).endswith("\u2026")
    assert preview(b"x" * 100) == f'"{"x" * 48}"\u2026'
    # Cut within a character.
    assert preview("\u20ac".encode() * 100).startswith('"\u20ac')
    assert "\x1b" not in preview(b"\x1b[31mred")
