"""The numbers of the protocol that the capture kernels repeat are those of the definitions."""

from __future__ import annotations

from zenwire.capture import kernels as k
from zenwire.wire import BATCH_MAX, compress_batch
from zenwire.wire.batch import NETWORK_ID_MIN
from zenwire.wire.define import spec_of
from zenwire.wire.transport import Close, Fragment, Frame, KeepAlive
from zenwire.wire.values import Priority


def test_ids_and_flags() -> None:
    classes = (Close, KeepAlive, Frame, Fragment)
    ids = (k.W_CLOSE, k.W_KEEP_ALIVE, k.W_FRAME, k.W_FRAGMENT)
    assert ids == tuple(spec_of(cls).id for cls in classes)
    assert (k.W_NETWORK_MIN, k.BATCH_MAX) == (NETWORK_ID_MIN, BATCH_MAX)
    assert 2 * len(Priority) == k.LANES
    for cls in (Frame, Fragment):
        priority = next(e for e in spec_of(cls).exts if e.name == "priority")
        assert (priority.header, priority.default) == (k.W_PRIORITY_EXT, k.W_PRIORITY)
        assert cls.R.mask == k.W_RELIABLE


def test_headers_of_compressed_batches() -> None:
    assert compress_batch(b"ab")[0] == k.W_STORED
    assert compress_batch(b"a" * 100)[0] == k.W_LZ4
