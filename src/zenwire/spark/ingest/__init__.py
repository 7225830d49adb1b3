"""``zenwire ingest``: one streaming query that commits rows of spools to the tables of a lake.

Every row of a spool is committed exactly once, whatever is killed meanwhile. Needs the extra
``spark``, and ``delta`` or ``iceberg`` for the format.
"""

from zenwire.spark.ingest.pipeline import SETTINGS, Pipeline, Status

__all__ = ["SETTINGS", "Pipeline", "Status"]
