"""Recording into an MCAP file, for Foxglove and its kin. Needs the extra ``mcap``.

A key is a channel, its encoding that of the messages. What was lost is a channel too: JSON on
``zenwire/losses``. A chunk is written every second; a file that was not closed is completed with
what it has by the next recorder that is to write to it, and set aside.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from zenwire.api.values import NTP64
from zenwire.columns.samples import DELETE
from zenwire.errors import ZError
from zenwire.record.mcap_file import complete, set_aside
from zenwire.spool import Counts
from zenwire.spool.sources import MODULUS
from zenwire.wire.encoding import ENCODINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from zenwire.spool import Numbers

__all__ = ["LOSSES", "McapSink"]

_log = logging.getLogger("zenwire.record")

LOSSES: Final = "zenwire/losses"

_WORDS: Final = {
    "application/json": "json",
    "text/json": "json",
    "application/cbor": "cbor",
    "application/cdr": "cdr",
    "application/protobuf": "protobuf",
}
"""What MCAP calls encodings that it knows; others keep the name that Zenoh has for them."""
_INTERVAL: Final = 1.0
"""Seconds after which a chunk is written."""
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
            aside = set_aside(self._path)
            self._file = self._path.open("xb")
        except OSError as e:
            raise ZError(f"{path}: cannot be written: {e.strerror or e}") from None
        if aside is not None:
            _log.warning("%s was not closed by its recorder: it is %s now", path, aside)
        self._writer = Writer(self._file)
        self._writer.start(library="zenwire")
        self._channels: dict[tuple[str, int | None, bytes | None], int] = {}
        self._lock = threading.Lock()
        self._rows = self._lost = self._crowded = 0
        self._flushed = time.monotonic()
        self._broken = ""
        self._closed = False
        self.on_room: Callable[[], None] | None = None

    @property
    def queued_bytes(self) -> int:
        """Nothing: ``append`` writes."""
        return 0

    @property
    def queue_limit(self) -> int | None:
        return None

    @property
    def next_offset(self) -> int:
        return self._rows

    @property
    def settled(self) -> int:
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
                self._flush()
            except OSError as e:
                self._broken = self._broken or e.strerror or str(e)
            if self._broken:
                raise ZError(f"{self._path}: cannot be written: {self._broken}")
            return first

    def _flush(self) -> None:
        """What is in the file can be read, whatever becomes of this process."""
        now = time.monotonic()
        if now - self._flushed >= _INTERVAL and not self._broken and not self._closed:
            self._flushed = now
            self._tell_crowded()
            self._writer.flush()  # type: ignore[no-untyped-call] # of the package

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
            self._crowded += 1
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
        said: dict[str, object] = {"kind": kind, "reason": reason, "count": count}
        if source is not None:
            said["source"] = f"{source[0].hex()}/{source[1]}"
        if numbers is not None:
            said["from"], said["to"] = map(str, numbers)
        with self._lock:
            self._lost += count or 0
            self._tell(said)

    def _tell(self, said: dict[str, object]) -> None:
        now, name = time.time_ns(), (LOSSES, None, None)
        try:
            if name not in self._channels:
                self._channels[name] = self._writer.register_channel(LOSSES, "json", 0)
            self._writer.add_message(self._channels[name], now, json.dumps(said).encode(), now)
        except OSError as e:
            self._broken = self._broken or e.strerror or str(e)

    def _tell_crowded(self) -> None:
        """Rows that have no channel: what they are of is not known any more, but how many."""
        if self._crowded:
            reason = f"a file has no more than {_CHANNELS_MAX} channels"
            self._tell({"kind": "overflow", "reason": reason, "count": self._crowded})
            self._lost += self._crowded
            self._crowded = 0

    def learn(self, numbers: Mapping[tuple[bytes, int], int]) -> None:
        """Gaps are not looked for here."""

    def counts(self) -> Counts:
        with self._lock:
            with contextlib.suppress(OSError):
                self._flush()
            return Counts(self._rows, self._rows, self._lost + self._crowded, 0, self._broken)

    def flush(self, timeout: float | None = None) -> bool:
        """Chunks are written when they are full, or a second old."""
        return True

    def close(self) -> None:
        """End the file. Raises ZError if the disk does not take that; what is there can be read."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                if not self._broken:
                    self._tell_crowded()
                    self._writer.finish()  # type: ignore[no-untyped-call] # of the package
                    self._file.close()
            except OSError as e:
                self._broken = e.strerror or str(e)
            if self._broken:
                self._cut()

    def _cut(self) -> None:
        """Back to the last whole chunk, which makes room for the end of the file."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            complete(self._path, self._broken)
        raise ZError(f"{self._path}: could not be written to its end: {self._broken}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
