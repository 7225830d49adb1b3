"""``zenwire ingest``: spools into a lake of ``samples``, ``latest``, ``key_stats`` and ``losses``.

Rows go there exactly once from the spool on, whatever is killed in between. Parquet by default;
needs the extra ``spark``.
"""

from zenwire.spark.ingest.key_stats import of_bin
from zenwire.spark.ingest.pipeline import SETTINGS, Pipeline, Status

__all__ = ["SETTINGS", "Pipeline", "Status", "of_bin"]
