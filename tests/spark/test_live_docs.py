"""docs/spark.md: its options are those that there are. Its examples run, and README's live one."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.test_live_recorder import eventually
from tests.spark.test_live_sink import Router
from zenwire.spark.live import options, recorder, selector, session, sink
from zenwire.spark.live.columns import COLUMNS

zenoh = pytest.importorskip("zenoh")

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text()
ELSEWHERE = {"path", "paths", "excludeKeyexpr"}
"""Of load(), and a longer name."""


def tables() -> dict[str, set[str]]:
    """The options of each table below ``## Options``, by the line above it."""
    found: dict[str, set[str]] = {}
    title = ""
    for line in PAGE.partition("## Options")[2].splitlines():
        if line.endswith(":"):
            title = line.rstrip(":")
            found[title] = set()
        elif line.startswith("| `"):
            found[title] |= set(re.findall(r"`([\w.<>/]+)`", line.split("|")[1]))
    return found


def test_all_options_are_told_and_no_others() -> None:
    network = set(session.SESSION_OPTIONS)
    spools, asked, written = set(options._KNOWN), set(selector._KNOWN), set(sink._KNOWN)
    assert tables() == {
        "For whatever gets to the network": network | {"zenoh.<config/path>"},
        "To read spools and live": spools - ELSEWHERE,
        "Live only": set(recorder.LIVE_OPTIONS) - network,
        "With `selector`": asked - network,
        "To write": written - network - {"path", "checkpointLocation"},
    }


def test_all_columns_are_told() -> None:
    said = PAGE.partition("same columns:")[2].partition(".\n")[0]
    assert tuple(re.findall(r"`(\w+)`", said)) == COLUMNS


@pytest.fixture
def router() -> Iterator[Router]:
    found = Router()
    yield found
    found.session.close()


@pytest.mark.long
@pytest.mark.interop
def test_examples_run(spark: SparkSession, router: Router, tmp_path: Path) -> None:
    examples = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"spark": spark}

    def run(number: int) -> None:
        text = examples[number].replace("tcp/127.0.0.1:7447", router.endpoint)
        exec(text.replace('"lake/', f'"{tmp_path}/'), names)

    run(0)
    run(1)
    try:
        with router.session.declare_publisher("robot/7/pose") as publisher:
            eventually(lambda: publisher.matching_status.matching)
            publisher.put("x=1")
        eventually(lambda: names["query"].lastProgress and list(tmp_path.glob("samples/*.parquet")))
        eventually(lambda: spark.read.parquet(str(tmp_path / "samples")).count() == 1)
    finally:
        names["query"].stop()
    run(2)
    assert names["losses"].count() == 0
    with router.session.declare_queryable(
        "robot/**", lambda query: query.reply("robot/7/pose", "x=2")
    ):
        run(3)
        (row,) = names["last_hour"].collect()
        assert (row.key, bytes(row.payload)) == ("robot/7/pose", b"x=2")
    with router.session.declare_subscriber("robot/7/goal") as goals:
        run(4)
        assert goals.recv().payload.to_string() == '{"x": 1}'
    assert len(examples) == 5


@pytest.mark.long
@pytest.mark.interop
def test_the_live_example_of_the_readme(
    router: Router,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    section = page.partition("Live traffic as tables")[2].partition("\n## ")[0]
    (command,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    (example,) = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    name, *words, last = shlex.split(command.replace("tcp/127.0.0.1:7447", router.endpoint))
    assert (name, last) == ("zenwire", "&")
    with subprocess.Popen([sys.executable, "-m", "zenwire", *words]) as ingest:
        try:
            with router.session.declare_publisher("robot/7/pose") as publisher:
                eventually(lambda: publisher.matching_status.matching)
                publisher.put("x=1")
            eventually(lambda: list(tmp_path.glob("lake/latest/**/*.parquet")))
        finally:
            ingest.terminate()
        assert ingest.wait(180) == 128 + signal.SIGTERM
    # In a process of its own: a Java that runs already has another directory.
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("robot/7/pose") == 2
