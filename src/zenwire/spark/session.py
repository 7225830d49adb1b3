"""An embedded Spark for commands and notebooks: one process, all cores, quiet.

    with spark_session("my tables") as spark:
        spark.read.format("zenoh.capture").load("captures/*.pcap*")

A session that is already active is used as it is, and left running.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from zenwire.errors import ZError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkUnavailableError", "find_java", "local_session", "spark_session"]

JAVA: Final = 17
"""The oldest Java that Spark 4 runs on."""

_GIB: Final = 1 << 30
_HOST: Final = "127.0.0.1"
_INSTALL_JAVA: Final = (
    "install one (Debian and Ubuntu: apt install openjdk-17-jre-headless), "
    "or set JAVA_HOME to where one is"
)


class SparkUnavailableError(ZError):
    """Spark cannot run here: PySpark or Java is missing, or Spark did not start."""


@contextmanager
def spark_session(
    app: str,
    *,
    cores: int | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """``local_session``, stopped at the end unless it was there before."""
    before = _active()
    session = local_session(app, cores=cores, master=master, config=config)
    try:
        yield session
    finally:
        if session is not before:
            session.stop()


def local_session(
    app: str,
    *,
    cores: int | None = None,
    master: str | None = None,
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """The active session or, where there is none, a new one.

    ``master`` or, without it, SPARK_MASTER names a cluster; the default is this process with
    ``cores`` of them, or all. ``config`` goes over the settings chosen here. What Spark and Java
    write to their logs is in a file until the process ends, and then gone; SPARK_LOG_LEVEL
    (off, error, info, ...) decides how much that is. Raises SparkUnavailableError.
    """
    session = _active()
    if session is not None:
        return session
    environment = _environment()
    scratch = Path(tempfile.mkdtemp(prefix="zenwire-spark-"))
    # Registered before PySpark's own handlers: those run first, and end what uses the directory.
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    master = master or os.environ.get("SPARK_MASTER") or f"local[{cores or '*'}]"
    settings = _settings(app, master, scratch) | dict(config or {})
    return _start(settings, environment, scratch / "spark.log")


def find_java() -> Path | None:
    """The directory of a Java that is new enough: JAVA_HOME, on the PATH, or in this environment.

    None if the one on the PATH is used as it is. Raises SparkUnavailableError where there is none.
    """
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    # `make setup` puts one into the environment where the machine has none.
    own = Path(sys.prefix) / "java"
    found = []
    for java, where in (
        (Path(home) / "bin" / "java" if home else None, Path(home) if home else None),
        (Path(on_path) if on_path else None, None),
        (own / "bin" / "java", own),
    ):
        if java is None:
            continue
        version = _java_version(java)
        if version >= JAVA:
            return where
        if version:
            found.append(f"{java} is Java {version}")
    why = f"; {', '.join(found)}" if found else ""
    raise SparkUnavailableError(f"Spark needs Java {JAVA} or newer{why}: {_INSTALL_JAVA}")


def _java_version(java: Path) -> int:
    """17 of ``openjdk version "17.0.15"``, 1 of Java 8's ``"1.8.0"``, 0 if it does not run."""
    try:
        result = subprocess.run(  # noqa: S603 - the user's own Java
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r' version "(\d+)', result.stderr + result.stdout)
    return int(found[1]) if found else 0


def _active() -> SparkSession | None:
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - commands look for Java first
    except ImportError as e:
        raise SparkUnavailableError(
            f"{e.name or 'pyspark'} is not installed: pip install 'zenwire[spark]'"
        ) from None
    return SparkSession.getActiveSession()


def _environment() -> dict[str, str]:
    """Variables that Spark's launcher and its Python workers read."""
    home = find_java()
    # Workers would run the first python3 of the PATH, which may have no packages.
    found = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON") or sys.executable}
    if home is not None:
        found["JAVA_HOME"] = str(home)
    elif "JAVA_HOME" in os.environ:
        # It was looked at and is no good, but Spark's launcher would prefer it.
        found["JAVA_HOME"] = ""
    return found


def _settings(app: str, master: str, scratch: Path) -> dict[str, str]:
    local = master.startswith("local")
    cores = os.cpu_count() or 1
    level = os.environ.get("SPARK_LOG_LEVEL", "off")
    logging = scratch / "log4j2.properties"
    logging.write_text(
        f"rootLogger.level = {level}\n"
        "rootLogger.appenderRef.stderr.ref = stderr\n"
        "appender.stderr.type = Console\nappender.stderr.name = stderr\n"
        "appender.stderr.target = SYSTEM_ERR\n"
        "appender.stderr.layout.type = PatternLayout\n"
        "appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex\n"
    )
    settings = {
        "spark.app.name": app,
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Arrow's Java code checks every single access, of buffers that this project's code made.
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging} "
        "-Darrow.enable_unsafe_memory_access=true",
        "spark.local.dir": str(scratch / "spill"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Rows of `batches` have up to 64 KiB: a number of rows alone does not bound memory.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(64 << 20),
        # A busy machine lets Python and Java wait for each other longer than Spark's 15 seconds.
        "spark.python.authenticate.socketTimeout": "120s",
    }
    if local:
        settings |= {
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.driver.memory": f"{_heap() >> 20}m",
            # Small captures are the rule here; adaptive execution joins what is smaller still.
            "spark.sql.shuffle.partitions": str(max(2 * cores, 4)),
            "spark.python.unix.domain.socket.enabled": str(os.name == "posix").lower(),
        }
    return settings


def _heap() -> int:
    """A third of the memory, between 1 and 12 GiB: Python workers need theirs beside it."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 2 * _GIB
    return min(max(memory // 3, _GIB), 12 * _GIB)


def _start(settings: dict[str, str], environment: dict[str, str], log: Path) -> SparkSession:
    """Raises SparkUnavailableError with the last that Java said."""
    from py4j.protocol import (  # type: ignore[import-untyped] # noqa: PLC0415 - see _active
        Py4JError,
    )
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if settings["spark.master"].startswith("local"):
        environment = environment | {"SPARK_LOCAL_IP": _HOST}
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    with _variables(environment), warnings.catch_warnings(), log.open("wb") as out:
        # Java leaves the files of its own start-up to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            running = SparkContext._gateway  # noqa: SLF001 - a stopped session leaves its JVM
            launch: Callable[..., Any] = launch_gateway  # Any: PySpark has no type for it
            gateway = running or launch(conf, {"stdout": out, "stderr": out})
            SparkContext(conf=conf, gateway=gateway)
            return SparkSession.builder.getOrCreate()
        except (PySparkException, Py4JError, OSError, ValueError) as e:
            said = log.read_text(errors="replace").strip().splitlines()
            last = said[-1] if said else str(e).strip().splitlines()[0]
            raise SparkUnavailableError(f"Spark did not start: {last}") from None


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables while Spark starts; an empty value takes one away."""
    before = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            _set(name, value)
        yield
    finally:
        for name, former in before.items():
            _set(name, former)


def _set(name: str, value: str | None) -> None:
    if value:
        os.environ[name] = value
    else:
        os.environ.pop(name, None)
