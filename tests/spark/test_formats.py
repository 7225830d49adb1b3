"""Programs whose Spark does not find the formats by itself: ``zenwire.spark.register``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

import zenwire
from tests.spark.conftest import CAPTURES

pytestmark = pytest.mark.long

SOURCE = Path(zenwire.__file__).parents[1]
APP = """
import sys
from pyspark.sql import SparkSession
from zenwire.spark import register, tables

settings = {"spark.driver.memory": "1g", "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
register(spark)
batches = spark.read.format("zenoh.capture").load(sys.argv[1])
print("samples", tables.samples(batches).count())
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """An environment that has all dependencies, and no zenwire. Gives its site-packages."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True
    )
    (packages,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    (packages / "dependencies.pth").write_text(str(Path(pyspark.__file__).parents[1]))
    (tmp_path / "app.py").write_text(APP)
    return packages


def run(folder: Path, *command: str, **more: str) -> str:
    """Run with a PATH on which no Python has zenwire."""
    java = shutil.which("java")
    there = {"JAVA_HOME": str(Path(java).resolve().parents[1])} if java else {}
    kept = {name: os.environ[name] for name in ("HOME", "JAVA_HOME") if name in os.environ}
    done = subprocess.run(
        [*command, str(folder / "app.py"), str(CAPTURES / "udp.pcap")],
        env={"PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"} | there | kept | more,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_environment_that_is_not_activated(tmp_path: Path, bare: Path) -> None:
    (bare / "zenwire.pth").write_text(str(SOURCE))
    assert "samples 80" in run(tmp_path, str(tmp_path / "venv" / "bin" / "python"))


def test_a_wheel_among_the_py_files(tmp_path: Path, bare: Path) -> None:
    wheel = tmp_path / "zenwire-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for package in ("zenwire", "pyspark_zenoh", "pyspark_zenoh_capture"):
            for path in (SOURCE / package).rglob("*"):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, str(path.relative_to(SOURCE)))
    home = Path(pyspark.__file__).parent
    told = run(
        tmp_path,
        *(str(home / "bin" / "spark-submit"), "--py-files", str(wheel)),
        PYSPARK_PYTHON=str(tmp_path / "venv" / "bin" / "python"),
        SPARK_HOME=str(home),
    )
    assert "samples 80" in told
