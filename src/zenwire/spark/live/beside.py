"""A recorder beside a query, as the query sees it: started, looked after, stopped.

Spark plans a stream in a Python process beside the driver, which it ends with SIGTERM when the
query ends: whatever runs in there ends in the middle of a row. So the recorder has a process of its
own (`recording`), with a pipe from the one that plans. It ends, with everything written, when that
pipe does: when the query stops, when it fails, and when the driver is killed. The lock of the spool
says that there is one: a query that is started again waits for the former to let go.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
from typing import IO, Final

from zenwire.errors import Timeout, ZError
from zenwire.spark.live.order import FAILED, FILLED, RECORDING
from zenwire.spark.live.recorder import LiveOptions
from zenwire.spool import Spool, SpoolDamaged, SpoolError

__all__ = ["OwnRecorder"]

_log = logging.getLogger(__name__)

_START: Final = 180.0
"""Seconds until it records: for Python and compiled code to load, and the spool to be free."""
_FILL: Final = 30.0
"""Seconds for histories to come."""
_STOP: Final = 15.0
_AGAIN: Final = 3
"""How often one that was killed is started again without a row in between."""


class OwnRecorder:
    """The recorder of one query. Raises ZError where it cannot record."""

    def __init__(self, live: LiveOptions) -> None:
        self._live = live
        self.before = 0
        """How many rows the spool had before this one began."""
        self._process: subprocess.Popen[bytes] | None = None
        self._states: dict[str, str] = {}
        self._changed = threading.Condition()
        self._deaths = 0
        self._rows = 0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Returns when it records."""
        rows = _rows_in(self._live)
        if not self._deaths:
            self.before = self._rows = rows
        self._states = {}
        process = subprocess.Popen(
            [sys.executable, "-m", "zenwire.spark.live.recording"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Signals to a terminal's programs are not for it: it ends with the pipe.
            start_new_session=True,
            # Where Spark was given this package, it is on this path alone.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        threading.Thread(target=self._listen, args=(process.stdout,), daemon=True).start()
        with contextlib.suppress(BrokenPipeError):
            # A query that is started again may be there before the network is.
            process.stdin.write(self._live.order(patient=rows > 0).line())
            process.stdin.flush()
        try:
            self._wait_for(RECORDING, _START)
        except ZError:
            self.stop()
            raise

    def _listen(self, lines: IO[bytes]) -> None:
        states = self._states
        with lines:
            for line in lines:
                said = json.loads(line)
                with self._changed:
                    states[said["state"]] = said["reason"]
                    self._changed.notify_all()
        with self._changed:
            # Also for one that could not say why it ended.
            states.setdefault(FAILED, "")
            self._changed.notify_all()

    def _wait_for(self, state: str, within: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._states.keys() & {state, FAILED}, within)
            if state in self._states:
                return
            reason = self._states.get(FAILED)
        if reason is None:
            raise Timeout(f"the recorder of {self._live.spool}", within)
        raise _stopped(reason)

    def filled(self) -> None:
        """Returns when what others still had of the time before is in the spool."""
        try:
            self._wait_for(FILLED, _FILL)
        except Timeout:
            _log.warning("what was missed is still being asked for after %.0f s", _FILL)

    def check(self) -> None:
        """Starts it again if it was killed. Raises ZError if it has stopped by itself."""
        process = self._process
        if process is None or process.poll() is None:
            return
        with self._changed:
            self._changed.wait_for(lambda: FAILED in self._states, _STOP)
            reason = self._states.get(FAILED, "")
        rows = _rows_in(self._live)
        if rows > self._rows:
            self._rows, self._deaths = rows, 0
        if reason or self._deaths >= _AGAIN:
            raise _stopped(reason)
        self._deaths += 1
        _log.warning("the recorder was ended (%s), and is started again", process.returncode)
        self.stop()
        self.start()

    def stop(self) -> None:
        """Returns when everything is written."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(_STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _rows_in(live: LiveOptions) -> int:
    """How many the spool has, if there is one. Raises ZError for one that is not this query's."""
    try:
        found = Spool.open(live.spool)
    except SpoolDamaged:
        raise
    except SpoolError:
        return 0
    if live.source_id is not None and found.name != live.source_id:
        raise SpoolError(live.spool, f"is named {found.name}, and sourceId is {live.source_id}")
    return found.samples.latest()


def _stopped(reason: str) -> ZError:
    what = reason or "it ended without a word; see what the driver logs"
    return ZError(f"the recorder of the query has stopped: {what}")
