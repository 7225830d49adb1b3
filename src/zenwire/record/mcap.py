"""Recording into an MCAP file, for Foxglove and its kin. Needs the extra ``mcap``.

A key is a channel, its encoding that of the messages. What was lost is a channel too: JSON on
``zenwire/losses``. A file that was not closed can be read up to its last whole chunk.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from zenwire.api.values import NTP64
from zenwire.columns.samples import DELETE
from zenwire.errors import ZError
from zenwire.spool import Counts
from zenwire.spool.sources import MODULUS
from zenwire.wire.encoding import ENCODINGS

if TYPE_CHECKING:
    from zenwire.spool import Numbers

__all__ = ["LOSSES", "McapSink"]

LOSSES: Final = "zenwire/losses"

_WORDS: Final = {
    "application/json": "json",
    "text/json": "json",
    "application/cbor": "cbor",
    "application/cdr": "cdr",
    "application/protobuf": "protobuf",
}
"""What MCAP calls encodings that it knows; others keep the name that Zenoh has for them."""
_CHANNELS_MAX: Final = 65_000
"""Ids of channels have 16 bits."""


class McapSink:
    """Takes record batches, and writes a message for each row."""

    def __init__(self, path: str | Path) -> None:
        try:
            from mcap.writer import Writer  # noqa: PLC0415 - an extra that few need
        except ImportError as e:
            raise ZError("an MCAP file needs the package mcap: pip install 'zenwire[mcap]'") from e
        self._path = Path(path)
        try:
            self._file = self._path.open("xb")
        except OSError as e:
            raise ZError(f"{path}: cannot be written: {e.strerror or e}") from None
        self._writer = Writer(self._file)
        self._writer.start(library="zenwire")
        self._channels: dict[tuple[str, int | None, bytes | None], int] = {}
        self._lock = threading.Lock()
        self._rows = self._lost = 0
        self._closed = False

    @property
    def next_offset(self) -> int:
        return self._rows

    def append(self, samples: pa.RecordBatch, *, numbers: Numbers = "check") -> int:
        """Write the rows. Raises ZError if the disk does not take them."""
        names = ("key", "encoding", "encoding_schema", "payload", "kind", "time", "timestamp")
        columns = (samples.column(name).to_pylist() for name in names)
        sequence = pc.fill_null(samples.column("source_sn"), 0).to_pylist()
        with self._lock:
            first = self._rows
            try:
                for row in zip(*columns, sequence, strict=True):
                    self._message(*row)
            except OSError as e:
                raise ZError(f"{self._path}: cannot be written: {e.strerror or e}") from None
            return first

    def _message(  # noqa: PLR0917 - the columns of a row
        self,
        key: str,
        encoding: int | None,
        schema: bytes | None,
        payload: bytes,
        kind: int,
        received: int,
        stamp: int | None,
        number: int,
    ) -> None:
        channel = self._channel(key, encoding, schema)
        if channel is None:
            self._lost += 1
            return
        published = received if stamp is None else NTP64.from_int(stamp % (1 << 64)).as_nanos()
        if kind == DELETE:
            # There is no word for it: an empty message.
            payload = b""
        self._writer.add_message(channel, received, payload, published, number % MODULUS)
        self._rows += 1

    def _channel(self, key: str, encoding: int | None, schema: bytes | None) -> int | None:
        name = key, encoding, schema
        known = self._channels.get(name)
        if known is None and len(self._channels) < _CHANNELS_MAX:
            word = ENCODINGS[encoding or 0] if (encoding or 0) < len(ENCODINGS) else str(encoding)
            more = {} if schema is None else {"schema": schema.decode(errors="replace")}
            known = self._channels[name] = self._writer.register_channel(
                key, _WORDS.get(word, word), 0, {"zenoh_encoding": word, **more}
            )
        return known

    def lose(
        self,
        kind: str,
        reason: str,
        *,
        count: int | None = None,
        source: tuple[bytes, int] | None = None,
        numbers: tuple[int, int] | None = None,
    ) -> None:
        """A message on the channel of losses."""
        said = {"kind": kind, "reason": reason, "count": count}
        if source is not None:
            said["source"] = f"{source[0].hex()}/{source[1]}"
        if numbers is not None:
            said["from"], said["to"] = map(str, numbers)
        now = time.time_ns()
        with self._lock:
            self._lost += count or 0
            name = LOSSES, None, None
            if name not in self._channels:
                self._channels[name] = self._writer.register_channel(LOSSES, "json", 0)
            self._writer.add_message(self._channels[name], now, json.dumps(said).encode(), now)

    def counts(self) -> Counts:
        with self._lock:
            return Counts(self._rows, self._rows, self._lost, 0, "")

    def flush(self, timeout: float | None = None) -> bool:
        """Chunks are written when they are full."""
        return True

    def close(self) -> None:
        """End the file."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._writer.finish()  # type: ignore[no-untyped-call] # of the package
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
