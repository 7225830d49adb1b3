"""The page in a real Chromium: it loads, asks for nothing, complains of nothing, and works.

Chromium is driven through a pipe (``--remote-debugging-pipe``): no port, no package.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.pages import full
from zenwire.web.report import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
)
WAIT = 120.0
HOSTILE = '"><img src=x onerror=window.hacked=1></script><script>window.hacked=1</script>'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]


class Browser:
    """Commands and events of the DevTools protocol, as JSON between zero bytes."""

    def __init__(self, home: Path) -> None:
        assert CHROMIUM is not None
        theirs_in, self._out = (_high(fd) for fd in os.pipe())
        self._in, theirs_out = (_high(fd) for fd in os.pipe())
        null = os.open(os.devnull, os.O_RDWR)
        actions = [(os.POSIX_SPAWN_DUP2, fd, to) for fd, to in
                   ((null, 0), (null, 1), (null, 2), (theirs_in, 3), (theirs_out, 4))]  # fmt: skip
        argv = [CHROMIUM, *FLAGS, f"--user-data-dir={home}", "about:blank"]
        environment = dict(os.environ, HOME=str(home))
        self.pid = os.posix_spawn(CHROMIUM, argv, environment, file_actions=actions, setpgroup=0)
        for fd in (theirs_in, theirs_out, null):
            os.close(fd)
        self._buffer = b""
        self._next = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        self._next += 1
        said = {"id": self._next, "method": method, "params": params}
        os.write(
            self._out,
            json.dumps(said | ({"sessionId": session} if session else {})).encode() + b"\0",
        )
        while True:
            told = self._message()
            if told.get("id") == self._next:
                assert "error" not in told, told
                result: dict[str, Any] = told["result"]
                return result
            self.events.append(told)

    def until(self, method: str) -> None:
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._message())

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + WAIT
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            got = os.read(self._in, 1 << 16)
            assert got, "the browser is gone"
            self._buffer += got
        one, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(one)
        return message

    def close(self) -> None:
        """It ends when its pipe does; if it does not, its process group is ended."""
        os.close(self._out)
        os.close(self._in)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                return
            time.sleep(0.05)
        os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _high(fd: int) -> int:
    """The same above those that the browser wants at 3 and 4."""
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20)
    os.close(fd)
    return high


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        yield found
    finally:
        found.close()


class Tab:
    """One page, with all that it asked for and complained of."""

    def __init__(self, browser: Browser, path: Path, width: int, scheme: str = "light") -> None:
        self._browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        browser.events.clear()
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip
        self.call("Page.navigate", url=path.as_uri())
        browser.until("Page.loadEventFired")

    def call(self, method: str, **params: object) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def run(self, script: str) -> Any:
        told = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def key(self, name: str, modifiers: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, modifiers=modifiers)

    def events(self, *methods: str) -> list[dict[str, Any]]:
        return [e["params"] for e in self._browser.events if e.get("method") in methods]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(full(HOSTILE, nodes=40, routers=3)), "utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (380, "light")])
def test_it_loads_without_a_request_or_a_complaint(
    browser: Browser, page: Path, width: int, scheme: str
) -> None:
    tab = Tab(browser, page, width, scheme)
    asked = [e["request"]["url"] for e in tab.events("Network.requestWillBeSent")]
    assert asked == [page.as_uri()]
    assert tab.events("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded") == []
    assert tab.run("window.hacked") is None
    assert tab.run("document.title").endswith("zenwire report")
    assert tab.run("document.documentElement.scrollWidth") <= width
    dark = tab.run("getComputedStyle(document.body).backgroundColor") != "rgb(247, 247, 244)"
    assert dark == (scheme == "dark")


def test_the_policy_stops_what_would_get_through(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.html"
    evil = "<script>window.hacked=1</script><img src='https://example.invalid/x' onerror='window.hacked=2'>"
    broken.write_text(page.read_text("utf-8").replace("<main", evil + "<main"), "utf-8")
    tab = Tab(browser, broken, 1400)
    assert tab.run("window.hacked") is None
    assert len(tab.events("Log.entryAdded")) >= 2


def test_charts_and_topology_answer_to_the_keyboard(browser: Browser, page: Path) -> None:
    tab = Tab(browser, page, 1400)
    tab.run("document.querySelector('[data-chart=messages]').focus()")
    tab.key("ArrowRight")
    readout = "document.querySelector('[data-chart=messages] .readout').textContent"
    assert "4 messages" in tab.run(readout)
    tab.key("ArrowRight", modifiers=8)
    assert "8 messages" in tab.run(readout)
    tab.key("Escape")
    assert tab.run(readout) == ""

    tab.run("document.querySelector('.node').focus()")
    first = tab.run("document.querySelector('.told').textContent")
    assert "mode" in first
    tab.key("ArrowRight")
    assert tab.run("document.querySelector('.told').textContent") != first
    assert (
        tab.run('document.querySelectorAll(\'[tabindex="0"].node, [tabindex="0"].edge\').length')
        == 1
    )
    for _ in range(3):
        tab.key("ArrowLeft")
    assert "link" in tab.run("document.querySelector('.told').textContent")


def test_tables_sort(browser: Browser, page: Path) -> None:
    tab = Tab(browser, page, 1400)
    head = "document.querySelector('#key-table th:nth-child(2)')"
    tab.run(f"{head}.querySelector('button').click()")
    assert tab.run(f"{head}.getAttribute('aria-sort')") == "descending"
    tab.run(f"{head}.querySelector('button').click()")
    assert tab.run(f"{head}.getAttribute('aria-sort')") == "ascending"
