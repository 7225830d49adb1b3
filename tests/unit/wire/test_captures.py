"""All recorded traffic is read without a fault, and written as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recorded import CAPTURES, batches
from zenwire.wire import decode_linkstate, encode, encode_batch, walk, walk_low_latency
from zenwire.wire.linkstate import OAM_LINKSTATE
from zenwire.wire.network import Oam


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_batch_is_read_and_written_again(path: Path) -> None:
    found = batches(path)
    assert found
    for batch in found:
        read = walk_low_latency if batch.lowlatency else walk
        messages = [located.message for located in read(batch.data)]
        assert messages
        assert encode_batch(messages) == batch.data
        for message in messages:
            if isinstance(message, Oam) and message.id == OAM_LINKSTATE:
                assert isinstance(message.body, bytes)
                assert encode(decode_linkstate(message.body)) == message.body


def test_there_are_captures_of_all_modes() -> None:
    stems = {path.stem for path in CAPTURES}
    assert len(stems) == 13
    assert {"compression", "lowlatency", "no_qos", "three_routers", "udp", "usrpwd"} <= stems
