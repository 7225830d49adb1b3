"""The commands of the network before there is one: help, examples, and arguments that are wrong."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from zenwire import aio
from zenwire.cli.main import COMMANDS, main, parser_of
from zenwire.cli.receiving import Inbox
from zenwire.cli.running import Aside, many
from zenwire.cli.sub import Tally
from zenwire.wire.data import Put

EXAMPLES = [
    pytest.param(line, id=line) for command in COMMANDS.values() for line in command.EXAMPLES
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_can_be_parsed(line: str) -> None:
    # `tail -f log | zenwire put ...`, `zenwire sub ... | jq`, `> file`
    command = line[line.index("zenwire ") :]
    words = shlex.split(command, comments=True)
    for end in ("|", ">", "<"):
        words = words[: words.index(end)] if end in words else words
    args = parser_of(COMMANDS).parse_args(words[1:])
    assert args.command in COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert "examples:\n  " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sub -k a --format '{no}'", "no field '{no}'"),
        ("sub", "-k/--key"),
        ("sub -k a --timeout -1", "seconds above zero"),
        ("sub -k a --raw --jsonl", "not allowed with"),
        ("get -s 'a/**/**?x' --format {no}", "no field"),
        ("get -s /a", "not a key expression"),
        ("queryable -k a", "is required"),
        ("queryable -k a --file /no/such/file", "no such file"),
        ("liveliness -k a --history", "for --watch"),
        ("scout --what banana --cfg scouting/multicast/enabled:true", "router|peer|client"),
        ("bench -e tcp/a:1", "--pub or --sub"),
        ("put -k a --priority high", "invalid choice"),
        ("completion tcsh", "invalid choice"),
    ],
)
def test_wrong_arguments(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(shlex.split(line))
    except SystemExit as stop:
        code = int(str(stop.code))
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert said in err


@pytest.mark.parametrize(
    "line", ["sub -k a --cfg nonsense:1", "sub -k a -c /no/such/file.json5", "put -k a/ -p x"]
)
def test_what_fails_says_so_in_a_line(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*shlex.split(line), "--no-multicast-scouting"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"zenwire {line.split(maxsplit=1)[0]}: ")
    assert err.count("\n") == 1


def test_the_documentation_has_every_command() -> None:
    text = (Path(__file__).parents[3] / "docs" / "commands.md").read_text()
    rows = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    assert [name for name in COMMANDS if f"`{name}`" not in rows] == []


def test_a_command_loads_no_other() -> None:
    program = (
        "import sys; from zenwire.cli.main import main; main(['version']); "
        "slow = [n for n in sys.modules if n in ('asyncio', 'zenwire.aio', 'numpy', "
        "'zenwire.cli.inspect', 'zenwire.wire')]; assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_help_loads_no_network() -> None:
    program = (
        "import sys; from zenwire.cli.main import COMMANDS, parser_of; parser_of(COMMANDS); "
        "slow = [n for n in sys.modules if n in ('zenwire.aio', 'zenwire.node', 'numpy', 'pyarrow')]; "
        "assert not slow, slow"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def sample(size: int = 1) -> aio.Sample:
    return aio.Sample("a", Put(payload=bytes(size)))


def test_what_has_no_room_is_counted() -> None:
    async def check() -> None:
        inbox = Inbox(items=2)
        for _ in range(5):
            inbox.put(sample())
        assert inbox.dropped == 3
        assert len(await inbox.take()) == 2
        inbox.put(sample())
        assert len(await inbox.take()) == 1
        # One alone always has room, more than is allowed together has not.
        inbox.put(sample(257 * 2**20))
        inbox.put(sample())
        assert len(await inbox.take()) == 1
        assert inbox.dropped == 4

    asyncio.run(check())


@pytest.mark.parametrize(
    ("wanted", "taken", "lost", "code"),
    [
        (None, 1, False, 0),
        (None, 0, False, 1),
        (None, 1, True, 3),
        (2, 2, False, 0),
        (2, 1, False, 124),
        (2, 1, True, 124),
        (2, 2, True, 3),
    ],
)
def test_exit_codes_of_sub(wanted: int | None, taken: int, lost: bool, code: int) -> None:
    tally = Tally(wanted)
    tally.taken = taken
    assert tally.code(lost) == code


def test_what_waits_aside_does_not_hold_up_the_end() -> None:
    reading, writing = os.pipe()

    async def check() -> None:
        aside = Aside()
        assert await aside.run(lambda: 7) == 7
        with pytest.raises(FileNotFoundError):
            await aside.run(Path("/no/such/file").stat)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await aside.run(lambda: os.read(reading, 1))

    asyncio.run(check())
    os.write(writing, b"x")
    os.close(writing)


def test_numbers_and_words() -> None:
    assert (many(1, "sample"), many(2000, "sample")) == ("1 sample", "2,000 samples")
