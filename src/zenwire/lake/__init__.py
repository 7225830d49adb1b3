"""Lake tables: rows of spools as Parquet files, committed to Delta or Iceberg. No PySpark."""
