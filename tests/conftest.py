"""Settings that all tests share."""

from __future__ import annotations

import os
import runpy
import signal
import sys
from pathlib import Path

from hypothesis import settings

# No deadline per example: the first one may compile a kernel, and machines are shared.
settings.register_profile("zenwire", deadline=None, print_blob=True)
settings.load_profile("zenwire")

# A shell has what it runs in the background ignore Ctrl-C, and so would all that tests start;
# nohup does the same for SIGHUP.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

WITHOUT_FAST = Path(__file__).parent / "without_fast"

if os.environ.get("ZENWIRE_WITHOUT_FAST"):
    assert not {"numba", "numpy", "pyarrow"} & set(sys.modules), "something has imported them"
    runpy.run_path(str(WITHOUT_FAST / "sitecustomize.py"))
    # And in the programs that tests start.
    os.environ["PYTHONPATH"] = str(WITHOUT_FAST)
    # What the extra itself is for.
    collect_ignore_glob = ["interop/test_record*.py"]
